//! A host's own file over real parts: a client of the daemon's intake socket makes a container read
//! it, and no host that opted out is asked.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use lab::personas::lists::{PROOF, PROOF_PATH, PROVING_HOST};
use lab::request_log;
use launcher::LauncherClient;
use serde_json::{Value, json};
use tests::world::{GATEWAY_SOCKET, LAUNCHER_SOCKET};
use tests::{Options, Role, World};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::confinement::adversary::fit;

const SOON: Duration = tests::PATIENCE;

/// Responds, has no such file, and is below another domain.
const WITHOUT_FILE: &str = "by-lemmy-019.lab-shapes.test";

async fn ask(socket: &Path, host: &str) -> anyhow::Result<Value> {
    let mut stream = UnixStream::connect(socket).await?;
    let request = format!("{}\n", json!({"read_proof": {"host": host}}));
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    serde_json::from_str(&answer).with_context(|| answer)
}

pub(super) fn requests_to(world: &World, host: &str) -> anyhow::Result<Vec<String>> {
    let entries = request_log::entries(&world.path("lab/requests.ndjson"))?;
    let of_host = entries
        .into_iter()
        .filter(|entry| entry.host == host && !entry.method.is_empty());
    Ok(of_host.map(|entry| entry.path).collect())
}

/// Invariants I7 and I8.
#[tokio::test(flavor = "multi_thread")]
async fn a_proof_is_read_from_its_host_once_in_a_while_and_never_from_one_that_opted_out()
-> anyhow::Result<()> {
    let mut options = Options::new(&[]);
    options.settings = vec![("optional_sockets", "intake".to_owned())];
    let mut world = World::prepare(options).await?;
    let socket = world.path("run/intake/intake.sock");
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    let launcher = LauncherClient::socket(world.path(LAUNCHER_SOCKET));
    fit(&world, &launcher).await?;
    let all_listen = |world: &World| {
        let sockets = [world.path(GATEWAY_SOCKET), socket.clone()];
        let listens = |socket: &_| std::os::unix::net::UnixStream::connect(socket).is_ok();
        Ok(sockets.iter().all(listens))
    };
    world
        .until("gateway and daemon listen", SOON, all_listen)
        .await?;

    let answer = ask(&socket, PROVING_HOST).await?;
    assert_eq!(answer, json!({"proof": {"lines": PROOF}}));
    assert_eq!(
        requests_to(&world, PROVING_HOST)?,
        ["/robots.txt", PROOF_PATH]
    );

    let again = ask(&socket, PROVING_HOST).await?;
    let wait = again
        .pointer("/not_now/retry_after_s")
        .and_then(Value::as_u64);
    assert!(wait.is_some_and(|wait| (1..=61).contains(&wait)), "{again}");

    let none = ask(&socket, WITHOUT_FILE).await?;
    assert_eq!(none, json!({"no_proof": {"why": "its host answers 404"}}));

    let output = world.command(&["opt-out", PROVING_HOST])?;
    assert!(output.status.success(), "{output:?}");
    let refused = ask(&socket, PROVING_HOST).await?;
    let why = refused.pointer("/no_proof/why").and_then(Value::as_str);
    assert!(
        why.is_some_and(|why| why.contains("requests nothing from this host")),
        "{refused}"
    );
    assert_eq!(
        requests_to(&world, PROVING_HOST)?,
        ["/robots.txt", PROOF_PATH]
    );
    Ok(())
}
