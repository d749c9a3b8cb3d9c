//! A real engine that answers 500 or has no image.

use std::path::PathBuf;

use super::*;
use crate::confinement::containers::engine;
use tests::{EngineApi, unhurried};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A day in half a minute: containers take longer than processes.
const SLOWER_DIVISOR: u32 = 4000;

/// A failing engine: every request gets this, and the connection ends.
const REFUSAL: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n\
    Content-Length: 35\r\nConnection: close\r\n\r\n{\"message\":\"no space left on disk\"}";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    PassOn,
    Refuse,
}

struct Between {
    mode: watch::Sender<Mode>,
    task: JoinHandle<()>,
}

impl Between {
    fn open(path: PathBuf, engine: PathBuf) -> anyhow::Result<Self> {
        let socket = UnixListener::bind(path)?;
        let mode = watch::Sender::new(Mode::PassOn);
        let modes = mode.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = socket.accept().await {
                connections.spawn(serve(near, engine.clone(), modes.subscribe()));
            }
        });
        Ok(Self { mode, task })
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves one connection, until either side ends it or the mode changes.
async fn serve(mut near: UnixStream, engine: PathBuf, mut mode: watch::Receiver<Mode>) {
    let now = *mode.borrow_and_update();
    if now == Mode::Refuse {
        // The first bytes of any request are enough.
        let mut request = vec![0; 64 * 1024];
        if near.read(&mut request).await.is_ok_and(|length| length > 0) {
            near.write_all(REFUSAL).await.ok();
        }
        return;
    }
    let Ok(mut far) = UnixStream::connect(engine).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = mode.changed() => {}
    }
}

async fn begin_all(world: &mut World) -> anyhow::Result<()> {
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    Ok(())
}

fn slower() -> Options {
    Options {
        interval_divisor: unhurried(SLOWER_DIVISOR),
        ..options()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_engine_that_answers_500_wrongs_nobody() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
    let mut world = World::prepare(slower()).await?;
    let path = world.path("engine.sock");
    let between = Between::open(path.clone(), engine.socket().to_owned())?;
    world.set("engine_socket", &path.display().to_string());
    begin_all(&mut world).await?;
    all_live(&world).await?;
    let fault = Fault::begin(
        &world,
        &format!("{} answers 500 to everything", engine.kind()),
    )?;
    between.mode.send_replace(Mode::Refuse);
    fault
        .is_said(&world, &["OUTAGE", "no space left on disk"])
        .await?;
    fault.lasts(&world).await?;
    between.mode.send_replace(Mode::PassOn);
    fault.ends_well(&world).await?;
    // The launcher removes its last containers through the proxy.
    drop(world);
    drop(between);
    Ok(())
}

/// A name for the checker's image that comes and goes.
struct Tag {
    engine: EngineApi,
    name: String,
}

impl Tag {
    fn there(&self) -> anyhow::Result<()> {
        self.engine.tag(&tests::world::checker_image(), &self.name)
    }

    fn gone(&self) -> anyhow::Result<()> {
        self.engine.remove_image(&self.name)
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        self.gone().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_comes_late_and_goes_away_wrongs_nobody() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
    let mut world = World::prepare(slower()).await?;
    let name = format!("localhost/fedicensus-test-image:{}", std::process::id());
    let tag = Tag {
        engine,
        name: name.clone(),
    };
    world.set("checker_image", &name);
    begin_all(&mut world).await?;
    let says = ["OUTAGE", "the engine has no image", &name, "build it"];
    world
        .until("status says that there is no image", SOON, |world| {
            let status = status(world)?;
            Ok(says.iter().all(|phrase| status.contains(phrase)))
        })
        .await?;
    tag.there()?;
    all_live(&world).await?;

    let fault = Fault::begin(
        &world,
        &format!("{} has no checker image", tag.engine.kind()),
    )?;
    tag.gone()?;
    fault.is_said(&world, &says).await?;
    fault.lasts(&world).await?;
    tag.there()?;
    fault.ends_well(&world).await
}
