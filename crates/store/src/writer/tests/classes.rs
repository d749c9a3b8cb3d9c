//! Which due hosts are taken first.

use census::class::{Class, PerClass};
use census::state::OptedOutBy;
use proptest::prelude::*;

use super::*;

fn states() -> impl Strategy<Value = State> {
    use Before::{Alive, Dead, Discovered, Moved};
    let befores = vec![Discovered, Alive, Dead, Moved];
    let target = labelled("target");
    let moving = (prop::sample::select(befores.clone()), 1_u32..9);
    prop_oneof![
        Just(State::Discovered),
        Just(State::Alive),
        Just(State::Dead),
        (prop::sample::select(befores), 1_u32..9, any::<bool>()).prop_map(
            |(before, count, gone)| State::Dying {
                before,
                count,
                gone,
                gone_last: false,
            }
        ),
        moving.prop_map({
            let target = target.clone();
            move |(before, count)| State::Moving {
                before,
                count,
                target: target.clone(),
            }
        }),
        Just(State::Moved { target }),
        Just(State::OptedOut {
            by: OptedOutBy::Robots
        }),
        Just(State::Parked),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The index uses SQL and the rule Rust: a host that they put into different classes would be
    /// counted in one and taken in none.
    #[test]
    fn the_column_is_the_rule(rows in prop::collection::vec((states(), any::<bool>()), 1..20)) {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::db::migrate::SCHEMA.to_latest(&mut connection).unwrap();
        for (n, (state, noted)) in rows.into_iter().enumerate() {
            let due = (!state.is_never_asked()).then_some(NOW);
            let host = labelled(&format!("n{n}"));
            let record = Record { state, due, ..Record::discovered(host.clone(), NOW, NOW) };
            row::insert(&connection, &record).unwrap();
            if noted {
                commit::release(&connection, &host, NOW, Some("put off")).unwrap();
            }
            let row = row::find(&connection, &host).unwrap().unwrap();
            let class: i64 = connection
                .query_row("SELECT class FROM hosts WHERE name = ?1", [host.as_str()], |row| row.get(0))
                .unwrap();
            prop_assert_eq!(class, row.class().number(), "{:?}", row.record);
        }
    }
}

/// A census with `living` responding hosts and `crowd` hosts of each other class, all of which are
/// due before any responding host.
async fn crowded(living: usize, crowd: usize) -> Census {
    let census = Census::new();
    let put = async |name: String, state, due| {
        let record = Record::discovered(labelled(&name), NOW, due);
        census.put(Record { state, ..record }).await;
    };
    for n in 0..living {
        put(format!("living{n}"), State::Alive, NOW).await;
    }
    let long_due = NOW.minus(HOUR);
    for n in 0..crowd {
        put(format!("new{n}"), State::Discovered, long_due).await;
        put(format!("dead{n}"), State::Dead, long_due).await;
        let retry = format!("retry{n}");
        put(retry.clone(), State::Discovered, long_due).await;
        census.release(&retry, long_due, Some("put off")).await;
    }
    census
}

#[tokio::test]
async fn each_class_yields_at_most_what_is_wanted() {
    let census = crowded(3, 30).await;
    let reader = census.reader();
    let due = |most| reader.due_by_class(NOW, most).unwrap();
    assert_eq!((due(9).living, due(9).dead, due(99).new), (3, 9, 30));
    let wanted = PerClass {
        living: 12,
        new: 4,
        retry: 0,
        dead: 1,
    };
    let jitters = vec![JITTER; 200];
    let taken = census.writer.take_due(NOW, wanted, jitters, REAL).await;
    let mut counts = PerClass::<u32>::default();
    for taken in taken.unwrap() {
        let name = taken.record.host.to_string();
        assert!(name.starts_with(taken.class.as_str()), "{name}: {taken:?}");
        *counts.of_mut(taken.class) += 1;
    }
    let expect = PerClass {
        living: 3,
        ..wanted
    };
    assert_eq!(counts, expect);
    assert_eq!((due(99).living, due(99).new), (0, 26));
}

#[tokio::test]
async fn a_host_changes_its_class_with_its_row() {
    let census = Census::with(&["a"]).await;
    let class = async |expect| {
        let rows = [Class::Living, Class::New, Class::Retry, Class::Dead];
        let number = rows.iter().position(|class| *class == expect).unwrap();
        let read = |c: &Connection| {
            Ok(c.query_row("SELECT class FROM hosts", [], |row| row.get::<_, i64>(0))?)
        };
        let found = census.writer.call(read).await.unwrap();
        assert_eq!(usize::try_from(found), Ok(number), "{expect:?}");
    };
    class(Class::New).await;
    census.take("a").await;
    census.release("a", NOW, Some("put off")).await;
    class(Class::Retry).await;
    census.check("a", &alive()).await;
    class(Class::Living).await;
    census.check("a", &dead()).await;
    class(Class::Living).await;
    for _ in 0..2 {
        census.check("a", &Verdict::Gone).await;
    }
    class(Class::Dead).await;
}
