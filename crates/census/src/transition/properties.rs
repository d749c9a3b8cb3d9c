//! Properties that hold for every sequence of verdicts.

use std::time::Duration;

use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::listing::{is_listed, may_be_on_list, withdraws};

const START: Timestamp = Timestamp(1_790_000_000_000);
const REAL: Calendar = Calendar::REAL;

fn days(count: u64) -> Duration {
    Duration::from_secs(count * 86400)
}

fn any_host() -> impl Strategy<Value = Host> {
    "[a-d]\\.example".prop_map(|name| Host::parse(&name).unwrap())
}

fn any_before() -> impl Strategy<Value = Before> {
    use Before::{Alive, Dead, Discovered, Moved};
    proptest::sample::select(&[Discovered, Alive, Dead, Moved][..])
}

fn any_state() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Discovered),
        Just(State::Alive),
        (any_before(), any::<u32>(), any::<bool>(), any::<bool>()).prop_map(
            |(before, count, gone, last)| State::Dying {
                before,
                count,
                gone,
                gone_last: gone && last,
            }
        ),
        Just(State::Dead),
        (any_before(), any::<u32>(), any_host()).prop_map(|(before, count, target)| {
            State::Moving {
                before,
                count,
                target,
            }
        }),
        any_host().prop_map(|target| State::Moved { target }),
        any_opted_out_by().prop_map(|by| State::OptedOut { by }),
        Just(State::Parked),
    ]
}

fn any_opted_out_by() -> impl Strategy<Value = OptedOutBy> {
    use OptedOutBy::{Moderator, Owner, Robots};
    proptest::sample::select(&[Robots, Owner, Moderator][..])
}

pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let at = || any::<i64>().prop_map(Timestamp);
    let times = (at(), at(), option::of(at()), option::of(at()));
    let counts = (any::<u8>(), any::<u32>());
    let others = (any_state(), any_instance(), any::<[bool; 2]>());
    (times, counts, others).prop_map(|(times, counts, (state, instance, [hidden, refuses]))| {
        let (since, first_seen, last_alive, due) = times;
        let (doublings, alive_count) = counts;
        Record {
            state,
            since,
            hidden,
            refuses,
            instance,
            last_alive,
            doublings,
            alive_count,
            due,
            ..Record::discovered(Host::parse("a.example").unwrap(), first_seen, START)
        }
    })
}

fn any_instance() -> impl Strategy<Value = Instance> {
    let members = ("[a-z]{1,9}", any::<Option<String>>(), any::<Option<bool>>());
    members.prop_map(|(software, version, open_registrations)| Instance {
        software: Some(software),
        version,
        open_registrations,
        ..Instance::default()
    })
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    let private = proptest::sample::select(&[Private::Yes, Private::No, Private::Unknown][..]);
    prop_oneof![
        1 => (private, any_instance()).prop_map(|(private, instance)| {
            Verdict::Alive(Instance { private, ..instance })
        }),
        3 => any_silence(),
        1 => Just(Verdict::OptedOut),
    ]
}

/// Any verdict that is neither alive nor an opt-out.
fn any_silence() -> impl Strategy<Value = Verdict> {
    let retry = option::of(any::<u64>());
    let to = option::of("[a-d]\\.example|\\PC{0,9}");
    prop_oneof![
        4 => to.prop_map(|to| Verdict::Dead {
            reason: DeadReason::TemporaryRedirect,
            status: None,
            to,
        }),
        1 => any_host().prop_map(|to| Verdict::Moved { to }),
        1 => Just(Verdict::Gone),
        1 => retry.prop_map(|retry_after_s| Verdict::Refused { status: 403, wall: None, retry_after_s }),
    ]
}

/// Verdicts with the hours between them: some much closer together than scheduled, some weeks
/// apart.
fn any_life() -> impl Strategy<Value = Vec<(Verdict, u64)>> {
    let hours = prop_oneof![0..3_u64, 20..40_u64, 100..900_u64];
    proptest::collection::vec((any_verdict(), hours), 1..60)
}

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

#[derive(Default)]
struct Diary {
    failures: u32,
    first_failure: Option<Timestamp>,
    last_was_gone: bool,
}

impl Diary {
    fn write(&mut self, verdict: &Verdict, now: Timestamp) {
        match verdict {
            Verdict::Dead { .. } | Verdict::Gone => {
                self.failures += 1;
                self.first_failure.get_or_insert(now);
            }
            Verdict::Alive(_) | Verdict::OptedOut => *self = Self::default(),
            // A move to itself is a failure; other moves end the row of failures.
            Verdict::Moved { to } if to.as_str() == "a.example" => {
                self.failures += 1;
                self.first_failure.get_or_insert(now);
            }
            Verdict::Moved { .. } => *self = Self::default(),
            Verdict::Refused { .. } => {}
        }
        self.last_was_gone = matches!(verdict, Verdict::Gone);
    }
}

proptest! {
    #[test]
    fn a_host_that_lived_is_never_dead_within_a_week_or_before_the_seventh_failure(life in any_life()) {
        let mut now = START;
        let mut record = Record {
            state: State::Alive,
            last_alive: Some(START),
            ..Record::discovered(Host::parse("a.example").unwrap(), START, START)
        };
        let mut diary = Diary::default();
        for (verdict, gap) in life {
            now = now.plus(hours(gap));
            let second_gone = diary.last_was_gone && verdict == Verdict::Gone;
            diary.write(&verdict, now);
            let next = transition(&record, &verdict, now, Jitter(0), REAL).record;
            if next.state == State::Dead && record.state != State::Dead {
                let borne = diary.failures >= 7
                    && diary.first_failure.is_some_and(|first| first < now.minus(days(7)));
                let silent = matches!(verdict, Verdict::Refused { .. })
                    && record.last_alive < Some(now.minus(days(14)));
                prop_assert!(borne || silent || second_gone, "{record:?} {verdict:?}");
            }
            record = next;
        }
    }

    #[test]
    fn nothing_is_listed_without_alive_for_14_days_and_the_hidden_and_opted_out_never(
        life in any_life(), later in 0..2000_u64, target_is_alive: bool,
    ) {
        let mut now = START;
        let mut record = Record::discovered(Host::parse("a.example").unwrap(), START, START);
        let mut last_alive = None;
        let mut asked_to_hide = false;
        for (verdict, gap) in life {
            now = now.plus(hours(gap));
            record = transition(&record, &verdict, now, Jitter(0), REAL).record;
            if let Verdict::Alive(instance) = &verdict {
                asked_to_hide = match instance.private {
                    Private::Yes => true,
                    Private::No => false,
                    Private::Unknown => asked_to_hide || last_alive.is_none(),
                };
                last_alive = Some(now);
            }
            for at in [now, now.plus(hours(later))] {
                if is_listed(&record, target_is_alive, at, REAL) {
                    prop_assert!(last_alive.is_some_and(|alive| alive >= at.minus(days(14))));
                    prop_assert!(!asked_to_hide);
                    prop_assert!(!matches!(verdict, Verdict::OptedOut | Verdict::Gone));
                }
            }
        }
    }

    #[test]
    fn silence_never_undoes_an_opt_out(
        silences in proptest::collection::vec((any_silence(), 0..900_u64), 1..60),
        by in any_opted_out_by(),
        record in any_record(),
    ) {
        let mut now = START;
        let mut record = Record { state: State::OptedOut { by }, ..record };
        for (silence, gap) in silences {
            now = now.plus(hours(gap));
            let change = transition(&record, &silence, now, Jitter(0), REAL);
            prop_assert!(!change.forget);
            record = change.record;
            prop_assert_eq!(&record.state, &State::OptedOut { by });
        }
    }

    #[test]
    fn no_verdict_at_all_undoes_an_opt_out_by_word_of_mouth(
        life in any_life(),
        by in prop_oneof![Just(OptedOutBy::Owner), Just(OptedOutBy::Moderator)],
        record in any_record(),
    ) {
        let mut record = Record { state: State::OptedOut { by }, ..record };
        for (verdict, _) in life {
            record = transition(&record, &verdict, START, Jitter(0), REAL).record;
            prop_assert_eq!(&record.state, &State::OptedOut { by });
            prop_assert_eq!(record.due, None);
        }
    }

    #[test]
    fn a_record_keeps_the_instance_of_its_last_alive_verdict(record in any_record(), life in any_life()) {
        let mut record = record;
        let mut said = record.instance.clone();
        for (verdict, _) in life {
            if let Verdict::Alive(instance) = &verdict
                && is_open_to(&record.state, &verdict)
            {
                said = Instance { private: Private::default(), ..instance.clone() };
            }
            record = transition(&record, &verdict, START, Jitter(0), REAL).record;
            prop_assert_eq!(&record.instance, &said, "{:?}", verdict);
        }
    }

    /// A list follows soon if, and only if, a host on the list must leave it (invariant I7).
    #[test]
    fn a_verdict_withdraws_what_must_leave_the_list_and_nothing_else(
        record in any_record(), verdict in any_verdict()
    ) {
        let record = Record { hidden: false, last_alive: Some(START), ..record };
        let next = transition(&record, &verdict, START, Jitter(0), REAL).record;
        let must_leave = next.hidden || matches!(
            next.state,
            State::OptedOut { .. } | State::Parked | State::Dying { gone: true, .. }
        );
        prop_assert!(withdraws(&verdict) == must_leave || !may_be_on_list(&record, START, REAL));
    }

    #[test]
    fn any_verdict_on_any_record_gives_a_sound_row(
        record in any_record(), verdict in any_verdict(), now: i64, jitter: u32, divisor in 0..5000_u32,
    ) {
        let (now, jitter, calendar) = (Timestamp(now), Jitter(jitter), Calendar { divisor });
        let change = transition(&record, &verdict, now, jitter, calendar);
        let next = &change.record;
        prop_assert_eq!(&next.host, &record.host);
        prop_assert_eq!(next.first_seen, record.first_seen);
        prop_assert_eq!(next.last_checked, Some(now));
        if is_open_to(&record.state, &verdict) {
            prop_assert!(next.since <= now && next.last_alive <= Some(now), "moments to come: {next:?}");
        }
        // With a clock that has just been set back, correctly or not.
        let set_back = Record { last_checked: Some(Timestamp(now.0.saturating_add(1))), ..record.clone() };
        let next_by_it = transition(&set_back, &verdict, now, jitter, calendar).record;
        prop_assert!(next_by_it.last_alive >= record.last_alive);
        prop_assert_eq!(next.due.is_none(), next.state.is_never_asked());
        if let Some(due) = next.due {
            prop_assert!(due >= now && due <= now.plus(calendar.longest()));
        }
        prop_assert!(change.candidate.as_ref() != Some(&record.host));
        if let State::Dying { gone, gone_last, .. } = next.state {
            prop_assert!(gone || !gone_last);
        }
        let again = transition(&record, &verdict, now, jitter, calendar);
        prop_assert_eq!(change, again);
    }
}
