//! A round of the loop takes in what has ended meanwhile, and no more of it than keeps orders and ticks from waiting.

use std::sync::Arc;
use std::time::Duration;

use census::share::{Room, Shares};
use census::state::Verdict;
use census::time::Calendar;
use protocol::{Host, Private};
use tokio::sync::mpsc;

use super::super::live::Live;
use super::super::{CAUGHT_UP_MAX, Daemon, Finished, ORDERS_MAX};
use crate::check::{Check, Ended};
use crate::config::{Config, Values};
use crate::confirm::{Dns, Doubt};
use crate::tools::tests::tools;

/// A daemon with so many hosts in flight.
async fn daemon(folder: &tempfile::TempDir, hosts: usize) -> (Daemon, Vec<store::Taken>) {
    let [data, public] = ["data", "public"].map(|name| folder.path().join(name));
    for path in [&data, &public] {
        std::fs::create_dir(path).unwrap();
    }
    let folders = |key: &str| match key {
        "data_dir" => Some(data.display().to_string()),
        "public_dir" => Some(public.display().to_string()),
        "seeds" | "canaries" => Some(String::new()),
        _ => None,
    };
    let config = Config::new(&Values::gather(folders, |_| None, None).unwrap()).unwrap();
    let store = store::open(&data.join("census.db")).unwrap();
    let tools = tools(&store, &folder.path().join("gateway.sock"));
    let (writer, now) = (tools.writer.clone(), tools.now());
    let live = Arc::new(Live::new(now, Arc::default()));
    let (_orders, orders) = mpsc::channel(ORDERS_MAX);
    let mut daemon = Daemon::new(config, tools, store, live, orders)
        .await
        .unwrap();
    let name = |number| Host::parse(&format!("h{number}.example")).unwrap();
    let names = (0..hosts).map(name).collect();
    writer.add_now(names, now).await.unwrap();
    let free = u32::try_from(hosts).unwrap();
    let jitters = daemon.tools.dice.jitters(free);
    let (room, shares) = (Room::empty(free), Shares::default());
    let taking = writer.take_due(now, room, shares, jitters, Calendar::REAL);
    let (taken, _) = taking.await.unwrap();
    assert_eq!(taken.len(), hosts);
    for one in &taken {
        daemon.in_flight.insert(one.record.host.clone(), None);
    }
    (daemon, taken)
}

/// They all came out alive, at the same moment.
async fn all_end(daemon: &mut Daemon, taken: Vec<store::Taken>) {
    for one in taken {
        let finished = Finished {
            check: Check::new(&one.record, &daemon.tools, None),
            record: Box::new(one.record),
            ended: Ended::Verdict {
                verdict: Verdict::Alive {
                    software: "mastodon".to_owned(),
                    version: None,
                    private: Private::No,
                },
                witness: None,
                doubt: Doubt {
                    families: Vec::new(),
                    dns: Dns::Sound,
                },
            },
        };
        daemon.checks.spawn(async { finished });
    }
    until_all_tasks_have_ended().await;
}

async fn until_all_tasks_have_ended() {
    let tasks = tokio::runtime::Handle::current().metrics();
    let ended = async {
        while tasks.num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    };
    // Only for a task that never ends.
    let ended = tokio::time::timeout(Duration::from_mins(10), ended).await;
    assert!(ended.is_ok(), "{} go on", tasks.num_alive_tasks());
}

#[tokio::test]
async fn what_ended_together_is_taken_in_by_portions_and_not_one_a_round() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = CAUGHT_UP_MAX * 5 / 2;
    let (mut daemon, taken) = daemon(&folder, hosts).await;
    all_end(&mut daemon, taken).await;
    let left = [CAUGHT_UP_MAX * 3 / 2, CAUGHT_UP_MAX / 2, 0];
    for left in left {
        daemon.catch_up().unwrap();
        assert_eq!(daemon.checks.len(), left);
    }
    assert_eq!(daemon.in_flight.len(), hosts);
    until_all_tasks_have_ended().await;
    for left in left {
        daemon.catch_up().unwrap();
        assert_eq!(daemon.in_flight.len(), left);
    }
}
