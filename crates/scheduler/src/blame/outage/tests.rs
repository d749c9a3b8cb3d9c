use proptest::prelude::*;

use super::*;

const T0: Timestamp = Timestamp(1_700_000_000_000);

fn engine() -> String {
    "engine".to_owned()
}

fn second(now: Timestamp) -> Timestamp {
    now.plus(Duration::from_secs(1))
}

/// Seconds until the next test of the parts.
fn wait(outage: &mut Outage, now: &mut Timestamp) -> u32 {
    let mut waited = 0;
    while !outage.wants_look(*now) {
        *now = second(*now);
        waited += 1;
    }
    waited
}

#[test]
fn looks_grow_further_apart_up_to_a_minute_and_only_the_first_failure_is_news() {
    let mut outage = Outage::default();
    let mut now = T0;
    assert_eq!(outage.begin(engine(), Seen::Told, now), Begun::News);
    assert_eq!(outage.begin(engine(), Seen::Told, now), Begun::Known);
    let pauses: Vec<_> = (0..8)
        .map(|_| {
            let waited = wait(&mut outage, &mut now);
            outage.goes_on(engine(), now);
            waited
        })
        .collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert!(outage.is_on() && outage.room(32) == 0);
    assert!(outage.parts_work(now).is_some());
    assert!(!outage.is_on() && outage.describe().is_none());
    assert!(outage.works(now).is_none(), "it was said to be over");
    assert_eq!(outage.room(32), 32);
}

#[test]
fn a_clock_set_back_does_not_put_the_look_off() {
    let mut outage = Outage::default();
    outage.begin("gateway".to_owned(), Seen::Told, T0);
    assert!(outage.wants_look(Timestamp(0)));
    outage.parts_work(T0);
    assert!(!outage.wants_look(Timestamp(0)));
    assert_eq!(outage.room(32), 32, "nor does it keep a trial going");
}

/// For a day, an engine reports that it works and starts nothing: this costs few checks and few
/// messages.
#[test]
fn trouble_that_only_checks_can_see_is_tried_with_few_checks_and_ever_less_often() {
    let mut outage = Outage::default();
    let mut now = T0;
    let (mut checks, mut said) = (0, 0);
    for _ in 0..86_400 {
        now = second(now);
        if outage.wants_look(now) {
            said += u32::from(outage.parts_work(now).is_some());
        }
        // All checks that may start fail within the second.
        for _ in 0..outage.room(32) {
            checks += 1;
            if outage.fault().is_some() {
                match outage.begin(engine(), Seen::Counted, now) {
                    Begun::News | Begun::FirstRelapse => said += 1,
                    Begun::Relapse | Begun::Known => {}
                }
            }
        }
    }
    assert!(said <= 3, "{said} lines in the log");
    assert!(checks < 8000, "{checks} hosts were bothered for nothing");
    let since = outage.describe().expect("it is shown all along").1;
    assert!(
        since < T0.plus(Duration::from_secs(5)),
        "since its beginning"
    );
    assert!(
        outage
            .works(now)
            .is_some_and(|lasted| lasted > Duration::from_secs(86_000))
    );
    assert_eq!(outage.room(32), 32);
    assert!(outage.describe().is_none());
}

#[test]
fn a_verdict_that_was_on_its_way_does_not_end_what_a_part_says() {
    let mut outage = Outage::default();
    outage.begin(engine(), Seen::Told, T0);
    assert!(outage.works(T0).is_none() && outage.is_on());
    let mut counted = Outage::default();
    counted.begin(engine(), Seen::Counted, T0);
    assert!(counted.works(T0).is_some() && !counted.is_on());
}

#[test]
fn a_trial_without_any_answer_does_not_last_for_ever() {
    let mut outage = Outage::default();
    outage.begin(engine(), Seen::Told, T0);
    outage.parts_work(T0);
    assert_eq!(outage.room(32), ROOM_ON_TRIAL);
    assert!(!outage.wants_look(T0.plus(TRIAL_MAX)));
    assert_eq!(outage.room(32), 32);
}

#[test]
fn nineteen_faults_in_a_row_are_chance_and_one_verdict_forgives_them() {
    let mut outage = Outage::default();
    for _ in 0..5 {
        for _ in 1..FAULTS_IN_A_ROW_MAX {
            assert_eq!(outage.fault(), None);
        }
        assert!(outage.works(T0).is_none());
    }
    for _ in 1..FAULTS_IN_A_ROW_MAX {
        assert_eq!(outage.fault(), None);
    }
    assert_eq!(outage.fault(), Some(FAULTS_IN_A_ROW_MAX));
}

proptest! {
    /// However hosts make checks fail on our side: while others still reach a verdict, no pause
    /// grows beyond the next verdict.
    #[test]
    fn faults_between_verdicts_never_stop_the_census(steps in prop::collection::vec(0_u8..10, 1..2000)) {
        let mut outage = Outage::default();
        let mut now = T0;
        for step in steps {
            now = second(now);
            if outage.wants_look(now) {
                outage.parts_work(now);
            }
            if step == 0 {
                outage.works(now);
                prop_assert_eq!(outage.room(32), 32);
            } else if outage.fault().is_some() {
                outage.begin(engine(), Seen::Counted, now);
            }
        }
    }
}
