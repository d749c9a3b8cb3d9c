//! The effect of each request on the rows.

use kit::{NOW, alive, labelled};
use std::time::Duration;

use census::state::{Before, Record, State, Verdict};
use census::transition::{Entry, transition};
use protocol::{DeadReason, Private};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::db::reader::Reader;
use crate::db::tuning::Tuning;
use crate::open::open_tuned;
use crate::tables::row;
use crate::{Candidate, Store, Stored};

const JITTER: Jitter = Jitter(1 << 31);
const REAL: Calendar = Calendar::REAL;
const HOUR: Duration = Duration::from_secs(3600);

mod classes;
mod confirmed;
mod parked;
mod recovery;
mod trouble;

struct Census {
    store: Store,
    writer: Writer,
    dir: TempDir,
}

impl Census {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let tuning = Tuning {
            busy_wait: Duration::from_millis(20),
            ..Tuning::default()
        };
        let store = open_tuned(&dir.path().join("census.db"), tuning).unwrap();
        let writer = store.writer();
        Self { store, writer, dir }
    }

    async fn with(names: &[&str]) -> Self {
        let census = Self::new();
        census.add_now(names).await;
        census
    }

    async fn add_now(&self, names: &[&str]) -> Vec<(Host, AddedAs)> {
        let hosts = names.iter().map(|name| labelled(name)).collect();
        self.writer.add_now(hosts, NOW).await.unwrap()
    }

    /// Adds a candidate that is due at `due`.
    async fn add_due(&self, name: &str, due: Timestamp) {
        let added = Candidate {
            due,
            ..candidate(name)
        };
        self.writer.add(vec![added]).await.unwrap();
    }

    async fn opt_out(&self, name: &str, by: OptedOutBy) -> OptOut {
        let done = self.writer.opt_out(&labelled(name), by, NOW).await;
        done.unwrap()
    }

    async fn release(&self, name: &str, due: Timestamp, note: Option<&str>) {
        let note = note.map(str::to_owned);
        let done = self.writer.release(&labelled(name), due, note).await;
        done.unwrap();
    }

    fn reader(&self) -> Reader {
        self.store.reader().unwrap()
    }

    fn stored(&self, name: &str) -> Stored {
        self.find(name).unwrap()
    }

    fn find(&self, name: &str) -> Option<Stored> {
        self.reader().record(&labelled(name)).unwrap()
    }

    async fn take(&self, name: &str) -> Taken {
        self.take_one(name).await.unwrap().unwrap()
    }

    async fn take_one(&self, name: &str) -> Result<Option<Taken>, StoreError> {
        let host = labelled(name);
        self.writer.take_one(&host, NOW, JITTER, REAL).await
    }

    async fn take_due(&self, limit: u32) -> Vec<String> {
        let wanted = PerClass::each(|_class| limit);
        let jitters = vec![JITTER; usize::try_from(limit).unwrap()];
        let taken = self.writer.take_due(NOW, wanted, jitters, REAL).await;
        let names = taken.unwrap().into_iter();
        names.map(|taken| taken.record.host.to_string()).collect()
    }

    async fn check(&self, name: &str, verdict: &Verdict) -> Committed {
        let taken = self.take(name).await;
        self.commit(&taken, verdict).await
    }

    async fn commit(&self, taken: &Taken, verdict: &Verdict) -> Committed {
        let change = transition(&taken.record, verdict, NOW, JITTER, REAL);
        self.writer.commit(change).await.unwrap()
    }

    async fn put(&self, record: Record) {
        let put = move |c: &Connection| match row::find(c, &record.host)? {
            Some(found) => row::update(c, found.id, &record),
            None => row::insert(c, &record),
        };
        self.writer.call(put).await.unwrap();
    }

    async fn sql(&self, sql: &'static str) {
        let run = move |c: &Connection| Ok(c.execute_batch(sql)?);
        self.writer.call(run).await.unwrap();
    }
}

fn dead() -> Verdict {
    kit::dead(DeadReason::Tls)
}

fn new_and_known(new: &str, known: &str) -> [(Host, AddedAs); 2] {
    [(new, AddedAs::New), (known, AddedAs::Known)].map(|(name, added)| (labelled(name), added))
}

fn candidate(name: &str) -> Candidate {
    Candidate {
        host: labelled(name),
        due: NOW,
        first_seen: NOW,
    }
}

impl Writer {
    /// Adds candidates without counting them.
    async fn add(&self, candidates: Vec<Candidate>) -> Result<Vec<bool>, StoreError> {
        let admission = Admission {
            candidates,
            ..Admission::default()
        };
        self.admit(admission).await
    }
}

#[tokio::test]
async fn the_oldest_due_come_first_and_none_is_taken_twice() {
    let census = Census::new();
    for (name, hours) in [("b", 2), ("a", 1), ("c", 3)] {
        census.add_due(name, NOW.minus(HOUR * hours)).await;
    }
    census.add_due("later", NOW.plus(HOUR)).await;
    assert_eq!(census.take_due(2).await, ["c.example", "b.example"]);
    assert_eq!(census.take_due(2).await, ["a.example"]);
    assert_eq!(census.take_due(2).await, [""; 0]);
}

#[tokio::test]
async fn what_is_taken_is_in_flight_and_due_at_its_ordinary_time_before_the_check_starts() {
    let census = Census::with(&["a"]).await;
    let taken = census.take("a").await;
    let stored = census.stored("a");
    assert!(stored.in_flight);
    assert_eq!(stored.record.due, Some(NOW.plus(REAL.second_check(JITTER))));
    assert_eq!(taken.record, stored.record);
    let again = census.take_one("a").await;
    assert!(
        matches!(again, Err(StoreError::InFlight { .. })),
        "{again:?}"
    );
    let unknown = census.take_one("b").await;
    assert!(matches!(unknown, Ok(None)), "{unknown:?}");
}

#[tokio::test]
async fn a_verdict_is_there_once_it_is_acknowledged() {
    let census = Census::with(&["a"]).await;
    let taken = census.take("a").await;
    let change = transition(&taken.record, &alive(), NOW, JITTER, REAL);
    let settled = census.writer.commit(change.clone()).await.unwrap();
    let nothing_else = Committed {
        forgotten: false,
        overruled: false,
    };
    assert_eq!(settled, nothing_else);
    let stored = census.stored("a");
    assert_eq!(stored.record, change.record);
    assert_eq!(stored.history, [change.entry]);
    assert!(!stored.in_flight);
}

#[tokio::test]
async fn history_keeps_the_last_ten_newest_first() {
    let census = Census::with(&["a"]).await;
    for _ in 0..9 {
        census.check("a", &alive()).await;
    }
    for _ in 0..4 {
        census.check("a", &dead()).await;
    }
    let history = census.stored("a").history.into_iter();
    let words: Vec<_> = history.map(|entry| entry.verdict).collect();
    assert_eq!(words, [["dead"; 4].as_slice(), &["alive"; 6]].concat());
}

#[tokio::test]
async fn who_never_lived_keeps_three_verdicts_until_it_lives() {
    let census = Census::with(&["a"]).await;
    let kept = || census.stored("a").history.len();
    for _ in 0..5 {
        census.check("a", &dead()).await;
    }
    assert_eq!(kept(), 3);
    for _ in 0..9 {
        census.check("a", &alive()).await;
    }
    assert_eq!(kept(), 10);
    // It has been alive once.
    census.check("a", &dead()).await;
    assert_eq!(kept(), 10);
}

#[tokio::test]
async fn a_move_brings_nobody_in_by_itself() {
    let census = Census::with(&["a"]).await;
    let moved = Verdict::Moved { to: labelled("b") };
    census.check("a", &moved).await;
    assert_eq!(census.find("b"), None);
    assert!(!census.stored("a").target_is_alive);
    census.writer.add(vec![candidate("b")]).await.unwrap();
    census.check("b", &alive()).await;
    census.check("a", &moved).await;
    assert!(census.stored("a").target_is_alive);
}

#[tokio::test]
async fn an_opt_out_that_comes_in_during_a_check_is_not_lost_under_its_verdict() {
    for by in [OptedOutBy::Owner, OptedOutBy::Moderator] {
        let census = Census::with(&["a"]).await;
        let taken = census.take("a").await;
        census.opt_out("a", by).await;
        assert!(census.commit(&taken, &alive()).await.overruled);
        let stored = census.stored("a");
        assert_eq!(stored.record.state, State::OptedOut { by });
        assert_eq!((stored.record.due, stored.in_flight), (None, false));
        assert_eq!(stored.record.last_checked, Some(NOW));
    }
}

#[tokio::test]
async fn a_hold_stands_against_a_running_check_but_robots_are_heard() {
    for (verdict, overruled) in [(alive(), true), (Verdict::OptedOut, false)] {
        let census = Census::with(&["a"]).await;
        let taken = census.take("a").await;
        census.writer.park(&labelled("a"), NOW).await.unwrap();
        assert_eq!(census.commit(&taken, &verdict).await.overruled, overruled);
    }
}

#[tokio::test]
async fn a_release_during_an_opt_out_leaves_it_never_due() {
    let census = Census::with(&["a"]).await;
    census.take("a").await;
    census.opt_out("a", OptedOutBy::Owner).await;
    census.release("a", NOW, None).await;
    assert_eq!(census.stored("a").record.due, None);
}

#[tokio::test]
async fn a_release_leaves_the_record_as_it_was_and_keeps_a_note_until_the_next_verdict() {
    let census = Census::with(&["a"]).await;
    let taken = census.take("a").await;
    let soon = NOW.plus(HOUR);
    let note = "é".repeat(200);
    census.release("a", soon, Some(&note)).await;
    let stored = census.stored("a");
    let due_soon = Record {
        due: Some(soon),
        ..taken.record
    };
    assert_eq!(stored.record, due_soon);
    assert_eq!(stored.last_note, Some("é".repeat(150)));
    assert!(stored.history.is_empty() && !stored.in_flight);
    census.check("a", &alive()).await;
    assert_eq!(census.stored("a").last_note, None);
    let unknown = census.writer.release(&labelled("b"), soon, None).await;
    assert!(matches!(unknown, Err(StoreError::Unknown { .. })));
}

#[tokio::test]
async fn faults_are_counted_until_a_verdict_comes() {
    let census = Census::with(&["a"]).await;
    let a = labelled("a");
    let faults = async || census.writer.count_fault(&a).await.unwrap();
    assert_eq!(faults().await, 1);
    assert_eq!(faults().await, 2);
    assert_eq!(census.take("a").await.faults, 2);
    census.release("a", NOW, None).await;
    assert_eq!(faults().await, 3);
    census.check("a", &alive()).await;
    assert_eq!(faults().await, 1);
    let unknown = census.writer.count_fault(&labelled("b")).await;
    assert!(matches!(unknown, Err(StoreError::Unknown { .. })));
}

#[tokio::test]
async fn a_forgotten_name_stays_out_until_it_is_added_by_hand() {
    let census = Census::new();
    let year_ago = Candidate {
        first_seen: NOW.minus(HOUR * 24 * 366),
        ..candidate("a")
    };
    census.writer.add(vec![year_ago]).await.unwrap();
    for _ in 0..3 {
        assert!(!census.check("a", &dead()).await.forgotten);
    }
    assert!(census.check("a", &dead()).await.forgotten);
    assert_eq!(census.find("a"), None);
    let is_forgotten = || census.reader().is_forgotten(&labelled("a")).unwrap();
    assert!(is_forgotten());
    let named = ["a", "b", "b"].map(candidate).to_vec();
    let added = census.writer.add(named).await.unwrap();
    assert_eq!(added, [false, true, false]);
    let named = ["a", "b", "c"].map(labelled).to_vec();
    let unknown = census.writer.unknown(named).await.unwrap();
    assert_eq!(unknown, [labelled("c")]);
    assert_eq!(census.find("a"), None);
    let by_hand = census.add_now(&["a", "b"]).await;
    assert_eq!(by_hand, new_and_known("a", "b"));
    let discovered = Record::discovered(labelled("a"), NOW, NOW.minus(HOUR * 48));
    assert_eq!(census.stored("a").record, discovered);
    assert!(!is_forgotten());
}

#[tokio::test]
async fn naming_a_known_host_does_not_make_it_due_sooner() {
    let census = Census::with(&["a"]).await;
    census.check("a", &alive()).await;
    let before = census.stored("a");
    census.writer.add(vec![candidate("a")]).await.unwrap();
    census.add_now(&["a"]).await;
    assert_eq!(census.stored("a"), before);
}

#[tokio::test]
async fn a_long_list_is_added_whole() {
    let census = Census::new();
    let names: Vec<_> = (0..1234).map(|n| candidate(&format!("n{n}"))).collect();
    let added = census.writer.add(names).await.unwrap();
    assert_eq!(added, [true; 1234]);
    let names = (0..1235).map(kit::numbered).collect();
    let unknown = census.writer.unknown(names).await.unwrap();
    assert_eq!(unknown, [kit::numbered(1234)]);
}

#[tokio::test] // S66
async fn opt_out_is_undone_only_by_the_one_who_made_it() {
    use OptedOutBy::{Moderator, Owner, Robots};
    let census = Census::with(&["a"]).await;
    let opt_in = async |name, by| {
        let done = census.writer.opt_in(&labelled(name), by, NOW).await;
        done.unwrap()
    };
    assert_eq!(opt_in("a", Owner).await, OptIn::NotOptedOut);
    assert_eq!(census.opt_out("a", Owner).await, OptOut::Done);
    for by in [Moderator, Robots] {
        assert_eq!(opt_in("a", by).await, OptIn::NotTheirs { by: Owner });
    }
    let refused = census.take_one("a").await;
    assert!(matches!(refused, Err(StoreError::NeverAsked { .. })));
    assert_eq!(opt_in("a", Owner).await, OptIn::Done);
    let back = census.stored("a").record;
    assert_eq!((back.state, back.due), (State::Discovered, Some(NOW)));
    assert_eq!(opt_in("b", Owner).await, OptIn::Unknown);
    census.check("a", &alive()).await;
    census.writer.record_dump(dump(NOW, 1)).await.unwrap();
    let done = census.opt_out("a", Owner).await;
    assert_eq!(done, OptOut::DoneListed, "the list may name it");
}

#[tokio::test]
async fn a_word_of_mouth_replaces_what_robots_said_and_not_the_other_way_round() {
    let census = Census::with(&["a"]).await;
    census.check("a", &Verdict::OptedOut).await;
    let by = OptedOutBy::Owner;
    assert_eq!(census.opt_out("a", by).await, OptOut::Done);
    let robots = census.opt_out("a", OptedOutBy::Robots).await;
    assert_eq!(robots, OptOut::Stands { by });
}

#[tokio::test]
async fn an_unknown_host_that_opts_out_cannot_be_brought_in_by_a_peers_list() {
    let census = Census::new();
    census.opt_out("a", OptedOutBy::Owner).await;
    let added = census.writer.add(vec![candidate("a")]).await.unwrap();
    assert_eq!(added, [false]);
    census.add_now(&["a"]).await;
    assert_eq!(census.take_due(9).await, [""; 0]);
}

#[tokio::test]
async fn dumps_are_remembered() {
    let census = Census::new();
    let reader = census.reader();
    assert_eq!(reader.last_dump().unwrap(), None);
    let empty = dump(NOW.minus(HOUR), 0);
    for dump in [empty, dump(NOW, 7)] {
        census.writer.record_dump(dump).await.unwrap();
    }
    // The last one written counts, whatever its time.
    let earlier = NOW.minus(HOUR);
    let last = DumpRecord {
        is_full: false,
        ..dump(earlier, 8)
    };
    census.writer.record_dump(last).await.unwrap();
    assert_eq!(reader.last_dump().unwrap(), Some(last));
    assert_eq!(reader.last_full_dump().unwrap(), Some(7));
    let first = [0, 1, 9].map(|names_min| reader.first_dump(names_min).unwrap());
    assert_eq!(first, [Some(empty.at), Some(NOW), None]);
}

fn dump(at: Timestamp, names: u64) -> DumpRecord {
    let is_full = true;
    DumpRecord { at, names, is_full }
}

#[tokio::test]
async fn hosts_never_checked_are_counted_by_what_they_wait_for() {
    let census = Census::with(&["a", "b", "c", "d", "e", "f"]).await;
    census.check("a", &dead()).await;
    let prepare = "UPDATE hosts SET last_note = 'turn' WHERE name IN ('b.example', 'c.example'); \
         UPDATE hosts SET last_note = 'family' WHERE name = 'd.example'; \
         INSERT INTO groups (id, domain) VALUES (1, 'example'); \
         UPDATE hosts SET group_id = 1 WHERE name IN ('a.example', 'b.example', 'e.example'); \
         UPDATE groups SET is_over = 1; \
         UPDATE hosts SET held_back = 1 WHERE group_id = 1";
    census.sql(prepare).await;
    let reader = census.reader();
    let counts = || {
        let counts = reader.unchecked(["turn", "-", "-", "family"]).unwrap();
        (counts.hosts, counts.held, counts.noted)
    };
    assert_eq!(counts(), (5, 2, [1, 0, 0, 1]));
    let allow = "UPDATE groups SET decision = 'allow', reason = 'a hoster', decided_at = 1";
    census.sql(allow).await;
    assert_eq!(counts(), (5, 0, [2, 0, 0, 1]));
}

#[tokio::test]
async fn no_verdict_changes_another_row_or_a_first_sight() {
    let census = Census::with(&["a", "b"]).await;
    let taken = census.take("a").await;
    let before = census.stored("b");
    let mut change = transition(&taken.record, &alive(), NOW, JITTER, REAL);
    change.record.first_seen = Timestamp(0);
    change.entry = Entry {
        reason: None,
        ..change.entry
    };
    census.writer.commit(change).await.unwrap();
    assert_eq!(census.stored("a").record.first_seen, NOW);
    assert_eq!(census.stored("b"), before);
    let unknown = Record::discovered(labelled("c"), NOW, NOW);
    let unknown = transition(&unknown, &alive(), NOW, JITTER, REAL);
    let unknown = census.writer.commit(unknown).await;
    assert!(matches!(unknown, Err(StoreError::Unknown { .. })));
}

#[tokio::test]
async fn an_imported_record_is_kept_and_a_known_host_stays() {
    let census = Census::with(&["known"]).await;
    let record = |name| Record {
        state: State::Dead,
        ..Record::discovered(labelled(name), NOW, NOW)
    };
    let before = census.stored("known");
    let imported = census.writer.import(vec![record("new"), record("known")]);
    assert_eq!(imported.await.unwrap(), new_and_known("new", "known"));
    assert_eq!(census.stored("new").record, record("new"));
    assert_eq!(census.stored("known"), before);
}
