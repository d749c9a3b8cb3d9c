use census::listing::is_listed;
use census::state::{Before, OptedOutBy, Record, State, StateName};
use census::time::{Calendar, Timestamp};
use kit::{NOW, numbered};
use proptest::prelude::*;
use protocol::Host;
use protocol::Instance;
use rusqlite::Connection;

use crate::StoreError;
use crate::db::migrate;
use crate::db::reader::Reader;
use crate::queries::listed::Listed;
use crate::tables::row;

fn reader() -> Reader {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::SCHEMA.to_latest(&mut connection).unwrap();
    Reader::new(connection)
}

fn any_state() -> impl Strategy<Value = State> {
    let before = || {
        prop_oneof![
            3 => Just(Before::Alive),
            1 => Just(Before::Discovered),
            1 => Just(Before::Dead),
            1 => Just(Before::Moved),
        ]
    };
    let target = || (0..12_usize).prop_map(numbered);
    prop_oneof![
        3 => Just(State::Alive),
        3 => (before(), 1..9_u32, any::<bool>(), any::<bool>()).prop_map(
            |(before, count, gone, last)| State::Dying { before, count, gone, gone_last: gone && last }
        ),
        3 => (before(), 1..9_u32, target()).prop_map(
            |(before, count, target)| State::Moving { before, count, target }
        ),
        1 => target().prop_map(|target| State::Moved { target }),
        1 => Just(State::Discovered),
        1 => Just(State::Dead),
        1 => Just(State::OptedOut { by: OptedOutBy::Robots }),
        1 => Just(State::OptedOut { by: OptedOutBy::Owner }),
        1 => Just(State::Parked),
    ]
}

/// Rows of all kinds, with ages around the limit of 14 days.
fn any_records() -> impl Strategy<Value = Vec<Record>> {
    let hours_ago = prop_oneof![0..400_i64, 335..338_i64];
    let last_alive = proptest::option::weighted(0.9, (hours_ago, -1..2_i64));
    let instance = proptest::option::of(any::<bool>()).prop_map(|open_registrations| Instance {
        open_registrations,
        ..kit::software("mastodon", "4.5.0")
    });
    let hidden = proptest::bool::weighted(0.2);
    let record = (any_state(), hidden, last_alive, instance);
    proptest::collection::vec(record, 0..12).prop_map(|records| {
        records
            .into_iter()
            .enumerate()
            .map(|(n, (state, hidden, last_alive, instance))| Record {
                due: (!state.is_never_asked()).then_some(NOW),
                state,
                hidden,
                last_alive: last_alive
                    .map(|(hours, millis)| Timestamp(NOW.0 - hours * 3_600_000 + millis)),
                instance,
                ..Record::discovered(numbered(n), NOW, NOW)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn the_list_in_sql_is_the_list_of_the_rules(records in any_records()) {
        let reader = reader();
        for record in &records {
            insert(&reader, record);
        }
        let is_alive = |name: &Host| records.iter().any(|r| r.host == *name && r.state == State::Alive);
        let mut expect: Vec<(String, Instance)> = records
            .iter()
            .filter(|record| {
                let stored = reader.record(&record.host).unwrap().unwrap();
                assert_eq!(stored.record, **record);
                let target_is_alive = match &record.state {
                    State::Moving { target, .. } | State::Moved { target } => is_alive(target),
                    _ => false,
                };
                assert_eq!(stored.target_is_alive, target_is_alive);
                is_listed(record, target_is_alive, NOW, Calendar::REAL)
            })
            .map(|record| (record.host.to_string(), record.instance.clone()))
            .collect();
        expect.sort_by(|one, other| one.0.cmp(&other.0));
        let mut names = Vec::new();
        let take = |row: Listed<'_>| -> Result<(), StoreError> {
            names.push((row.host.to_owned(), row.instance));
            Ok(())
        };
        let count = reader.listed(NOW, Calendar::REAL, take).unwrap();
        prop_assert_eq!(usize::try_from(count).unwrap(), names.len());
        prop_assert_eq!(&names, &expect);
        let mut visited = 0;
        let ended = reader.listed(NOW, Calendar::REAL, |_row| {
            visited += 1;
            Err(StoreError::Closed)
        });
        prop_assert_eq!(ended.is_err(), !names.is_empty());
        prop_assert_eq!(visited, names.len().min(1));
    }
}

/// Invariant I7: which hosts must leave an already published list. Dead hosts may stay until a
/// person has looked into an unusual number of deaths.
#[test]
fn withdrawn_are_those_that_left_or_are_denied_only() {
    let reader = reader();
    let by = |by| State::OptedOut { by };
    let dying = |gone| State::Dying {
        before: Before::Alive,
        count: 1,
        gone,
        gone_last: gone,
    };
    let target = numbered(99);
    let kinds = [
        (State::Alive, false, false),
        (State::Alive, true, true),
        (State::Dead, false, false),
        (dying(false), false, false),
        (dying(true), false, true),
        (State::Moved { target }, false, false),
        (by(OptedOutBy::Robots), false, true),
        (by(OptedOutBy::Owner), false, true),
        (by(OptedOutBy::Moderator), false, true),
        (State::Parked, false, true),
    ];
    for (n, (state, hidden, expect)) in kinds.into_iter().enumerate() {
        let record = Record {
            due: (!state.is_never_asked()).then_some(NOW),
            state,
            hidden,
            ..Record::discovered(numbered(n), NOW, NOW)
        };
        insert(&reader, &record);
        let found = reader.is_withdrawn(record.host.as_str()).unwrap();
        assert_eq!(found, expect, "{record:?}");
    }
    assert!(!reader.is_withdrawn("unknown.example").unwrap());
    let sql = "INSERT INTO groups (id, domain, decision, reason, decided_at) VALUES (7, 'n0.example', 'deny', 'a test', 1); \
         UPDATE hosts SET group_id = 7 WHERE name = 'n0.example'";
    reader.connection().execute_batch(sql).unwrap();
    assert!(reader.is_withdrawn("n0.example").unwrap());
}

fn insert(reader: &Reader, record: &Record) {
    row::insert(reader.connection(), record).unwrap();
}

/// Marks a host as in flight.
fn take(reader: &Reader, n: usize) {
    let sql = "UPDATE hosts SET in_flight = 1 WHERE name = ?1";
    let name = numbered(n).to_string();
    reader.connection().execute(sql, [name]).unwrap();
}

#[test]
fn counts_are_complete_and_in_a_fixed_order() {
    let reader = reader();
    let empty = reader.counts().unwrap();
    assert_eq!(empty.by_state, StateName::ALL.map(|name| (name, 0)));
    for (n, hidden) in [(1, true), (2, false), (3, false)] {
        let record = Record {
            hidden,
            ..Record::discovered(numbered(n), NOW, NOW)
        };
        insert(&reader, &record);
    }
    let alive = Record {
        state: State::Alive,
        ..Record::discovered(numbered(4), NOW, NOW)
    };
    insert(&reader, &alive);
    take(&reader, 2);
    let counts = reader.counts().unwrap();
    assert_eq!((counts.hosts, counts.hidden, counts.in_flight), (4, 1, 1));
    let first = [(StateName::Discovered, 3), (StateName::Alive, 1)];
    assert_eq!(counts.by_state[..2], first);
    assert_eq!(counts.by_state.len(), 8);
}

#[test]
fn what_is_in_flight_is_neither_due_nor_next() {
    let reader = reader();
    assert_eq!(reader.next_due().unwrap(), None);
    for (n, due) in [(1, NOW.0 - 5), (2, NOW.0), (3, NOW.0 + 1)] {
        let record = Record::discovered(numbered(n), NOW, Timestamp(due));
        insert(&reader, &record);
    }
    assert_eq!(reader.due(NOW).unwrap(), 2);
    assert_eq!(reader.next_due().unwrap(), Some(Timestamp(NOW.0 - 5)));
    take(&reader, 1);
    assert_eq!(reader.due(NOW).unwrap(), 1);
    assert_eq!(reader.next_due().unwrap(), Some(NOW));
}

/// Evidence from inside the group counts for nothing, and neither does a source that is too young.
#[test]
fn independent_sources_alone_speak_for_a_group() {
    let reader = reader();
    for name in "a.farm.net b.farm.net c.farm.net old.net young.net".split(' ') {
        let record = Record::discovered(kit::host(name), NOW, NOW);
        insert(&reader, &record);
    }
    let (now, week) = (NOW.0, Calendar::REAL.named_at_least());
    let sql = format!(
        "INSERT INTO groups (id, domain) VALUES (1, 'farm.net'), (2, 'old.net'), (3, 'young.net'); \
         UPDATE hosts SET state = 'alive', last_alive = {now}, alive_count = 13; \
         UPDATE hosts SET alive_count = 12 WHERE name = 'young.net'; \
         UPDATE hosts SET group_id = 1 WHERE name LIKE '%.farm.net'; \
         UPDATE hosts SET group_id = 2 WHERE name = 'old.net'; \
         UPDATE hosts SET group_id = 3 WHERE name = 'young.net'; \
         UPDATE hosts SET held_back = 1 WHERE name = 'a.farm.net'; \
         UPDATE hosts SET hidden = 1 WHERE name = 'b.farm.net'; \
         INSERT INTO namings SELECT id, 2, {now} FROM hosts WHERE name = 'a.farm.net'; \
         INSERT INTO namings SELECT id, 3, 1 FROM hosts WHERE name = 'a.farm.net'"
    );
    reader.connection().execute_batch(&sql).unwrap();
    let read = |now| reader.members("farm.net", 2, now, Calendar::REAL).unwrap();
    let members = read(NOW);
    let found = (members.named_by.sources, members.named_by.long);
    assert_eq!((found, members.named_by.since), ((1, 0), Some(NOW)));
    assert_eq!(read(NOW.plus(week)).named_by.long, 1);
    assert_eq!(members.states, [("alive".to_owned(), 3)]);
    assert_eq!((members.listed, members.known_since), (1, Some(NOW)));
    assert_eq!((members.newest_names, members.newest_names_of), (3, 5));
    assert_eq!(members.newest.len(), 2);
}
