use std::path::Path;
use std::sync::Arc;

use census::time::Jitter;
use gateway::GatewayClient;
use gateway::control::Answer;
use launcher::LauncherClient;
use protocol::egress::Deferral;
use store::{Store, StoredGroup};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;

use super::*;
use crate::services::clock::{Clock, Random};

const NOW: Timestamp = Timestamp(1_790_000_000_000);

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }
}

/// A census whose gateway gives prepared answers.
struct Rig {
    dir: TempDir,
    store: Store,
    services: Services,
    put_off: PutOff,
}

impl Rig {
    /// With held groups below these domains.
    async fn new(domains: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let store = store::open(&dir.path().join("census.db")).unwrap();
        let writer = store.writer();
        for domain in domains {
            let hosts = (0..11).map(|n| Host::parse(&format!("n{n}.{domain}")).unwrap());
            writer.add_now(hosts.collect(), NOW).await.unwrap();
        }
        let names = crate::names::gate::tests::names();
        crate::names::groups::group_new(&writer, &names)
            .await
            .unwrap();
        let services = Services {
            gateway: GatewayClient::new(dir.path().join("gateway.sock")),
            launcher: LauncherClient::socket(dir.path().join("nobody")),
            gate: crate::names::gate::tests::fresh(&store),
            writer,
            clock: Arc::new(Still),
            random: Arc::new(Random::seeded(1)),
            calendar: Calendar::REAL,
            slots: crate::check::slot_queue::SlotQueue::unlimited(),
            contact: "".into(),
            peers_every: 1,
            meters: Arc::default(),
        };
        Self {
            dir,
            store,
            services,
            put_off: PutOff::default(),
        }
    }

    fn group(&self, domain: &str) -> StoredGroup {
        let reader = self.store.reader().unwrap();
        reader.group(domain).unwrap().unwrap()
    }

    /// One look while the gateway gives this answer. Returns the request that the gateway got.
    async fn look(&mut self, answer: &Answer) -> Option<String> {
        let asked = serve_one(&self.dir.path().join("gateway.sock"), answer);
        look_at_one(&mut self.put_off, &self.services).await;
        asked.abort();
        asked.await.ok()
    }
}

fn serve_one(path: &Path, answer: &Answer) -> tokio::task::JoinHandle<String> {
    std::fs::remove_file(path).ok();
    let listener = UnixListener::bind(path).unwrap();
    let answer = serde_json::to_string(answer).unwrap() + "\n";
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (reader, mut writer) = stream.into_split();
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).await.unwrap();
        writer.write_all(answer.as_bytes()).await.unwrap();
        line.trim_end().to_owned()
    })
}

fn asked_for(domain: &str) -> Option<String> {
    Some(format!("{{\"wildcard\":{{\"domain\":\"{domain}\"}}}}"))
}

#[tokio::test]
async fn one_held_group_is_looked_at_at_a_time_and_what_is_found_is_kept() {
    let mut rig = Rig::new(&["one.net", "two.net"]).await;
    let same = Answer::Wildcard(Found::SamePlace {});
    assert_eq!(rig.look(&same).await, asked_for("one.net"));
    let found = rig.group("one.net").wildcard;
    assert_eq!(found.found, Some((Wildcard::SamePlace, NOW)));
    assert_eq!(rig.group("two.net").wildcard, WildcardLook::default());
    let no = Answer::Wildcard(Found::No {});
    assert_eq!(rig.look(&no).await, asked_for("two.net"));
    let found = rig.group("two.net").wildcard;
    assert_eq!(found.found, Some((Wildcard::No, NOW)));
    assert_eq!(rig.look(&no).await, None, "all were looked at");
}

#[tokio::test]
async fn trouble_of_the_domain_is_kept_and_ours_leaves_no_trace() {
    let mut rig = Rig::new(&["one.net"]).await;
    rig.look(&Answer::Offline {}).await;
    look_at_one(&mut rig.put_off, &rig.services).await;
    rig.look(&Answer::Refused {
        message: "what?".to_owned(),
    })
    .await;
    assert_eq!(rig.group("one.net").wildcard, WildcardLook::default());
    assert_eq!(rig.put_off.0.len(), 0);
    let silent = Answer::Wildcard(Found::Unknown {
        why: WildcardTrouble::TimedOut,
    });
    assert_eq!(rig.look(&silent).await, asked_for("one.net"));
    let look = rig.group("one.net").wildcard;
    assert_eq!(
        in_words(&look),
        "; at 2026-09-21T14:13:20Z it could not be determined whether any name below it resolves: its name servers did not answer"
    );
    assert_eq!(rig.look(&silent).await, None, "a day has to pass");
}

#[tokio::test]
async fn a_domain_that_is_out_of_turn_leaves_the_turn_to_others() {
    let mut rig = Rig::new(&["one.net", "two.net"]).await;
    let late = Answer::Deferred {
        why: Deferral::GroupPace,
        retry_after_ms: 1,
    };
    assert_eq!(rig.look(&late).await, asked_for("one.net"));
    assert_eq!(rig.look(&late).await, asked_for("two.net"));
    assert_eq!(rig.look(&late).await, None);
    assert_eq!(rig.group("one.net").wildcard, WildcardLook::default());
    let mut later = |wait| {
        let waiting = vec!["one.net".to_owned()];
        rig.put_off.first_in_turn(waiting, NOW.plus(wait))
    };
    assert_eq!(later(AGAIN_AFTER - Duration::from_millis(1)), None);
    assert_eq!(later(AGAIN_AFTER).as_deref(), Some("one.net"));
}

#[test]
fn no_more_are_put_off_than_are_read_at_once() {
    let mut put_off = PutOff::default();
    for n in 0..100 {
        let domain = format!("n{n}.net");
        put_off.add(domain, Duration::MAX, NOW, Calendar::REAL);
    }
    assert_eq!(put_off.0.len(), PUT_OFF_MAX);
    // At most a day, whatever the gateway says and the clock does.
    let day = Calendar::REAL.wildcard_again();
    assert!(put_off.0.values().all(|until| *until <= NOW.plus(day)));
    assert!(day < Calendar::REAL.week(Jitter(0)));
}

#[test]
fn every_outcome_has_its_words() {
    let check = |wildcard, expect: &str| {
        let look = WildcardLook {
            found: Some((wildcard, Timestamp(0))),
            tried: Some(Timestamp(0)),
            trouble: None,
        };
        assert_eq!(in_words(&look), expect);
    };
    let at = "checked 1970-01-01T00:00:00Z)";
    check(
        Wildcard::SamePlace,
        &format!("; any name below it resolves to the same address (wildcard DNS, {at}"),
    );
    check(
        Wildcard::Apart,
        &format!("; any name below it resolves, each to another address (wildcard DNS, {at}"),
    );
    check(
        Wildcard::No,
        &format!("; made-up names below it do not resolve ({at}"),
    );
    assert_eq!(in_words(&WildcardLook::default()), "");
}
