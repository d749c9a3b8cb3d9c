//! The line of new hosts: which of them is checked first.
//!
//! All are due at once, so their place is a due time in the past. Names that more registered
//! domains name go first, since invented names cost their inventor nothing and being named by
//! others does. Among equals each source's first name precedes every source's second: a source with
//! a hundred thousand names delays the others' by as little as they have.
//!
//! Within a source they keep the order of its list. A hoster's many names are not put behind the
//! others': at one each ten seconds they need every turn from the first minute on.
//!
//! Who named a host that waits for its first check is kept in memory only: after a restart a host
//! keeps its place, and moves up no more.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use admission::{Names, Waiter};
use census::time::Timestamp;
use protocol::Host;

/// Names that are remembered, each for a window: as many as a young census takes. Names beyond
/// these don't move up.
const NAMES_MAX: usize = 250_000;

/// How far a name moves up with each further domain that names it: more than the names of one
/// source spread over, a millisecond each.
pub(super) const STEP: Duration = Duration::from_secs(600);

/// Most domains that count. Few names of instances that respond have fewer once a hundred lists
/// were read.
const DOMAINS_MAX: u32 = 6;

/// Where the line of a window's names begins, before the window's start: no place is in the future.
const BEFORE_WINDOW: Duration = Duration::from_secs(3600);

/// New hosts that may wait for their first check, by a hash of their names, with a bit for each
/// domain that named them. A name that shares its hash with another one moves up with it.
#[derive(Debug, Default)]
pub(super) struct Line {
    hasher: RandomState,
    named_by: HashMap<u64, u64>,
}

/// The place of a source's name by its number among the source's names of this window.
pub(super) fn place(window_start_s: u64, number: u32, waiter: Option<&Waiter>) -> Timestamp {
    let start = Timestamp(
        i64::try_from(window_start_s)
            .unwrap_or(0)
            .saturating_mul(1000),
    );
    let domains = waiter.map_or(1, |waiter| waiter.named_by.count());
    let ahead = domains.clamp(1, DOMAINS_MAX).saturating_sub(1);
    start
        .minus(BEFORE_WINDOW)
        .plus(Duration::from_millis(u64::from(number)))
        .minus(STEP.saturating_mul(ahead))
}

impl Line {
    pub(super) fn clear(&mut self) {
        self.named_by.clear();
    }

    /// Remembers a new host, which this domain named. A host's own domain does not count.
    pub(super) fn join(&mut self, host: &Host, domain: &str, names: &Names) {
        if self.named_by.len() < NAMES_MAX {
            let is_own = names.registered_domain(host) == domain;
            let bit = if is_own { 0 } else { self.bit(domain) };
            let bits = self.named_by.entry(self.hasher.hash_one(host)).or_default();
            *bits |= bit;
        }
    }

    /// The hosts that move up by a step, because a further domain names them: not their own.
    pub(super) fn move_up<'host>(
        &mut self,
        hosts: impl Iterator<Item = &'host Host>,
        domain: &str,
        names: &Names,
    ) -> Vec<Host> {
        if self.named_by.is_empty() {
            return Vec::new();
        }
        let bit = self.bit(domain);
        let moves_up = |host: &&Host| {
            let Some(bits) = self.named_by.get_mut(&self.hasher.hash_one(*host)) else {
                return false;
            };
            let is_further = *bits & bit == 0 && bits.count_ones() < DOMAINS_MAX;
            if !is_further || names.registered_domain(host) == domain {
                return false;
            }
            // The first domain gives it its place.
            let is_first = *bits == 0;
            *bits |= bit;
            !is_first
        };
        hosts.filter(moves_up).cloned().collect()
    }

    fn bit(&self, domain: &str) -> u64 {
        let rotation = self.hasher.hash_one(domain) % u64::from(u64::BITS);
        1_u64.rotate_left(u32::try_from(rotation).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use admission::{NamedBy, Reserved, Room, SourceId, Suffixes};
    use kit::host;

    use super::*;

    fn names() -> Names {
        Names {
            suffixes: Suffixes::compiled(),
            reserved: Reserved::Refuse,
        }
    }

    #[test]
    fn a_host_moves_up_once_for_each_domain_but_its_own() {
        let mut line = Line::default();
        let (new, old) = (host("a.new.net"), host("a.old.net"));
        line.join(&new, "one.net", &names());
        let mut moves = |domain: &str| line.move_up([&new, &old].into_iter(), domain, &names());
        assert_eq!(moves("one.net"), Vec::<Host>::new());
        assert_eq!(moves("new.net"), Vec::<Host>::new(), "its own domain");
        // Two domains share a bit by chance, and then count once.
        let steps = (0..200).map(|n| moves(&format!("d{n}.net")).len());
        assert_eq!(steps.sum::<usize>(), 5);
        let own = host("a.own.net");
        line.join(&own, "own.net", &names());
        let mut moves = |domain: &str| line.move_up([&own].into_iter(), domain, &names()).len();
        assert_eq!(moves("one.net"), 0, "its first independent domain");
        assert_eq!(
            (0..200).map(|n| moves(&format!("d{n}.net"))).sum::<usize>(),
            5
        );
    }

    /// Nobody's many names delay another's few, and no names delay those that others vouch for.
    #[test]
    fn first_names_of_all_sources_precede_second_ones() {
        let waited = |named_by| Waiter {
            room: Room::Source,
            first_named_s: 0,
            last_named_s: 0,
            source: SourceId(1),
            named_by: NamedBy(named_by),
        };
        let start_s = 1_700_000_000;
        let second = place(start_s, 2, None);
        assert!(place(start_s, 1, None) < second);
        assert!(place(start_s, 250_000, Some(&waited(0b11))) < place(start_s, 1, None));
        assert_eq!(place(start_s, 2, Some(&waited(0b1))), second);
        assert!(place(start_s, 250_000, None) < Timestamp(start_s.cast_signed() * 1000));
    }
}
