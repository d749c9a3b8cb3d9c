//! Imported records in a census.

use census::state::{OptedOutBy, State};
use census::time::{Calendar, Jitter, Timestamp};
use import_minoru::{MinoruHost, MinoruState, imported};
use proptest::prelude::*;
use protocol::Host;
use store::AddedAs;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn states() -> impl Strategy<Value = MinoruState> {
    prop::sample::select(vec![
        MinoruState::Discovered,
        MinoruState::Alive,
        MinoruState::Dying,
        MinoruState::Dead,
        MinoruState::Moving,
        MinoruState::Moved,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_census_takes_whatever_the_rows_hold_and_touches_no_row_twice(
        rows in prop::collection::vec(
            (states(), any::<Option<i64>>(), any::<Option<i64>>(), prop::option::of(states()), any::<Option<i64>>(), any::<bool>()),
            1..8,
        ),
        jitter in any::<u32>(),
    ) {
        let dir = TempDir::new().unwrap();
        let store = store::open(&dir.path().join("census.db")).unwrap();
        let records: Vec<_> = rows.into_iter().enumerate().map(|(number, (state, since_s, count, state_before, at_s, has_target))| {
            let known = MinoruHost {
                state, since_s, count, state_before, target: None, first_seen_s: None, last_checked_s: at_s, next_check_s: at_s,
            };
            let name = Host::parse(&format!("h{number}.example")).unwrap();
            let target = has_target.then(|| Host::parse("h0.example").unwrap());
            imported(name, &known, target, NOW, Jitter(jitter), Calendar::REAL)
        }).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let reader = store.reader().unwrap();
        for expected in [AddedAs::New, AddedAs::Known] {
            let added = runtime.block_on(store.writer().import(records.clone())).unwrap();
            prop_assert!(added.iter().all(|(_, added_as)| *added_as == expected));
            for record in &records {
                let stored = reader.record(&record.host).unwrap().unwrap();
                prop_assert_eq!(&stored.record, record);
            }
        }
    }
}

#[tokio::test]
async fn a_known_host_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let store = store::open(&dir.path().join("census.db")).unwrap();
    let name = Host::parse("a.example").unwrap();
    let by = OptedOutBy::Owner;
    store.writer().opt_out(&name, by, NOW).await.unwrap();
    let alive = MinoruHost {
        state: MinoruState::Alive,
        since_s: None,
        count: None,
        state_before: None,
        target: None,
        first_seen_s: None,
        last_checked_s: None,
        next_check_s: Some(1_800_000_000),
    };
    let record = imported(name.clone(), &alive, None, NOW, Jitter(0), Calendar::REAL);
    assert_eq!(record.state, State::Alive);
    let added = store.writer().import(vec![record]).await.unwrap();
    assert_eq!(added, [(name.clone(), AddedAs::Known)]);
    let stored = store.reader().unwrap().record(&name).unwrap().unwrap();
    assert_eq!(stored.record.state, State::OptedOut { by });
    assert_eq!(stored.last_note, None);
}
