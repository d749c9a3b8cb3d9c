//! Puts a list in an order in which the names of a batch share pages of the indexes, by name and by due time, so that each writes less;
//! `bench/RESULTS.md` has what it gains.
//!
//! In: candidates in the order in which they were told. Out: each name once, in the order of names, and as many due at any time as before.

use census::time::Timestamp;
use store::Candidate;

/// Each once, in the order of names. Begins with the name that was told first and goes on from the beginning at the end, lest names be chosen that are
/// always the first to find room.
pub(super) fn by_name(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let first = candidates.first().map(|one| one.host.clone());
    candidates.sort_unstable_by(|one, other| one.host.cmp(&other.host));
    // Who stands there twice would take its own room.
    candidates.dedup_by(|one, other| one.host == other.host);
    let start = candidates.partition_point(|one| Some(&one.host) < first.as_ref());
    candidates.rotate_left(start);
    candidates
}

/// Deals the due times out again, so that those of a batch lie next to each other; within a batch everybody's turn is as before.
///
/// The first batch begins at its first name's time and the others go on from there, in a circle. Often only the first batches of a list find room, and those
/// of all lists must not be due at the same time.
pub(super) fn by_due_time(candidates: &mut [Candidate], batch_max: usize) {
    let Some(first) = candidates.first().map(|one| one.due) else {
        return;
    };
    let mut times: Vec<Timestamp> = candidates.iter().map(|one| one.due).collect();
    times.sort_unstable();
    let start = times.partition_point(|time| *time < first);
    times.rotate_left(start);
    let batches = candidates.chunks_mut(batch_max);
    for (batch, times) in batches.zip(times.chunks_mut(batch_max)) {
        times.sort_unstable();
        let mut in_turn: Vec<_> = batch.iter_mut().collect();
        in_turn.sort_by_key(|one| one.due);
        for (one, time) in in_turn.into_iter().zip(times) {
            one.due = *time;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::Host;

    use super::*;

    /// Candidates due at these times.
    fn due_at(times: &[i64]) -> Vec<Candidate> {
        let candidate = |(number, time): (usize, &i64)| Candidate {
            host: Host::parse(&format!("h{number}.example")).unwrap(),
            due: Timestamp(*time),
            first_seen: Timestamp(0),
        };
        times.iter().enumerate().map(candidate).collect()
    }

    fn times_of(candidates: &[Candidate]) -> Vec<i64> {
        candidates.iter().map(|one| one.due.0).collect()
    }

    proptest! {
        /// Nobody would notice a time that is dealt twice, or a list that comes due at once.
        #[test]
        fn as_many_are_due_at_any_time_as_before(
            times in prop::collection::vec(0..50_i64, 0..200),
            batch_max in 1..60_usize,
        ) {
            let mut candidates = due_at(&times);
            by_due_time(&mut candidates, batch_max);
            let [mut before, mut after] = [times, times_of(&candidates)];
            before.sort_unstable();
            after.sort_unstable();
            prop_assert_eq!(after, before);
        }

        #[test]
        fn a_batch_is_due_in_a_row_from_the_first_ones_time_on_and_in_the_order_of_before(
            before in Just((0..120_i64).collect::<Vec<_>>()).prop_shuffle(),
            batch_max in 1..60_usize,
        ) {
            let mut candidates = due_at(&before);
            by_due_time(&mut candidates, batch_max);
            let after = times_of(&candidates);
            let batches = before.chunks(batch_max).zip(after.chunks(batch_max));
            for (number, (before_all, after_all)) in batches.enumerate() {
                for (before_one, after_one) in before_all.iter().zip(after_all) {
                    let since_first = usize::try_from((after_one - before[0]).rem_euclid(120)).unwrap();
                    prop_assert_eq!(since_first / batch_max, number);
                    let earlier = |times: &[i64], time| times.iter().filter(|one| **one < time).count();
                    prop_assert_eq!(earlier(before_all, *before_one), earlier(after_all, *after_one));
                }
            }
        }
    }
}
