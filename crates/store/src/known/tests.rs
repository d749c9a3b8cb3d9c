use kit::{NOW, numbered};
use std::collections::HashSet;

use census::state::OptedOutBy;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::db::tuning::NAMES_MAX;
use crate::db::tuning::Tuning;
use crate::open::open_tuned;
use crate::tables::admitted;
use crate::{Admission, Candidate, Store, open};

fn empty() -> KnownNames {
    KnownNames::new([7; 16], NAMES_MAX)
}

/// Whether the set has the name, without spot checks.
fn has(known: &KnownNames, host: &Host) -> bool {
    known.has(known.hash(host.as_str()))
}

proptest! {
    #[test]
    fn it_has_what_was_put_in_and_nothing_else(
        put in proptest::collection::vec(prop_oneof![0..40_u64, any::<u64>()], 0..400),
        other in proptest::collection::vec(any::<u64>(), 0..100),
    ) {
        let (known, mut model) = (empty(), HashSet::new());
        for hash in put {
            known.put(hash);
            // The hash 0 shares the slot of another one.
            model.insert(hash.max(1));
            prop_assert!(known.has(hash));
        }
        prop_assert_eq!(known.names(), model.len());
        for hash in other.into_iter().chain(0..50) {
            prop_assert_eq!(known.has(hash), model.contains(&hash.max(1)));
        }
    }
}

#[test]
fn a_name_takes_fourteen_bytes_at_most() {
    let known = empty();
    for n in 0..300_000 {
        known.learn(&numbered(n));
        // Below that, the fixed size of the parts dominates.
        if n > 50_000 && n % 5000 == 0 {
            assert!(known.bytes() < 15 * n, "{} for {n}", known.bytes());
        }
    }
    assert_eq!(known.names(), 300_000);
    assert!((0..300_000).all(|n| has(&known, &numbered(n))));
}

#[test]
fn beyond_the_most_names_none_is_kept_and_none_is_lost() {
    let known = KnownNames::new([7; 16], 100);
    (0..200).for_each(|n| known.learn(&numbered(n)));
    assert_eq!(known.names(), 100);
    assert!((0..100).all(|n| has(&known, &numbered(n))));
    assert!(!(100..200).any(|n| has(&known, &numbered(n))));
}

#[test]
fn one_in_sixty_four_is_asked_for_all_the_same_whatever_the_list() {
    let known = empty();
    let list: Vec<Host> = (0..64).map(numbered).collect();
    list.iter().for_each(|host| known.learn(host));
    let mut asked_for = vec![0; list.len()];
    for _ in 0..1000 {
        for (host, asked_for) in list.iter().zip(&mut asked_for) {
            *asked_for += i32::from(!known.recognises(host));
        }
    }
    let all: i32 = asked_for.iter().sum();
    assert!((800..1200).contains(&all), "{all}");
    assert!(asked_for.iter().all(|times| *times > 0), "{asked_for:?}");
}

/// The names that would be looked up in the database and are unknown there.
async fn new_ones(store: &Store, hosts: &[Host]) -> Vec<Host> {
    let writer = store.writer();
    let asked = hosts.iter().filter(|host| !writer.recognises(host));
    writer.unknown(asked.cloned().collect()).await.unwrap()
}

#[tokio::test]
async fn a_new_name_that_looks_like_a_known_one_is_in_after_some_namings() {
    let dir = TempDir::new().unwrap();
    let mut store = open(&dir.path().join("census.db")).unwrap();
    store.wait_for_names();
    let writer = store.writer();
    // As if another name had the same 64-bit hash.
    writer.known_names().learn(&numbered(1));
    let mut namings = 0;
    while new_ones(&store, &[numbered(1)]).await.is_empty() {
        namings += 1;
        assert!(namings < 2000, "it is lost");
    }
    assert!(namings > 0);
}

fn admission(hosts: &[usize], brings_back: bool) -> Admission {
    let candidate = |n: &usize| Candidate {
        host: numbered(*n),
        due: NOW,
        first_seen: NOW,
    };
    Admission {
        candidates: hosts.iter().map(candidate).collect(),
        brings_back,
        ..Admission::default()
    }
}

async fn forget(store: &Store, n: usize) {
    let forget = move |c: &Connection| {
        let id: Option<i64> = c.query_row(
            "SELECT max(id) FROM hosts WHERE name = ?1",
            [numbered(n).as_str()],
            |row| row.get(0),
        )?;
        id.map_or(Ok(()), |id| forgotten::forget(c, id, &numbered(n)))
    };
    store.writer().call(forget).await.unwrap();
}

/// The database's answer, bypassing the set in memory.
async fn unknown(store: &Store, n: usize) -> bool {
    let ask = move |c: &Connection| admitted::unknown(c, &[numbered(n)]);
    !store.writer().call(ask).await.unwrap().is_empty()
}

#[tokio::test]
async fn at_a_start_rows_and_forgotten_names_are_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("census.db");
    let store = open(&path).unwrap();
    let hosts = (0..50).map(numbered).collect();
    store.writer().add_now(hosts, NOW).await.unwrap();
    for n in 0..20 {
        forget(&store, n).await;
    }
    store.close();
    let mut store = open(&path).unwrap();
    store.wait_for_names();
    let writer = store.writer();
    assert_eq!(writer.recognised().0, 50);
    assert!((0..50).all(|n| has(writer.known_names(), &numbered(n))));
    assert!(!has(writer.known_names(), &numbered(50)));
    let is_new = [0, 49, 50].map(|n| writer.is_new(&numbered(n)));
    assert_eq!(is_new, [false, false, true]);
}

#[tokio::test]
async fn names_without_room_in_memory_are_looked_up() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("census.db");
    let tuning = Tuning {
        names_max: 3,
        ..Tuning::default()
    };
    let store = open_tuned(&path, tuning).unwrap();
    let hosts: Vec<Host> = (0..10).map(numbered).collect();
    store.writer().add_now(hosts.clone(), NOW).await.unwrap();
    assert_eq!(store.writer().recognised().0, 3);
    assert!(!store.writer().is_new(&numbered(11)), "it can't be told");
    assert_eq!(new_ones(&store, &hosts).await, []);
    let new = new_ones(&store, &[numbered(3), numbered(11)]).await;
    assert_eq!(new, [numbered(11)]);
}

#[tokio::test]
async fn what_was_not_committed_is_not_recognised() {
    let dir = TempDir::new().unwrap();
    let mut store = open(&dir.path().join("census.db")).unwrap();
    store.wait_for_names();
    let writer = store.writer();
    let refuse =
        "CREATE TRIGGER refuse BEFORE INSERT ON hosts BEGIN SELECT RAISE(ABORT, 'no'); END";
    let refuse = move |c: &Connection| Ok(c.execute_batch(refuse)?);
    writer.call(refuse).await.unwrap();
    writer.admit(admission(&[1], false)).await.unwrap_err();
    writer.add_now(vec![numbered(2)], NOW).await.unwrap_err();
    assert_eq!(writer.recognised().0, 0);
    assert!(writer.is_new(&numbered(1)) && writer.is_new(&numbered(2)));
}

#[test]
fn before_all_is_read_no_name_is_new() {
    let known = empty();
    known.learn(&numbered(1));
    assert!(!known.is_new(&numbered(2)));
}

#[derive(Debug, Clone)]
enum Act {
    Add(usize),
    Admit {
        names: Vec<usize>,
        brings_back: bool,
    },
    Forget(usize),
    OptOut(usize),
    Ask(usize),
    Restart,
}

fn any_act() -> impl Strategy<Value = Act> {
    let name = || 0..8_usize;
    prop_oneof![
        2 => name().prop_map(Act::Add),
        4 => (proptest::collection::vec(name(), 1..4), any::<bool>())
            .prop_map(|(names, brings_back)| Act::Admit { names, brings_back }),
        3 => name().prop_map(Act::Forget),
        1 => name().prop_map(Act::OptOut),
        2 => name().prop_map(Act::Ask),
        1 => Just(Act::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_happens_nobody_is_recognised_whom_the_database_does_not_know(acts in proptest::collection::vec(any_act(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("census.db");
        let mut store = open(&path).unwrap();
        for act in acts {
            let writer = store.writer();
            runtime.block_on(async {
                match &act {
                    Act::Add(n) => drop(writer.add_now(vec![numbered(*n)], NOW).await.unwrap()),
                    Act::Admit { names, brings_back } => {
                        drop(writer.admit(admission(names, *brings_back)).await.unwrap());
                    }
                    Act::Forget(n) => forget(&store, *n).await,
                    Act::OptOut(n) => drop(writer.opt_out(&numbered(*n), OptedOutBy::Owner, NOW).await.unwrap()),
                    Act::Ask(n) => drop(writer.unknown(vec![numbered(*n)]).await.unwrap()),
                    Act::Restart => {}
                }
            });
            let is_restart = matches!(act, Act::Restart);
            if is_restart {
                store.close();
                store = open(&path).unwrap();
                store.wait_for_names();
            }
            let writer = store.writer();
            for n in 0..8 {
                let is_unknown = runtime.block_on(unknown(&store, n));
                let is_recognised = has(writer.known_names(), &numbered(n));
                prop_assert!(is_unknown || !writer.is_new(&numbered(n)), "n{} is new after {:?}", n, act);
                prop_assert!(!(is_recognised && is_unknown), "n{} is lost after {:?}", n, act);
                if is_restart {
                    prop_assert_eq!(is_recognised, !is_unknown, "n{} after a start", n);
                }
            }
        }
    }
}
