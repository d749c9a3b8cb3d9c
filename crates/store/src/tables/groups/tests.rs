mod taken_back;

use kit::{NOW, host};
use std::time::Duration;

use admission::{Reserved, Suffixes};
use census::class::PerClass;
use census::group::Place;
use census::transition::transition;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{Store, StoreError};

const REAL: Calendar = Calendar::REAL;
const DAY: Duration = Duration::from_secs(27 * 3600);

struct Census {
    store: Store,
    writer: Writer,
    _dir: TempDir,
}

fn names() -> Arc<Names> {
    Arc::new(Names {
        suffixes: Suffixes::compiled(),
        reserved: Reserved::AllowInLab,
    })
}

fn farm(names: std::ops::Range<u32>) -> Vec<Host> {
    names.map(|n| host(&format!("n{n}.farm.example"))).collect()
}

impl Census {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let store = crate::open(&dir.path().join("census.db")).unwrap();
        store.writer().group_by(names());
        Self {
            writer: store.writer(),
            store,
            _dir: dir,
        }
    }

    async fn add(&self, hosts: Vec<Host>, now: Timestamp) {
        self.writer.add_now(hosts, now).await.unwrap();
    }

    /// Checks all due hosts, finds them alive, and returns their names.
    async fn check_due(&self, now: Timestamp, room: u32) -> Vec<String> {
        let jitters = vec![Jitter(7); usize::try_from(room).unwrap()];
        let wanted = PerClass::each(|_class| room);
        let taken = self.writer.take_due(now, wanted, jitters, REAL).await;
        let taken = taken.unwrap();
        let alive = kit::alive();
        for taken in &taken {
            let change = transition(&taken.record, &alive, now, Jitter(7), REAL);
            self.writer.commit(change).await.unwrap();
        }
        let names = taken.iter().map(|taken| taken.record.host.to_string());
        names.collect()
    }

    fn listed(&self, now: Timestamp) -> Vec<String> {
        let mut names = Vec::new();
        let reader = self.store.reader().unwrap();
        reader
            .listed(now, REAL, |row| {
                names.push(row.host.to_owned());
                Ok::<(), StoreError>(())
            })
            .unwrap();
        names
    }

    fn farm(&self) -> StoredGroup {
        let reader = self.store.reader().unwrap();
        reader.group("farm.example").unwrap().unwrap()
    }

    async fn write(&self, sql: &'static str) {
        let written = self.writer.call(move |c| Ok(c.execute(sql, [])?));
        written.await.unwrap();
    }

    async fn decide(&self, decision: Decision, at: Timestamp) {
        self.decide_about("farm.example", decision, at).await;
    }

    async fn decide_about(&self, domain: &str, decision: Decision, at: Timestamp) {
        let decided = Decided {
            at,
            decision,
            reason: "because".to_owned(),
            who: "operator, by command".to_owned(),
        };
        self.writer
            .decide_group(domain.to_owned(), decided, REAL)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn admitted_names_have_their_group_at_once() {
    let census = Census::new();
    let forgotten = host("n0.gone.example");
    let forget = {
        let host = forgotten.clone();
        move |c: &Connection| crate::known::forgotten::forget(c, 0, &host)
    };
    census.writer.call(forget).await.unwrap();
    let names = [farm(0..60), vec![forgotten]].concat();
    let candidates = names.into_iter().map(|host| crate::Candidate {
        host,
        due: NOW,
        first_seen: NOW,
    });
    let admission = crate::Admission {
        candidates: candidates.collect(),
        ..crate::Admission::default()
    };
    census.writer.admit(admission).await.unwrap();
    let farm = census.farm();
    assert_eq!((farm.group.hosts, farm.held_back), (60, 60));
    let reader = census.store.reader().unwrap();
    assert_eq!(reader.group("gone.example").unwrap(), None);
    assert_eq!(
        census.check_due(NOW, 50).await.len(),
        16,
        "no name is checked outside its group"
    );
}

#[tokio::test] // S68
async fn invented_neighbours_do_not_delist_or_delay_a_host() {
    let census = Census::new();
    census.add(vec![host("social.farm.example")], NOW).await;
    assert_eq!(census.check_due(NOW, 9).await, ["social.farm.example"]);
    census.add(farm(0..50), NOW).await;
    assert!(census.farm().group.is_held());
    assert_eq!(census.listed(NOW), ["social.farm.example"]);
    // The honest host is checked in addition to the one that the group's pace allows.
    let later = NOW.plus(Duration::from_secs(31 * 3600));
    let mut asked = census.check_due(NOW, 9).await;
    asked.extend(census.check_due(later, 9).await);
    assert!(asked.contains(&"social.farm.example".to_owned()));
    assert_eq!(census.listed(later), ["social.farm.example"]);
}

impl Census {
    /// Adds hosts, each below its own domain, that have responded for two weeks.
    async fn add_sources(&self, domains: &[&str]) {
        self.add(domains.iter().map(|name| host(name)).collect(), NOW)
            .await;
        for name in domains {
            let sql = "UPDATE hosts SET state = 'alive', last_alive = ?2, alive_count = 13 WHERE name = ?1";
            let name = (*name).to_owned();
            let put = move |c: &Connection| Ok(c.execute(sql, params![name, NOW.0])?);
            self.writer.call(put).await.unwrap();
        }
    }

    async fn note(&self, host: &Host, source: &str, at: Timestamp) {
        let noted = self.writer.note_namings(vec![host.clone()], source, at);
        noted.await.unwrap();
    }

    /// Makes all hosts of the farm due at `at`, as having responded a number of times.
    async fn make_due(&self, responses: u32, at: Timestamp) {
        let sql = "UPDATE hosts SET due = ?1, last_alive = ?1, alive_count = ?2, in_flight = 0, state = 'alive' \
             WHERE name LIKE '%.farm.example'";
        let put = move |c: &Connection| Ok(c.execute(sql, params![at.0, responses])?);
        self.writer.call(put).await.unwrap();
    }
}

#[tokio::test]
async fn two_independent_sources_free_a_host_after_a_week() {
    let week = REAL.named_at_least();
    let later = NOW.plus(week);
    let soon = Timestamp(later.0 - 1);
    for (namings, responses, at, expect) in [
        (&[("a.net", NOW), ("b.net", NOW)][..], 2, later, true),
        (&[("a.net", NOW), ("b.net", NOW)], 2, soon, false),
        (&[("a.net", NOW), ("b.net", NOW)], 1, later, false),
        (&[("a.net", NOW), ("b.net", soon)], 2, later, false),
        (&[("a.net", NOW), ("a.net", NOW)], 2, later, false),
        (&[("a.net", NOW), ("young.net", NOW)], 2, later, false),
        (&[("a.net", NOW), ("farm.example", NOW)], 2, later, false),
        (&[("a.net", NOW), ("denied.net", NOW)], 2, later, false),
        (&[("a.net", NOW), ("held.net", NOW)], 2, later, false),
    ] {
        let census = Census::new();
        let many: Vec<_> = (0..10).map(|n| format!("n{n}.held.net")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        census.add_sources(&["a.net", "b.net", "denied.net"]).await;
        census.add_sources(&many).await;
        census
            .add(vec![host("young.net"), host("n99.held.net")], NOW)
            .await;
        census.add(farm(0..20), NOW).await;
        census.decide_about("denied.net", Decision::Deny, NOW).await;
        for (source, named) in namings {
            census.note(&farm(0..1)[0], source, *named).await;
        }
        census.make_due(responses, at).await;
        census.check_due(at, 50).await;
        let names = census.listed(at);
        let is_free = names.contains(&"n0.farm.example".to_owned());
        assert_eq!(is_free, expect, "{namings:?} {responses} {at:?}");
        assert!(!names.contains(&"n1.farm.example".to_owned()));
    }
}

#[tokio::test]
async fn evidence_frees_two_hundred_hosts_and_a_decision_wins() {
    let census = Census::new();
    census.add_sources(&["a.net", "b.net"]).await;
    census.add(farm(0..230), NOW).await;
    for source in ["a.net", "b.net"] {
        let noted = census.writer.note_namings(farm(0..230), source, NOW);
        noted.await.unwrap();
    }
    let later = NOW.plus(REAL.named_at_least());
    census.make_due(2, later).await;
    for _ in 0..12 {
        census
            .write("UPDATE hosts SET due = 1, in_flight = 0 WHERE held_back = 1")
            .await;
        census.write("UPDATE grouping SET held_credit = 220").await;
        census.check_due(later, 300).await;
    }
    assert_eq!(census.farm().held_back, 30);
    census.decide(Decision::Deny, later).await;
    let names = census.listed(later);
    assert!(
        !names.iter().any(|name| name.ends_with(".farm.example")),
        "{names:?}"
    );
}

#[tokio::test]
async fn held_groups_get_a_twelfth_of_the_starts() {
    let census = Census::new();
    for n in 0..60 {
        let names = (0..11).map(|m| host(&format!("n{m}.farm{n}.net")));
        census.add(names.collect(), NOW).await;
    }
    let first = census.check_due(NOW, 700).await.len();
    assert_eq!(first, 16, "the credit of a new census");
    census
        .add((0..90).map(|n| host(&format!("o{n}.net"))).collect(), NOW)
        .await;
    let (mut held, mut others) = (0, 0);
    for _ in 0..60 {
        census
            .write("UPDATE hosts SET due = 1 WHERE in_flight = 0 AND last_alive IS NULL")
            .await;
        for name in census.check_due(NOW, 3).await {
            if name.starts_with('o') {
                others += 1
            } else {
                held += 1
            }
        }
    }
    assert_eq!(others, 90);
    assert!((7..=8).contains(&held), "{held}");
}

/// A thousand farms shall not be most of the checks, nor invented neighbours delist a host.
#[tokio::test]
async fn only_the_oldest_host_exceeds_the_share_of_held_groups() {
    let census = Census::new();
    census.add(farm(0..10), NOW).await;
    assert_eq!(census.check_due(NOW, 10).await.len(), 10);
    census.add(farm(10..60), NOW).await;
    census.add(vec![host("other.net")], NOW).await;
    let make_due = "UPDATE hosts SET due = 1 WHERE in_flight = 0";
    let (soon, late) = (NOW.plus(DAY * 4), NOW.plus(DAY * 5));
    for (now, expect) in [
        (soon, vec!["other.net"]),
        (late, vec!["n0.farm.example", "other.net"]),
    ] {
        census.write("UPDATE grouping SET held_credit = 0").await;
        census.write(make_due).await;
        let mut asked = census.check_due(now, 70).await;
        asked.sort();
        assert_eq!(asked, expect, "without room");
    }
    census.write("UPDATE grouping SET held_credit = 55").await;
    census.write(make_due).await;
    let asked = census.check_due(late, 70).await.len();
    assert_eq!(asked, 6, "five of them, and another's");
}

#[tokio::test] // S68
async fn held_group_has_twenty_checks_a_day_and_no_listed_host() {
    let census = Census::new();
    census.add(farm(0..60), NOW).await;
    let (mut now, mut asked) = (NOW, Vec::new());
    for _ in 0..300 {
        census.write("UPDATE grouping SET held_credit = 220").await;
        let names = census.check_due(now, 50).await;
        asked.extend(names.into_iter().map(|name| (name, now)));
        now = now.plus(Duration::from_secs(3600));
    }
    // 300 hours are twelve spans, in which half of the hosts wait for the others.
    assert!((120..=240).contains(&asked.len()), "{}", asked.len());
    let mut hosts: Vec<_> = asked.iter().map(|(name, _)| name).collect();
    hosts.sort();
    hosts.dedup();
    assert_eq!(hosts.len(), 60, "the same ones again and again: {asked:?}");
    assert_eq!(census.listed(now), Vec::<String>::new());
}

#[tokio::test]
async fn one_sick_group_does_not_keep_others_waiting_nor_come_up_again_at_once() {
    let census = Census::new();
    census.add(farm(0..400), NOW).await;
    let later = NOW.plus(Duration::from_secs(1));
    census.add(vec![host("honest.example")], later).await;
    let asked = census.check_due(later, 21).await;
    assert_eq!(asked.len(), 17, "{asked:?}");
    assert!(asked.contains(&"honest.example".to_owned()), "{asked:?}");
    let reader = census.store.reader().unwrap();
    assert_eq!(reader.due(later).unwrap(), 0);
    let mut furthest = later;
    reader
        .each(|record, _| furthest = furthest.max(record.due.unwrap()))
        .unwrap();
    assert!(furthest <= later.plus(REAL.longest()));
}

#[tokio::test]
async fn denied_host_is_neither_taken_nor_listed_and_returns() {
    let census = Census::new();
    census.add(farm(0..3), NOW).await;
    assert_eq!(census.check_due(NOW, 9).await.len(), 3);
    census.decide(Decision::Deny, NOW).await;
    assert_eq!(census.listed(NOW), Vec::<String>::new());
    let later = NOW.plus(DAY * 2);
    assert_eq!(census.check_due(later, 9).await, Vec::<String>::new());
    let one = host("n1.farm.example");
    let by_name = census.writer.take_one(&one, later, Jitter(0), REAL);
    assert!(matches!(by_name.await, Err(StoreError::GroupDenied { .. })));
    census.decide(Decision::None, later).await;
    assert_eq!(census.listed(later).len(), 3);
    assert_eq!(census.check_due(later.plus(DAY), 9).await.len(), 3);
}

#[tokio::test]
async fn allowed_group_returns_to_its_pace_a_day_after_its_check() {
    let census = Census::new();
    census.add(farm(0..30), NOW).await;
    let asked = census.check_due(NOW, 50).await;
    census.decide(Decision::Allow, NOW).await;
    let almost = NOW.plus(REAL.second_check(Jitter(0)) - Duration::from_secs(1));
    let others = census.check_due(almost, 50).await;
    assert!(!others.contains(&asked[0]), "{asked:?} {others:?}");
    let mut all = others.clone();
    all.extend(census.check_due(NOW.plus(DAY), 50).await);
    assert!(all.len() >= 29, "{all:?}");
    assert_eq!(census.farm().held_back, 0);
    assert_eq!(census.listed(NOW.plus(DAY)).len(), 30);
}

#[tokio::test]
async fn to_take_a_decision_back_holds_those_that_have_not_lived_and_no_others() {
    let census = Census::new();
    census.add(farm(0..11), NOW).await;
    census.decide(Decision::Allow, NOW).await;
    let asked = census.check_due(NOW.plus(DAY), 5).await;
    census.decide(Decision::None, NOW.plus(DAY)).await;
    let farm = census.farm();
    assert!(farm.group.is_held());
    assert_eq!(farm.held_back, 6);
    assert_eq!(census.listed(NOW.plus(DAY)).len(), asked.len());
}

#[tokio::test]
async fn private_suffixes_are_not_one_group() {
    let census = Census::new();
    let hosts = (0..30).map(|n| host(&format!("n{n}.github.io")));
    census.add(hosts.collect(), NOW).await;
    let reader = census.store.reader().unwrap();
    assert_eq!(reader.held().unwrap(), HeldCounts::default());
    assert_eq!(census.check_due(NOW, 50).await.len(), 30);
    assert_eq!(census.listed(NOW).len(), 30);
}

#[tokio::test]
async fn another_list_of_suffixes_groups_anew_and_takes_nobody_off_the_list() {
    let census = Census::new();
    let hosts = (0..30).map(|n| host(&format!("n{n}.github.io")));
    census.add(hosts.collect(), NOW).await;
    census.check_due(NOW, 20).await;
    let one = Arc::new(Names {
        suffixes: Suffixes::from_excerpt(b"io\nexample\n", std::path::Path::new("list")).unwrap(),
        reserved: Reserved::AllowInLab,
    });
    census.writer.group_again(one, 0).await.unwrap();
    let reader = census.store.reader().unwrap();
    let group = reader.group("github.io").unwrap().unwrap();
    assert_eq!((group.group.hosts, group.held_back), (30, 10));
    assert_eq!(census.listed(NOW).len(), 20);
    assert_eq!(reader.largest_groups(false, 100).unwrap().len(), 1);
    census.writer.group_again(names(), 0).await.unwrap();
    assert_eq!(reader.held().unwrap(), HeldCounts::default());
    assert_eq!(reader.largest_groups(false, 100).unwrap().len(), 30);
}

#[tokio::test]
async fn another_threshold_holds_and_frees_groups_that_are_there() {
    let census = Census::new();
    census.add(farm(0..8), NOW).await;
    assert!(!census.farm().group.is_over);
    census.writer.set_group_threshold(7).await.unwrap();
    assert_eq!(census.farm().held_back, 8);
    census.writer.set_group_threshold(8).await.unwrap();
    assert!(!census.farm().group.is_over);
    assert_eq!(census.farm().held_back, 0);
}

#[tokio::test]
async fn any_number_of_a_hosters_names_is_free() {
    let census = Census::new();
    census.add(farm(0..12), NOW).await;
    let hosters = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    let listed = census.writer.set_hosters(hosters(&["farm.example"]));
    listed.await.unwrap();
    census.add(farm(12..40), NOW).await;
    let farm = census.farm();
    assert_eq!((farm.group.is_over, farm.held_back), (false, 0));
    assert_eq!(census.check_due(NOW, 30).await.len(), 30);
    census.writer.set_hosters(hosters(&[])).await.unwrap();
    assert_eq!(census.farm().held_back, 10, "those that have not responded");
    let soundness = census
        .store
        .reader()
        .unwrap()
        .soundness(crate::Depth::Quick, DAY);
    assert_eq!(soundness.unwrap().findings, []);
}

#[tokio::test]
async fn nothing_changes_or_deletes_what_was_decided() {
    let census = Census::new();
    census.decide(Decision::Deny, NOW).await;
    census.decide(Decision::Limit { a_day: 5 }, NOW).await;
    census.decide(Decision::None, NOW).await;
    for sql in [
        "DELETE FROM group_decisions",
        "UPDATE group_decisions SET reason = 'another'",
        "INSERT OR REPLACE INTO group_decisions (id, at, domain, decision, reason, who) VALUES (1, 1, 'b.example', 'allow', 'x', 'y')",
    ] {
        let outcome = census.writer.call(move |c| Ok(c.execute(sql, [])?)).await;
        assert!(outcome.is_err(), "{sql}");
    }
    let reader = census.store.reader().unwrap();
    let decided = reader.group_decisions("farm.example").unwrap();
    let decided: Vec<_> = decided.iter().map(|one| one.decision).collect();
    assert_eq!(
        decided,
        [Decision::None, Decision::Limit { a_day: 5 }, Decision::Deny]
    );
    // A domain without hosts and without a decision has no row.
    assert_eq!(reader.group("farm.example").unwrap(), None);
}

/// The listing rule exists twice: here as SQL, and in `census::group`.
#[tokio::test]
async fn the_list_goes_by_the_rule() {
    let census = Census::new();
    census.add(farm(0..1), NOW).await;
    census.check_due(NOW, 1).await;
    let limit = Decision::Limit { a_day: 1 };
    for decision in [Decision::None, Decision::Allow, Decision::Deny, limit] {
        census.decide(decision, NOW).await;
        for (is_over, held_back) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let put = move |c: &Connection| {
                c.execute("UPDATE groups SET is_over = ?1", [is_over])?;
                Ok(c.execute("UPDATE hosts SET held_back = ?1", [held_back])?)
            };
            census.writer.call(put).await.unwrap();
            let reader = census.store.reader().unwrap();
            let stored = reader.record(&farm(0..1)[0]).unwrap().unwrap();
            assert_eq!(
                census.listed(NOW).len() == 1,
                stored.group.unwrap().group.lists(stored.place),
                "{decision:?} {is_over} {held_back}"
            );
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add(u32),
    Forget(u32),
    Live(u32),
    Split(bool),
    Threshold(u32),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u32..12).prop_map(Step::Add),
        2 => (0_u32..12).prop_map(Step::Forget),
        2 => (0_u32..12).prop_map(Step::Live),
        1 => any::<bool>().prop_map(Step::Split),
        1 => (1_u32..8).prop_map(Step::Threshold),
    ]
}

async fn walk(steps: &[Step]) {
    let census = Census::new();
    let mut threshold = 10;
    for step in steps {
        match step {
            Step::Add(n) => {
                census
                    .add(vec![host(&format!("n{n}.github.io"))], NOW)
                    .await
            }
            Step::Forget(n) => {
                let sql = format!("DELETE FROM hosts WHERE name = 'n{n}.github.io'");
                census
                    .writer
                    .call(move |c| Ok(c.execute(&sql, [])?))
                    .await
                    .unwrap();
            }
            Step::Live(n) => {
                let sql = format!("UPDATE hosts SET last_alive = 1 WHERE name = 'n{n}.github.io'");
                census
                    .writer
                    .call(move |c| Ok(c.execute(&sql, [])?))
                    .await
                    .unwrap();
            }
            Step::Split(is_split) => {
                let list: &[u8] = if *is_split {
                    b"host\ngithub.io\n"
                } else {
                    b"io\n"
                };
                let names = Arc::new(Names {
                    suffixes: Suffixes::from_excerpt(list, std::path::Path::new("list")).unwrap(),
                    reserved: Reserved::AllowInLab,
                });
                census.writer.group_again(names, 0).await.unwrap();
            }
            Step::Threshold(at) => {
                threshold = u64::from(*at);
                census.writer.set_group_threshold(*at).await.unwrap();
            }
        }
        let reader = census.store.reader().unwrap();
        let mut places = std::collections::BTreeMap::<String, (u64, u64)>::new();
        let mut hosts = Vec::new();
        reader
            .each(|record, _| hosts.push(record.host.clone()))
            .unwrap();
        for host in &hosts {
            let stored = reader.record(host).unwrap().unwrap();
            let of = places.entry(stored.group.unwrap().domain).or_default();
            of.0 += 1;
            of.1 += u64::from(stored.place == Place::HeldBack);
            if stored.place == Place::Own && stored.record.last_alive.is_none() {
                assert!(of.1 == 0, "{host} has a place where others have none");
            }
        }
        let groups = reader.largest_groups(false, 100).unwrap();
        assert_eq!(groups.len(), places.len());
        for group in groups {
            let (hosts, held_back) = places[&group.domain];
            assert_eq!((group.group.hosts, group.held_back), (hosts, held_back));
            assert_eq!(group.group.is_over, hosts > threshold, "{group:?}");
            assert!(group.group.is_over || held_back == 0, "{group:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After any sequence of steps, sizes are correct, and no host is held back in a small group.
    #[test]
    fn triggers_keep_sizes_and_places_true(steps in proptest::collection::vec(steps(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(walk(&steps));
    }
}
