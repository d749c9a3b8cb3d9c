//! The gate over a real store: what it admits, what it writes, and what a failing store leaves.

use kit::{NOW, host};
use std::path::Path;
use std::time::Duration;

use admission::counters::Row;
use admission::{HashKey, Limit, Limits, Reserved, Rules, Suffixes, TestDomain};
use census::class::PerClass;
use census::time::Calendar;
use census::transition::transition;
use store::{DumpRecord, Store};
use tempfile::TempDir;

use super::*;

/// The rule for names outside the lab.
pub(crate) fn names() -> Arc<Names> {
    Arc::new(Names {
        suffixes: Suffixes::compiled(),
        reserved: Reserved::Refuse,
    })
}

/// A gate with the built-in rules and an empty memory.
pub(crate) fn fresh(store: &Store) -> NameGate {
    with_rules(store, "public default 20")
}

/// A gate with these rules and an empty memory.
pub(crate) fn with_rules(store: &Store, rules: &str) -> NameGate {
    let remembered = Remembered {
        hash_key: HashKey([1; 16]),
        window_start_s: None,
        counters: Vec::new(),
        waiting: Vec::new(),
        young_left_s: 0,
    };
    let mut terms = Files::default().read().unwrap();
    terms.policy.rules = Rules::parse(rules.as_bytes(), Path::new("rules")).unwrap();
    NameGate::new(store.writer(), names(), Files::default(), terms, remembered).unwrap()
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

struct Rig {
    dir: TempDir,
    store: Store,
    files: Files,
    gate: NameGate,
}

impl Rig {
    /// A gate with these rules, and with these limits per source, per shared suffix and in total.
    async fn new(rules: &str, limits: [u32; 3]) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("rules");
        std::fs::write(&path, rules).unwrap();
        let [source, shared_suffix, total] = limits.map(|number| Limit::new(number).unwrap());
        let files = Files {
            rules: Some(path),
            deny: Some(dir.path().join("deny")),
            limits: Limits {
                source,
                shared_suffix,
                total,
            },
            ..Files::default()
        };
        std::fs::write(dir.path().join("deny"), "bad.net # a farm\n").unwrap();
        let store = store::open(&dir.path().join("census.db")).unwrap();
        let gate = open(&store, &files).await;
        Self {
            dir,
            store,
            files,
            gate,
        }
    }

    /// As after a crash: the gate's memory is lost.
    async fn restarted(self) -> Self {
        let Self {
            dir,
            store,
            files,
            gate,
        } = self;
        drop(gate);
        store.close();
        let store = store::open(&dir.path().join("census.db")).unwrap();
        let gate = open(&store, &files).await;
        Self {
            dir,
            store,
            files,
            gate,
        }
    }

    async fn named_at(&self, names: &[&str], by: &str, now: Timestamp) {
        self.named_as(names, by, Origin::Stranger, now).await;
    }

    async fn named_as(&self, names: &[&str], by: &str, origin: Origin, now: Timestamp) {
        let hosts = names.iter().map(|name| host(name)).collect();
        let by = host(by);
        self.gate.named(hosts, &by, origin, now).await.unwrap();
    }

    async fn named(&self, names: &[&str], by: &str) {
        self.named_at(names, by, NOW).await;
    }

    fn known(&self) -> Vec<String> {
        let mut known = Vec::new();
        let reader = self.store.reader().unwrap();
        reader
            .each(|record, _| known.push(record.host.to_string()))
            .unwrap();
        known
    }

    /// A server that shares no bit with `other`: the hash of sources has a random key.
    async fn independent_of(&self, other: &str) -> String {
        let state = self.gate.0.state.lock().await;
        let bit = |source: &str| state.counters.source(source).0 % 64;
        let mut sources = (0..).map(|n| format!("y{n}.net"));
        sources.find(|source| bit(source) != bit(other)).unwrap()
    }

    async fn try_waiting(&self, now: Timestamp) -> u64 {
        self.gate.try_waiting(now).await.unwrap()
    }

    async fn assert_written(&self) {
        let state = self.gate.0.state.lock().await;
        let remembered = self.gate.0.writer.remembered().await.unwrap();
        let sorted = |mut rows: Vec<Row>| {
            rows.sort_by_key(|row| (row.table, row.id));
            rows
        };
        let mut again = Counters::resume(remembered.hash_key, remembered.window_start_s);
        for row in remembered.counters {
            again.put(row).unwrap();
        }
        // The start of a window alone is not worth a write: it follows from the time.
        again.enter(state.counters.window_start_s().unwrap());
        assert_eq!(
            sorted(again.rows().collect()),
            sorted(state.counters.rows().collect())
        );
        assert_eq!(remembered.waiting.len(), state.waiting.len());
        for (name, waiter) in remembered.waiting {
            assert_eq!(state.waiting.waiter(&name), Some(&waiter), "{name}");
        }
    }
}

async fn open(store: &Store, files: &Files) -> NameGate {
    let names = Names {
        suffixes: Suffixes::compiled(),
        reserved: Reserved::Refuse,
    };
    NameGate::open(store.writer(), names, files.clone())
        .await
        .unwrap()
}

const AMPLE: u32 = 1000;

#[tokio::test]
async fn what_has_room_comes_in_and_the_rest_waits_over_a_restart_too() {
    let rig = Rig::new("public default 2", [AMPLE; 3]).await;
    rig.named(&["a.farm.net", "b.farm.net", "c.farm.net"], "x.net")
        .await;
    rig.assert_written().await;
    let rig = rig.restarted().await;
    let other = rig.independent_of("x.net").await;
    rig.named(&["c.farm.net", "d.farm.net", "other.net"], &other)
        .await;
    assert_eq!(rig.known(), ["a.farm.net", "b.farm.net", "other.net"]);
    rig.assert_written().await;
    let shown = rig.gate.shown();
    assert_eq!((shown.admitted, shown.refused, shown.waiting), (3, 2, 2));
    let waiter = rig.store.reader().unwrap().waiter(&host("c.farm.net"));
    assert_eq!(waiter.unwrap().unwrap().named_by.count(), 2);
}

#[tokio::test]
async fn only_an_independent_sources_naming_of_a_held_name_is_noted() {
    let rig = Rig::new("public default 20", [AMPLE; 3]).await;
    let farm: Vec<_> = (0..12).map(|n| format!("n{n}.farm.net")).collect();
    let farm: Vec<_> = farm.iter().map(String::as_str).collect();
    rig.named(
        &[&farm[..], &["old.net", "young.net", "free.net"]].concat(),
        "x.net",
    )
    .await;
    for (name, alive_count) in [("old.net", 20), ("young.net", 3), ("n1.farm.net", 20)] {
        let reader = rig.store.reader().unwrap();
        let record = reader.record(&host(name)).unwrap().unwrap().record;
        let mut change = transition(&record, &kit::alive(), NOW, Jitter(0), Calendar::REAL);
        change.record.alive_count = alive_count;
        rig.store.writer().commit(change).await.unwrap();
    }
    let later = NOW.plus(Calendar::REAL.named_at_least());
    let reader = rig.store.reader().unwrap();
    for (by, expect) in [
        ("young.net", 0),
        ("n1.farm.net", 0),
        ("old.net", 1),
        ("a.old.net", 1),
    ] {
        rig.gate.refresh_held().await.unwrap();
        rig.named(&["n0.farm.net", "free.net"], by).await;
        let evidence = reader.evidence(&host("n0.farm.net"), later, Calendar::REAL);
        assert_eq!(evidence.unwrap().unwrap().sources, expect, "{by}");
    }
}

#[tokio::test]
async fn neighbours_by_name_enter_together_from_the_first() {
    let rig = Rig::new("public default 1", [550, AMPLE, AMPLE]).await;
    let told: Vec<_> = (0..600)
        .rev()
        .map(|n| format!("n{n:03}.net"))
        .chain(["n000.net".to_owned()])
        .collect();
    let told: Vec<_> = told.iter().map(String::as_str).collect();
    rig.named(&told, "x.net").await;
    let mut expected: Vec<_> = (0..549).map(|n| format!("n{n:03}.net")).collect();
    expected.push("n599.net".to_owned());
    assert_eq!(rig.known(), expected);
    rig.assert_written().await;
}

#[tokio::test]
async fn a_known_name_is_free_and_moves_nothing() {
    let rig = Rig::new("public default 9", [1, AMPLE, AMPLE]).await;
    rig.gate
        .brought(vec![host("a.farm.net")], NOW)
        .await
        .unwrap();
    let before = rig.store.reader().unwrap().record(&host("a.farm.net"));
    let names = ["a.farm.net"; 5];
    rig.named_at(&names, "x.net", Timestamp(NOW.0 + 5)).await;
    let after = rig.store.reader().unwrap().record(&host("a.farm.net"));
    assert_eq!(before.unwrap(), after.unwrap());
    assert_eq!(rig.gate.shown().admitted, 0);
    // The source's room is untouched, however often its list repeats a name.
    rig.named(&["b.farm.net", "b.farm.net"], "x.net").await;
    assert_eq!(rig.known(), ["a.farm.net", "b.farm.net"]);
    assert_eq!(rig.gate.shown().waiting, 0);
    rig.assert_written().await;
}

#[tokio::test]
async fn known_names_cost_neither_the_lock_nor_the_store() {
    let rig = Rig::new("public default 9", [AMPLE, AMPLE, AMPLE]).await;
    let names: Vec<_> = (0..300).map(|n| format!("n{n}.net")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    rig.named(&names, "x.net").await;
    // They move up once.
    rig.named(&names, "y.net").await;
    assert_eq!(rig.known().len(), 300);
    let writer = rig.store.writer();
    let recognised = names.iter().filter(|name| writer.recognises(&host(name)));
    let recognised: Vec<&str> = recognised.copied().collect();
    assert!(recognised.len() > 250, "{}", recognised.len());
    // A name that needed the lock would wait forever.
    let state = rig.gate.0.state.lock().await;
    let mut passed = 0;
    for name in recognised {
        let (named, by) = (vec![host(name)], host("y.net"));
        let naming = rig.gate.named(named, &by, Origin::Stranger, NOW);
        let mut naming = std::pin::pin!(naming);
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(naming.as_mut().poll(context)));
        passed += i32::from(polled.await.is_ready());
    }
    drop(state);
    assert!(passed > 230, "{passed}");
}

#[tokio::test]
async fn servers_below_one_domain_are_one_source() {
    let rig = Rig::new("public default 9", [2, AMPLE, AMPLE]).await;
    for (n, by) in ["a.x.net", "b.x.net", "x.net", "y.net"].iter().enumerate() {
        rig.named(&[&format!("n{n}.net")], by).await;
    }
    assert_eq!(rig.known(), ["n0.net", "n1.net", "n3.net"]);
}

/// Otherwise a stranger's list would have the census probe a quarter of a million outsiders.
#[tokio::test]
async fn only_the_operators_lists_are_taken_whole_and_only_in_youth() {
    let rig = Rig::new("public default 9", [1, AMPLE, 3]).await;
    rig.named_as(
        &["a.net", "b.net", "c.net", "d.net"],
        "seed.net",
        Origin::Operators,
        NOW,
    )
    .await;
    assert_eq!((rig.known().len(), rig.gate.shown().admitted), (4, 4));
    let young = rig.gate.shown().text();
    rig.named(&["e.net", "f.net"], "x.net").await;
    assert_eq!(rig.known().len(), 5, "the total has its room for others");
    let writer = rig.store.writer();
    let day = Duration::from_secs(24 * 3600);
    rig.gate.grow_older(day).await.unwrap();
    let named = ["g.net", "h.net"];
    rig.named_as(&named[..1], "seed.net", Origin::Operators, NOW)
        .await;
    assert_eq!(rig.known().len(), 6, "no list was published yet");
    let dump = DumpRecord {
        at: NOW,
        names: 1,
        is_full: false,
    };
    writer.record_dump(dump).await.unwrap();
    rig.gate.grow_older(day).await.unwrap();
    let rig = rig.restarted().await;
    rig.named_as(&named, "seed.net", Origin::Operators, NOW)
        .await;
    assert_eq!(rig.known().len(), 6, "it is old, for good");
    assert!(young.ends_with("taken whole") && !rig.gate.shown().text().contains("whole"));
}

#[tokio::test]
async fn hosts_that_more_domains_name_are_checked_first() {
    let rig = Rig::new("public default 9", [AMPLE; 3]).await;
    rig.named(&["a.net", "b.net", "c.net"], "x.net").await;
    rig.named(&["c.net"], "y.net").await;
    rig.named(&["d.net"], "z.net").await;
    rig.gate.brought(vec![host("e.net")], NOW).await.unwrap();
    let wanted = PerClass {
        new: 9,
        ..PerClass::default()
    };
    let jitters = vec![Jitter(0); 9];
    let writer = rig.store.writer();
    let taken = writer.take_due(NOW, wanted, jitters, Calendar::REAL).await;
    let taken = taken.unwrap();
    let order: Vec<_> = taken
        .iter()
        .map(|taken| taken.record.host.as_str())
        .collect();
    assert_eq!(order[..2], ["e.net", "c.net"], "{order:?}");
    assert_eq!(order.last(), Some(&"b.net"), "its source's second");
}

#[tokio::test]
async fn the_operator_needs_no_room_and_is_held_to_his_own_bans() {
    let rig = Rig::new("domain farm.net 0", [0, 0, 0]).await;
    let hosts = ["a.net", "b.farm.net", "bad.net", "a.bad.net"].map(host);
    let brought = rig.gate.brought(hosts.to_vec(), NOW).await.unwrap();
    let words: Vec<_> = brought
        .iter()
        .map(|(host, brought)| match brought {
            Brought::Refused(refusal) => format!("{host}: {refusal}"),
            Brought::New | Brought::Known => format!("{host}: {brought:?}"),
        })
        .collect();
    assert_eq!(
        words,
        [
            "b.farm.net: the rules admit nobody by `farm.net`",
            "bad.net: the operator's deny-list has `bad.net`: a farm",
            "a.bad.net: the operator's deny-list has `bad.net`: a farm",
            "a.net: New"
        ]
    );
    rig.named(&["b.farm.net", "a.bad.net", "c.net"], "x.net")
        .await;
    assert_eq!(rig.known(), ["a.net"]);
    assert_eq!(
        rig.gate.shown().waiting,
        0,
        "the banned, and whom no rule knows, don't wait"
    );
}

#[tokio::test]
async fn those_who_wait_come_in_when_there_is_room_the_most_often_named_first() {
    let rig = Rig::new("public default 1", [AMPLE, AMPLE, 1]).await;
    rig.named(&["first.net"], "x.net").await;
    rig.named(&["early.net", "known.net"], "x.net").await;
    let other = rig.independent_of("x.net").await;
    rig.named(&["known.net"], &other).await;
    let later = |days: i64| Timestamp(NOW.0 + days * DAY_MS);
    assert_eq!(rig.try_waiting(Timestamp(later(1).0 - 1)).await, 0);
    assert_eq!(rig.try_waiting(later(1)).await, 1);
    assert_eq!(rig.known(), ["first.net", "known.net"]);
    rig.assert_written().await;
    let rig = rig.restarted().await;
    assert_eq!(
        rig.try_waiting(later(1)).await,
        0,
        "a restart makes no room"
    );
    assert_eq!(rig.try_waiting(later(2)).await, 1);
    assert_eq!(rig.known(), ["early.net", "first.net", "known.net"]);
    assert_eq!(rig.try_waiting(later(3)).await, 0);
    rig.assert_written().await;
}

#[tokio::test]
async fn who_came_in_otherwise_or_was_not_named_for_long_waits_no_more() {
    let rig = Rig::new("public default 1", [AMPLE, AMPLE, 0]).await;
    rig.named(&["a.net", "b.net", "c.net"], "x.net").await;
    rig.gate.brought(vec![host("a.net")], NOW).await.unwrap();
    assert_eq!(rig.gate.shown().waiting, 2);
    rig.try_waiting(NOW).await;
    rig.assert_written().await;
    let later = Timestamp(NOW.0 + 31 * DAY_MS);
    rig.named_at(&["c.net"], "x.net", Timestamp(NOW.0 + 2 * DAY_MS))
        .await;
    rig.try_waiting(later).await;
    assert_eq!(rig.gate.shown().waiting, 1);
    rig.assert_written().await;
}

/// A sample of a flood of ten million names, in short lists and in long ones, whose batches are
/// larger. All names below one domain take a bounded number of rows, writes and look-ups.
#[tokio::test]
async fn a_flood_below_one_domain_keeps_a_bounded_number_of_rows_and_honest_names_come_in() {
    let Limits {
        source,
        shared_suffix,
        total,
    } = Limits::ORDINARY;
    let limits = [source, shared_suffix, total].map(Limit::get);
    for (list, passed_over) in [(2000, 9000), (LONG_LIST_MIN, 97_000)] {
        let rig = Rig::new("public default 20", limits).await;
        let names: Vec<_> = (0..list).map(|n| format!("n{n}.flood.net")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for server in 0..5 {
            rig.named(&names, &format!("s{server}.net")).await;
        }
        rig.named(&["honest.net"], "s0.net").await;
        assert_eq!(rig.known().len(), 21);
        let shown = rig.gate.shown();
        assert_eq!((shown.admitted, shown.waiting), (21, 100));
        assert!(shown.passed_over > passed_over, "{shown:?}");
        rig.assert_written().await;
    }
}

#[tokio::test]
async fn when_the_store_fails_nothing_is_counted_and_who_waited_waits() {
    let rig = Rig::new("public default 1", [AMPLE, AMPLE, AMPLE]).await;
    rig.named(&["a.farm.net", "b.farm.net"], "x.net").await;
    let elsewhere = TempDir::new().unwrap();
    let closed = store::open(&elsewhere.path().join("census.db")).unwrap();
    let closed_writer = closed.writer();
    closed.close();
    let later = Timestamp(NOW.0 + DAY_MS);
    let names = ["b.farm.net", "c.farm.net", "new.net"];
    {
        let mut state = rig.gate.0.state.lock().await;
        state.enter(later);
        let source = state.source("y.net", Origin::Stranger, &closed_writer);
        let asking =
            names.map(|name| Asking::named(host(name), &rig.gate.names(), source, "y.net"));
        let terms = rig.gate.terms();
        let failed = state
            .let_in(asking.into(), &terms, &closed_writer, later)
            .await;
        assert!(matches!(failed, Err(StoreError::Closed)), "{failed:?}");
        assert_eq!(state.counters.rows().count(), 0);
        let waits = |name: &str| state.waiting.waiter(name).is_some();
        assert!(waits("b.farm.net") && waits("c.farm.net") && !waits("new.net"));
    }
    rig.named_at(&names, "y.net", later).await;
    assert_eq!(rig.known(), ["a.farm.net", "b.farm.net", "new.net"]);
    rig.assert_written().await;
}

#[tokio::test]
async fn what_is_wrong_changes_nothing_and_what_is_right_is_in_force_at_once() {
    let rig = Rig::new("public default 1", [AMPLE; 3]).await;
    rig.named(&["a.farm.net", "b.farm.net"], "x.net").await;
    let rules = rig.dir.path().join("rules");
    std::fs::write(&rules, "public default 2\ndomain\n").unwrap();
    std::fs::write(rig.dir.path().join("deny"), "*.x.net\n").unwrap();
    let wrong = rig.gate.reload().await.unwrap_err();
    assert!(
        wrong.contains("/rules:2: ") && wrong.contains("/deny:1: "),
        "{wrong}"
    );
    rig.named(&["b.farm.net", "c.bad.net"], "x.net").await;
    assert_eq!(rig.known(), ["a.farm.net"]);
    std::fs::write(&rules, "public default 2\n").unwrap();
    std::fs::write(rig.dir.path().join("deny"), "b.farm.net\n").unwrap();
    let right = rig.gate.reload().await.unwrap();
    assert!(
        right.contains("2 a registered domain") && right.contains("1 denied"),
        "{right}"
    );
    rig.try_waiting(NOW).await;
    rig.named(&["b.farm.net", "c.bad.net", "c.farm.net"], "x.net")
        .await;
    assert_eq!(rig.known(), ["a.farm.net", "c.bad.net", "c.farm.net"]);
    assert_eq!(rig.gate.shown().waiting, 0, "who is denied waits no more");
    rig.gate.denies(&host("x.b.farm.net")).unwrap_err();
    rig.gate.denies(&host("xb.farm.net")).unwrap();
}

#[test]
fn rounds_come_every_ten_minutes_with_a_new_window_and_on_demand() {
    let mut rounds = retry::Rounds::default();
    assert!(rounds.begin(Some(0), 1000));
    assert!(!rounds.begin(Some(0), 1599));
    assert!(rounds.begin(Some(0), 1600));
    assert!(rounds.begin(Some(86_400), 1601));
    assert!(!rounds.begin(Some(86_400), 1602));
    rounds.hurry();
    assert!(rounds.begin(Some(86_400), 1603));
    assert!(rounds.begin(Some(86_400), 5), "the clock was set back");
}

#[tokio::test]
async fn status_learns_from_the_rules_in_force_whether_the_test_domain_is_taken() {
    let dir = TempDir::new().unwrap();
    let store = store::open(&dir.path().join("census.db")).unwrap();
    for (test_domain, expect) in [(TestDomain::Refuse, false), (TestDomain::Allow, true)] {
        let files = Files {
            test_domain,
            ..Files::default()
        };
        let gate = open(&store, &files).await;
        assert_eq!(gate.shown().takes_test_domain, expect);
    }
}
