//! What only containers promise: §4 of the design in force, limits that bite, an engine that comes and goes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tests::{Engine, EngineApi, Listed, Need, Options, Watch, World};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(120);

/// The engine; without one the test is skipped: see [`tests::needs`].
pub(crate) fn engine() -> anyhow::Result<Option<EngineApi>> {
    match Engine::from_environment() {
        Engine::Socket(socket) => EngineApi::connect(&socket).map(Some),
        Engine::Process => {
            tests::skip(
                Need::Engine,
                "only containers promise this; set FEDICENSUS_LAB_ENGINE to an engine's socket",
            );
            Ok(None)
        }
    }
}

/// Ids of this world's containers, running or not.
pub(crate) fn containers_of(world: &World, engine: &EngineApi) -> anyhow::Result<Vec<String>> {
    let label = format!("org.fedicensus={}", world.setting("instance"));
    engine.containers(&[&label], Listed::All)
}

fn running_check(world: &World, engine: &EngineApi) -> anyhow::Result<Option<Value>> {
    let label = format!("org.fedicensus={}", world.setting("instance"));
    // The probe is no check, and has no host.
    let labels = [label.as_str(), "org.fedicensus.host"];
    let running = engine.containers(&labels, Listed::Running)?;
    let Some(id) = running.first() else {
        return Ok(None);
    };
    let inspected = engine.inspect(id)?;
    Ok((inspected["State"]["Running"] == true).then_some(inspected))
}

/// Invariant I1 and design §4: what the engine itself says of a running check.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_check_is_confined_entirely() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
    let world = World::start(Options::new(&["drip.lab.test"])).await?;
    let mut found = None;
    world
        .until("a check runs", SOON, |world| {
            found = running_check(world, &engine)?;
            Ok(found.is_some())
        })
        .await?;
    let container = found.context("a check")?;
    let host = &container["HostConfig"];
    let expected = json!({
        "NetworkMode": "none", "ReadonlyRootfs": true, "CapDrop": ["ALL"], "Privileged": false,
        "Memory": 64 << 20, "MemorySwap": 64 << 20, "PidsLimit": 16, "NanoCpus": 500_000_000, "IpcMode": "none",
        "AutoRemove": false, "PublishAllPorts": false,
    });
    for (key, value) in expected.as_object().context("an object")? {
        assert_eq!(&host[key], value, "{key}");
    }
    // Engines write "none" as null or as an empty list.
    for key in ["CapAdd", "Devices"] {
        assert!(
            host[key].as_array().is_none_or(Vec::is_empty),
            "{key}: {}",
            host[key]
        );
    }
    assert_eq!(
        host["RestartPolicy"]["Name"]
            .as_str()
            .unwrap_or_default()
            .replace("no", ""),
        "",
        "restart policy"
    );
    assert_eq!(host["LogConfig"]["Type"], "none");
    let security = host["SecurityOpt"].to_string();
    assert!(
        security.contains("no-new-privileges") && !security.contains("unconfined"),
        "{security}"
    );
    let nofile = host["Ulimits"]
        .as_array()
        .context("ulimits")?
        .iter()
        .find(|limit| limit["Name"] == "nofile")
        .context("nofile")?
        .clone();
    assert_eq!((&nofile["Soft"], &nofile["Hard"]), (&json!(64), &json!(64)));
    for folder in ["/tmp", "/run", "/var/tmp"] {
        assert!(
            host["Tmpfs"][folder]
                .as_str()
                .unwrap_or_default()
                .contains("ro"),
            "{folder}: {}",
            host["Tmpfs"]
        );
    }
    let config = &container["Config"];
    assert_eq!(config["User"], "64321:64321");
    assert_eq!(config["Cmd"], json!(["--", "drip.lab.test"]));
    assert_eq!(config["Labels"]["org.fedicensus.host"], "drip.lab.test");
    let binds: Vec<_> = container["Mounts"]
        .as_array()
        .context("mounts")?
        .iter()
        .filter(|mount| mount["Type"] != "tmpfs")
        .collect();
    assert_eq!(binds.len(), 1, "{binds:?}");
    assert_eq!(
        (&binds[0]["Destination"], &binds[0]["RW"]),
        (&json!("/egress"), &json!(false))
    );
    no_way_out(container["State"]["Pid"].as_u64().context("a pid")?)
}

/// Its network namespace holds the loopback alone: no address, no route.
fn no_way_out(pid: u64) -> anyhow::Result<()> {
    let net = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{file}"));
    let interfaces = net("dev")?;
    let names: Vec<_> = interfaces
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(str::trim)
        // Every namespace has these when the host has loaded their modules; without an address they lead nowhere.
        .filter(|name| {
            ![
                "sit0", "tunl0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0",
                "ip6gre0",
            ]
            .contains(name)
        })
        .collect();
    assert_eq!(names, ["lo"]);
    assert_eq!(net("route")?.lines().count(), 1, "only the heading");
    let six: Vec<_> = net("if_inet6")
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.ends_with("lo"))
        .map(str::to_owned)
        .collect();
    assert!(six.is_empty(), "{six:?}");
    Ok(())
}

/// Stands between the launcher and the engine, and can be taken away.
struct Door {
    listener: JoinHandle<()>,
    path: PathBuf,
}

impl Door {
    fn open(path: PathBuf, engine: PathBuf) -> anyhow::Result<Self> {
        let socket = UnixListener::bind(&path)?;
        let listener = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut near, _)) = socket.accept().await {
                let engine = engine.clone();
                connections.spawn(async move {
                    if let Ok(mut far) = UnixStream::connect(engine).await {
                        tokio::io::copy_bidirectional(&mut near, &mut far)
                            .await
                            .ok();
                    }
                });
            }
        });
        Ok(Self { listener, path })
    }

    async fn shut(self) {
        self.listener.abort();
        self.listener.await.ok();
        std::fs::remove_file(self.path).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_goes_away_and_comes_back_costs_nobody_anything() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
    let mut options = Options::new(&[]);
    options.crowd = 12;
    options.seeds = lab::crowd::Crowd::new(12, 1).names().collect();
    options.interval_divisor = 5000;
    let mut world = World::prepare(options).await?;
    let path = world.path("engine.sock");
    world.set("engine_socket", &path.display().to_string());
    for role in [
        tests::Role::Gateway,
        tests::Role::Launcher,
        tests::Role::Run,
    ] {
        world.begin(role).await?;
    }
    let outage = |world: &World| Ok(world.status()?["daemon"]["outage"].is_array());
    world
        .until("there is no engine, and the daemon says so", SOON, outage)
        .await?;
    assert_eq!(
        world
            .reader()?
            .counts()?
            .by_state
            .iter()
            .map(|(_, count)| count)
            .sum::<u64>(),
        12,
        "all are known"
    );

    let door = Door::open(path.clone(), engine.socket().to_owned())?;
    let alive = |world: &World| {
        let counts = world.reader()?.counts()?;
        Ok(counts
            .by_state
            .iter()
            .any(|(state, count)| state.as_str() == "alive" && *count == 12))
    };
    world
        .until("the engine was found and all live", SOON, alive)
        .await?;

    let mut orphans = Vec::new();
    world
        .until("checks run", SOON, |world| {
            orphans = containers_of(world, &engine)?;
            Ok(!orphans.is_empty())
        })
        .await?;
    let names = lab::crowd::Crowd::new(12, 1).names();
    let mut watch = Watch::begin(&world, &format!("{} stopped", engine.kind()), names)?;
    door.shut().await;
    world
        .until("the engine has gone, and the daemon says so", SOON, outage)
        .await?;
    let door = Door::open(path, engine.socket().to_owned())?;
    watch.over(&world)?;
    world
        .until("the outage is over", SOON, |world| {
            Ok(world.status()?["daemon"]["outage"].is_null())
        })
        .await?;
    world
        .until("no container of the first life is left", SOON, |world| {
            let there = containers_of(world, &engine)?;
            Ok(!there.iter().any(|id| orphans.contains(id)))
        })
        .await?;
    watch.recovers(&world, SOON).await?;
    for name in lab::crowd::Crowd::new(12, 1).names() {
        let stored = world.host(&name)?.context("known")?;
        assert!(
            stored.history.iter().all(|entry| entry.verdict == "alive"),
            "{name}: {:?}",
            stored.history
        );
    }
    drop(world);
    door.shut().await;
    Ok(())
}
