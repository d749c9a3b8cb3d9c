//! Public lists over real parts: the gateway opens the list's host, and the launcher starts a
//! checker. The result is names, or a reason that is not a verdict. Peers lists of the lab's hosts
//! replace public ones: they are JSON arrays of names.

use std::time::Duration;

use anyhow::Context as _;
use census::source::Memory;
use census::time::Timestamp;
use gateway::GatewayClient;
use lab::personas::lists::{HOST, PODS, PODS_PATH, SUFFIX, SUFFIXES_PATH};
use launcher::LauncherClient;
use orchestrator::check::slot_queue::SlotQueue;
use orchestrator::discover::lists::{Source, SourceName};
use orchestrator::discover::reading::{Ended, Errand, Ways, read};
use protocol::order::AskPeers;
use protocol::{
    CheckId, CheckOrder, DeadReason, Host, ListFormat, ListOutcome, ListPath, UnlistedReason,
};
use report::list::{ListReport, Outcome, Unread};
use tests::world::{GATEWAY_SOCKET, LAUNCHER_SOCKET};
use tests::{Options, Role, World};

use crate::confinement::adversary::fit;

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
    async fn read(&mut self, host: &str, path: &str, format: ListFormat) -> Ended<Outcome> {
        self.readings += 1;
        let source = source(host, path, format);
        let errand = Errand {
            host: &source.host,
            order: CheckOrder {
                list: Some(Box::new(source.list())),
                ..CheckOrder::check(&*self.ways.contact, AskPeers::Skip)
            },
            id: CheckId::from_random(self.readings),
            group: host.to_owned(),
        };
        read(errand, ListReport::new(&source.list()), &self.ways).await
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
            gateway: GatewayClient::new(world.path(GATEWAY_SOCKET)),
            launcher: LauncherClient::socket(world.path(LAUNCHER_SOCKET)),
            slots: SlotQueue::unlimited(),
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

const SOON: Duration = tests::PATIENCE;

/// The daemon reads its lists automatically. One that grew tenfold is held until an operator has
/// looked, then its names are checked like any others. A list of suffixes regroups all hosts.
#[tokio::test(flavor = "multi_thread")] // S70
async fn list_that_grew_tenfold_waits_for_the_operator() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("sources.toml");
    let url = |path: &str| format!("https://{HOST}{path}");
    let text = format!(
        "[[source]]\nname = \"pods\"\nurl = \"{}\"\nformat = \"json\"\n\n[[source]]\nname = \"suffixes\"\nurl = \"{}\"\nformat = \"suffixes\"\n",
        url(PODS_PATH),
        url(SUFFIXES_PATH)
    );
    std::fs::write(&file, text)?;
    let mut options = Options::new(&[PODS[0]]);
    // A day in twenty seconds.
    options.interval_divisor = 5000;
    options.settings = vec![("sources", file.display().to_string())];
    let mut world = World::prepare(options).await?;
    {
        let store = store::open(&world.path("data/census.db"))?;
        let (memory, _) = Memory::default().after_reading(1, Timestamp(0));
        store.writer().remember_source("pods", memory).await?;
    }
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    let paused = |world: &World| {
        let sources = world.reader()?.sources()?;
        Ok(sources.values().any(|memory| memory.paused.is_some()))
    };
    world
        .until("the list that grew is paused", SOON, paused)
        .await?;
    let told = text_of(&world, &["status"])?;
    let expected = "PAUSED since";
    assert!(told.contains(expected), "{told}");
    for name in &PODS[1..] {
        assert!(world.host(name)?.is_none(), "{name} came in");
    }

    let told = text_of(&world, &["sources", "resume", "pods"])?;
    assert!(told.contains("resumed"), "{told}");
    let all_live = |world: &World| {
        let mut states = Vec::new();
        for name in PODS {
            states.push(
                world
                    .host(name)?
                    .is_some_and(|stored| stored.record.last_alive.is_some()),
            );
        }
        Ok(states.into_iter().all(|lives| lives))
    };
    world
        .until("whom the list names lives", SOON, all_live)
        .await?;
    let apart = |world: &World| {
        let groups = world.reader()?.largest_groups(false, 100)?;
        let below = groups.iter().filter(|group| group.domain.ends_with(SUFFIX));
        Ok(below.count() == PODS.len())
    };
    world
        .until("each has a group of its own", SOON, apart)
        .await?;
    assert!(world.path("data/public_suffix_list.dat").is_file());
    let told = text_of(&world, &["sources", "list"])?;
    assert!(
        told.contains("pods: https://lists.lab.test/pods.json (json, every 24 h): 10 names taken"),
        "{told}"
    );
    assert!(
        told.contains("suffixes: ") && !told.contains("not read"),
        "{told}"
    );
    compare(&world)?;
    // The next start uses the list that was read.
    let told = text_of(&world, &["admission", "name", PODS[0]])?;
    assert!(told.contains(&format!("\t{SUFFIX}\t")), "{told}");
    Ok(())
}

/// The published list next to a source, which a separate container reads now.
fn compare(world: &World) -> anyhow::Result<()> {
    text_of(world, &["dump", "--force"])?;
    let told = text_of(world, &["compare", &format!("https://{HOST}{PODS_PATH}")])?;
    assert!(told.starts_with("10 in both lists, "), "{told}");
    assert!(
        told.contains(" 0 only in theirs, 0 not a host name"),
        "{told}"
    );
    // Not even a source's host is asked for anything other than what the operator configured.
    let other = world.command(&["compare", &format!("https://{HOST}/other.json")])?;
    let complaint = String::from_utf8_lossy(&other.stderr);
    assert!(!other.status.success());
    assert!(
        complaint.contains("no source of names has this URL"),
        "{complaint}"
    );
    Ok(())
}

fn text_of(world: &World, command: &[&str]) -> anyhow::Result<String> {
    let output = world.command(command)?;
    let text = String::from_utf8(output.stdout).context("text")?;
    // 3: no check has succeeded yet.
    let is_answer = matches!(output.status.code(), Some(0 | 3));
    assert!(is_answer, "{command:?}: {text}");
    Ok(text)
}
