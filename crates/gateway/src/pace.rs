//! Whose turn it is (invariant I8): spacing by group, address, block and for all dials together.
//!
//! In: a moment and whom to visit. Out: go, or exactly how long to wait. Pure: the caller owns the clock. Memory is bounded by
//! [`PACED_MAX`] visits and [`PROVEN_MAX`] proven addresses; a table that is full forgets its oldest entry.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::control::Deferral;
use crate::settings::Paces;

/// Visits remembered in each table. At 20 dials a second and 10 s of memory some 200 are live; groups grow with opens alone.
pub const PACED_MAX: usize = 65_536;

/// Addresses remembered as proven: about twice as many as the Fediverse has.
pub const PROVEN_MAX: usize = 65_536;

/// For how long an address stays proven: a fortnight, after which nothing at it is listed either (I11).
pub const PROVEN_FOR: Duration = Duration::from_hours(14 * 24);

/// Longest wait for a dial slot that is taken by waiting instead of being deferred: a second is cheaper than another look-up.
pub const DIAL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Out of turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// Which pace.
    pub why: Deferral,
    /// When it will be their turn, from now.
    pub retry_after: Duration,
}

/// A dial that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Position in the candidates.
    pub index: usize,
    /// Wait this long first: the dial slot that is reserved begins then. At most [`DIAL_WAIT_MAX`].
    pub wait: Duration,
}

/// The tables.
#[derive(Debug)]
pub struct Pace {
    paces: Paces,
    groups: Table<Box<str>>,
    addresses: Table<IpAddr>,
    blocks: Table<Block>,
    proven: Table<IpAddr>,
    next_dial: Option<Instant>,
}

impl Pace {
    /// Empty tables: everybody is in turn.
    pub fn new(paces: Paces) -> Self {
        Self {
            groups: Table::new(PACED_MAX, paces.group),
            addresses: Table::new(PACED_MAX, paces.address.max(paces.address_proven)),
            blocks: Table::new(PACED_MAX, paces.block),
            proven: Table::new(PROVEN_MAX, PROVEN_FOR),
            next_dial: None,
            paces,
        }
    }

    /// Charges a look-up to `group`.
    ///
    /// # Errors
    /// When the group was looked up less than its pace ago; nothing is charged then.
    pub fn charge_group(&mut self, group: &str, now: Instant) -> Result<(), Late> {
        let wait = self.groups.wait(group, self.paces.group, now);
        if !wait.is_zero() {
            return Err(Late {
                why: Deferral::GroupPace,
                retry_after: wait,
            });
        }
        self.groups.note(group.into(), now);
        Ok(())
    }

    /// Chooses the first candidate whose address and block are in turn, and charges them and a dial slot.
    ///
    /// # Errors
    /// When none is in turn: the shortest wait of them and its pace. Nothing is charged then. Without candidates the wait is zero.
    pub fn charge_dial(&mut self, candidates: &[SocketAddr], now: Instant) -> Result<Turn, Late> {
        let mut soonest: Option<Late> = None;
        let mut chosen = None;
        for (index, candidate) in candidates.iter().enumerate() {
            match self.late(candidate.ip(), now) {
                None => {
                    chosen = Some((index, candidate.ip()));
                    break;
                }
                Some(late) => {
                    if soonest.is_none_or(|best| late.retry_after < best.retry_after) {
                        soonest = Some(late);
                    }
                }
            }
        }
        let Some((index, address)) = chosen else {
            return Err(soonest.unwrap_or(Late {
                why: Deferral::AddressPace,
                retry_after: Duration::ZERO,
            }));
        };
        let slot = self.next_dial.map_or(now, |next| next.max(now));
        let wait = slot.saturating_duration_since(now);
        if wait > DIAL_WAIT_MAX {
            return Err(Late {
                why: Deferral::DialPace,
                retry_after: wait,
            });
        }
        self.next_dial = slot.checked_add(self.paces.dial);
        // Charged at the slot, not now: what is spaced is the dials.
        self.addresses.note(address, slot);
        self.blocks.note(Block::of(address), slot);
        Ok(Turn { index, wait })
    }

    /// A living instance answered at `address`: from now on it may be asked at the faster pace.
    pub fn prove(&mut self, address: IpAddr, now: Instant) {
        self.proven.note(address, now);
    }

    fn late(&self, address: IpAddr, now: Instant) -> Option<Late> {
        let pace = if self.proven.wait(&address, PROVEN_FOR, now).is_zero() {
            self.paces.address
        } else {
            self.paces.address_proven
        };
        let by_address = Late {
            why: Deferral::AddressPace,
            retry_after: self.addresses.wait(&address, pace, now),
        };
        let by_block = Late {
            why: Deferral::BlockPace,
            retry_after: self.blocks.wait(&Block::of(address), self.paces.block, now),
        };
        let later = if by_address.retry_after >= by_block.retry_after {
            by_address
        } else {
            by_block
        };
        (!later.retry_after.is_zero()).then_some(later)
    }
}

/// A /24 or a /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Block {
    V4([u8; 3]),
    V6([u16; 4]),
}

impl Block {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(v6) => Self::of_v6(v6),
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let [a, b, c, d, ..] = address.segments();
        Self::V6([a, b, c, d])
    }
}

/// When each key was last visited. What is older than `memory` is forgotten.
#[derive(Debug)]
struct Table<K> {
    visits: HashMap<K, Instant>,
    entries_max: usize,
    memory: Duration,
}

impl<K: Hash + Eq + Clone> Table<K> {
    fn new(entries_max: usize, memory: Duration) -> Self {
        Self {
            visits: HashMap::new(),
            entries_max,
            memory,
        }
    }

    /// How long until `pace` has passed since the last visit.
    fn wait<Q>(&self, key: &Q, pace: Duration, now: Instant) -> Duration
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.visits
            .get(key)
            .and_then(|last| last.checked_add(pace))
            .map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    fn note(&mut self, key: K, now: Instant) {
        if self.visits.len() >= self.entries_max && !self.visits.contains_key(&key) {
            let memory = self.memory;
            self.visits
                .retain(|_, last| now.saturating_duration_since(*last) < memory);
            if self.visits.len() >= self.entries_max {
                let oldest = self
                    .visits
                    .iter()
                    .min_by_key(|(_, last)| **last)
                    .map(|(key, _)| key.clone());
                if let Some(oldest) = oldest {
                    self.visits.remove(&oldest);
                }
            }
        }
        self.visits.insert(key, now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn at(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 443)
    }

    type Step<'a> = (u64, &'a [&'a str], Result<usize, (Deferral, u64)>);

    /// Visits `steps` of (second, candidates) and compares what each gives: the index, or the pace and the wait in seconds.
    fn check(steps: &[Step<'_>]) {
        let start = Instant::now();
        let mut pace = Pace::new(Paces::default());
        for (second, candidates, expect) in steps {
            let candidates: Vec<_> = candidates.iter().map(|text| at(text)).collect();
            let found = pace
                .charge_dial(&candidates, start + seconds(*second))
                .map(|turn| turn.index)
                .map_err(|late| (late.why, late.retry_after.as_secs()));
            assert_eq!(found, *expect, "at {second} s: {candidates:?}");
        }
    }

    #[test]
    fn an_address_has_one_check_in_ten_seconds() {
        check(&[
            (0, &["8.8.8.8"], Ok(0)),
            (3, &["8.8.8.8"], Err((Deferral::AddressPace, 7))),
            (10, &["8.8.8.8"], Ok(0)),
        ]);
    }

    #[test]
    fn a_block_has_one_check_in_two_seconds() {
        check(&[
            (0, &["8.8.8.8"], Ok(0)),
            (1, &["8.8.8.9"], Err((Deferral::BlockPace, 1))),
            (1, &["8.8.9.8"], Ok(0)),
            (2, &["8.8.8.9"], Ok(0)),
            (10, &["2606:4700:0:1::1"], Ok(0)),
            (
                11,
                &["2606:4700:0:1:ffff::1"],
                Err((Deferral::BlockPace, 1)),
            ),
            (11, &["2606:4700:0:2::1"], Ok(0)),
        ]);
    }

    #[test]
    fn the_first_candidate_in_turn_is_chosen_else_the_shortest_wait_told() {
        check(&[
            (0, &["8.8.8.8"], Ok(0)),
            (1, &["8.8.8.8", "9.9.9.9"], Ok(1)),
            (2, &["8.8.8.8", "9.9.9.9"], Err((Deferral::AddressPace, 8))),
            (2, &["9.9.9.9"], Err((Deferral::AddressPace, 9))),
        ]);
    }

    #[test]
    fn a_proven_address_is_asked_every_second() {
        let start = Instant::now();
        let mut pace = Pace::new(Paces {
            block: Duration::ZERO,
            ..Paces::default()
        });
        let here = [at("8.8.8.8")];
        assert!(pace.charge_dial(&here, start).is_ok());
        assert!(pace.charge_dial(&here, start + seconds(1)).is_err());
        pace.prove(here[0].ip(), start + seconds(1));
        assert!(pace.charge_dial(&here, start + seconds(1)).is_ok());
        assert!(
            pace.charge_dial(&here, start + Duration::from_millis(1999))
                .is_err()
        );
        assert!(pace.charge_dial(&here, start + seconds(2)).is_ok());
        let stale = start + seconds(1) + PROVEN_FOR;
        assert!(pace.charge_dial(&here, stale).is_ok());
        assert!(pace.charge_dial(&here, stale + seconds(1)).is_err());
    }

    #[test]
    fn a_group_is_looked_up_once_in_ten_seconds() {
        let start = Instant::now();
        let mut pace = Pace::new(Paces::default());
        assert_eq!(pace.charge_group("a.example", start), Ok(()));
        assert_eq!(
            pace.charge_group("a.example", start + seconds(4)),
            Err(Late {
                why: Deferral::GroupPace,
                retry_after: seconds(6)
            })
        );
        assert_eq!(pace.charge_group("b.example", start + seconds(4)), Ok(()));
        assert_eq!(pace.charge_group("a.example", start + seconds(10)), Ok(()));
    }

    #[test]
    fn dials_beyond_a_second_of_waiting_are_deferred() {
        let start = Instant::now();
        let mut pace = Pace::new(Paces::default());
        let mut waits = Vec::new();
        let late = loop {
            let index = u8::try_from(waits.len()).unwrap();
            match pace.charge_dial(&[at(&format!("8.8.{index}.8"))], start) {
                Ok(turn) => waits.push(turn.wait),
                Err(late) => break late,
            }
        };
        assert_eq!(waits.len(), 21);
        assert_eq!(waits[1] - waits[0], Duration::from_millis(50));
        assert_eq!(late.why, Deferral::DialPace);
        assert_eq!(late.retry_after, Duration::from_millis(1050));
    }

    #[test]
    fn a_full_table_forgets_the_oldest_alone() {
        let start = Instant::now();
        let mut table = Table::new(3, seconds(10));
        for (key, second) in [("a", 0), ("b", 1), ("c", 2), ("d", 3)] {
            table.note(key, start + seconds(second));
        }
        let mut kept: Vec<_> = table.visits.keys().copied().collect();
        kept.sort_unstable();
        assert_eq!(kept, ["b", "c", "d"]);
        table.note("e", start + seconds(12));
        assert_eq!(table.visits.len(), 2);
    }

    proptest! {
        /// I8: whatever comes when, two admitted visits of an address lie its pace apart, and a told wait is exact.
        #[test]
        fn visits_are_never_closer_than_the_pace(gaps in proptest::collection::vec((0_u64..15_000, 0_u8..3), 1..60)) {
            let mut now = Instant::now();
            let mut pace = Pace::new(Paces::default());
            let mut last: HashMap<u8, Instant> = HashMap::new();
            for (gap, who) in gaps {
                now += Duration::from_millis(gap);
                let candidate = [at(&format!("8.8.{who}.8"))];
                match pace.charge_dial(&candidate, now) {
                    Ok(turn) => {
                        let when = now + turn.wait;
                        if let Some(before) = last.insert(who, when) {
                            prop_assert!(when - before >= seconds(10));
                        }
                    }
                    Err(late) => {
                        prop_assert!(!late.retry_after.is_zero());
                        now += late.retry_after;
                        let turn = pace.charge_dial(&candidate, now);
                        prop_assert!(turn.is_ok());
                        last.insert(who, now + turn.unwrap().wait);
                    }
                }
            }
        }
    }
}
