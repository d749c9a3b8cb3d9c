//! Public lists over real parts: the gateway opens the list's host, the launcher starts a checker, and what it reads comes out as names, or as a
//! reason that is no verdict. Peers lists of the lab's hosts stand for public ones: they are JSON arrays of names.

use std::sync::Arc;
use std::time::Duration;

use gateway::GatewayClient;
use launcher::LauncherClient;
use orchestrator::source::report::{Outcome, Unread};
use orchestrator::source::run::{Ended, Ways, read};
use orchestrator::source::{Source, SourceName};
use protocol::{CheckId, DeadReason, Host, ListFormat, ListOutcome, ListPath, UnlistedReason};
use tests::{Options, Role, World};
use tokio::sync::Semaphore;

use crate::adversary::fit;

const PEERS: &str = "/api/v1/instance/peers";

fn source(host: &str, path: &str, format: ListFormat) -> Source {
    Source {
        name: SourceName::parse(host).expect("a name"),
        host: Host::parse(host).expect("a host"),
        path: ListPath::parse(path).expect("a path"),
        format,
        interval: Duration::from_secs(6 * 3600),
        names_max: 1000,
    }
}

struct Reader {
    ways: Ways,
    readings: u128,
}

impl Reader {
    async fn read(&mut self, host: &str, path: &str, format: ListFormat) -> Ended {
        self.readings += 1;
        let id = CheckId::from_random(self.readings);
        read(&source(host, path, format), id, host.to_owned(), &self.ways).await
    }

    async fn unlisted(&mut self, host: &str, path: &str) -> (UnlistedReason, Option<String>) {
        match self.read(host, path, ListFormat::Json).await {
            Ended::Read(Outcome::Unread(Unread::Unlisted { reason, to, .. })) => (reason, to),
            other => panic!("{host}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn public_lists_are_read_through_gateway_and_launcher() -> anyhow::Result<()> {
    let mut world = World::prepare(Options::new(&[])).await?;
    for role in [Role::Gateway, Role::Launcher] {
        world.begin(role).await?;
    }
    let mut reader = Reader {
        ways: Ways {
            gateway: GatewayClient::new(world.path("sockets/gateway.sock")),
            launcher: LauncherClient::socket(world.path("sockets/launcher.sock")),
            places: Arc::new(Semaphore::new(1)),
            contact: "https://lab.test/".into(),
        },
        readings: 0,
    };
    fit(&world, &reader.ways.launcher).await?;
    let seed = "seed.lab.test";
    let whole = reader.read(seed, PEERS, ListFormat::Json).await;
    let Ended::Read(Outcome::Names(list)) = whole else {
        panic!("{whole:?}");
    };
    assert_eq!(list.outcome, ListOutcome::Complete);
    assert!(list.names.len() > 50, "{}", list.names.len());
    let long = reader
        .read("long-list.lab.test", PEERS, ListFormat::Json)
        .await;
    let Ended::Read(Outcome::Names(list)) = long else {
        panic!("{long:?}");
    };
    assert_eq!(list.outcome, ListOutcome::Truncated);
    assert_eq!(list.names.len(), 1000);

    let unread = reader.unlisted("robots-us.lab.test", PEERS).await;
    assert_eq!(unread, (UnlistedReason::Disallowed, None));
    let unread = reader.unlisted(seed, "/nothing").await;
    assert_eq!(unread.0, UnlistedReason::Status);
    let unread = reader.unlisted(seed, "/.well-known/nodeinfo").await;
    assert_eq!(unread, (UnlistedReason::NotAList, None));
    let unread = reader
        .unlisted("moved-301.lab.test", "/.well-known/nodeinfo")
        .await;
    let home = "home-301.lab-moved.test".to_owned();
    assert_eq!(unread, (UnlistedReason::Elsewhere, Some(home)));
    let nowhere = reader.read("nowhere.lab.test", "/", ListFormat::Json).await;
    let Ended::Unreachable { reason, .. } = nowhere else {
        panic!("{nowhere:?}");
    };
    assert_eq!(reason, DeadReason::NoSuchName);
    Ok(())
}
