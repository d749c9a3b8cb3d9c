//! Paces visits (invariant I8): by group, address, block, and for all dials together.
//!
//! It takes a time and a target, and returns either permission or the exact wait. Pure: the caller
//! passes the time. Memory is bounded by [`PACED_MAX`] visits and [`PROVEN_MAX`] proven addresses.
//! A full table forgets its oldest entry.
//!
//! A visitor before its turn is promised its own slot, behind all earlier promises. If all names of
//! a wildcard farm got the same time, all of them would compete for each turn.

mod table;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use protocol::egress::PROMISED_WITHIN;
use serde::{Deserialize, Serialize};

use crate::settings::Paces;
use crate::wire::control::Deferral;
use table::Table;

/// Most visits remembered in each table. At 20 dials a second and a memory of 10 s, about 200 are
/// current; groups grow only with opens.
pub const PACED_MAX: usize = 65_536;

/// Most addresses remembered as proven: about twice as many as the Fediverse has.
pub const PROVEN_MAX: usize = 65_536;

/// How long an address stays proven: a fortnight, after which no host at it is listed either (I11).
pub const PROVEN_FOR: Duration = Duration::from_hours(14 * 24);

/// Longest wait for a dial slot. Beyond it the open is deferred: waiting for a second is cheaper
/// than another look-up.
pub const DIAL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Least time between two look-ups of TXT records, for all together and before division. Ten a
/// second is more than owners and submitters ever need, and harmless for a resolver.
pub const TEXT_PACE: Duration = Duration::from_millis(100);

/// A refusal before the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Late {
    pub why: Deferral,
    pub retry_after: Duration,
}

/// A dial that may be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub index: usize,
    /// Wait before the dial, until the reserved dial slot begins. At most [`DIAL_WAIT_MAX`].
    pub wait: Duration,
}

/// What one open has charged. Its own attempts don't delay each other, because checks are paced,
/// not dials.
#[derive(Debug, Default)]
pub struct Charged {
    /// Their blocks are charged as well.
    addresses: Vec<IpAddr>,
    delay: Duration,
}

impl Charged {
    /// A dial may begin `delay` after its slot.
    pub fn new(addresses: Vec<IpAddr>, delay: Duration) -> Self {
        Self { addresses, delay }
    }

    fn has_block(&self, block: Block) -> bool {
        self.addresses.iter().any(|one| Block::of(*one) == block)
    }
}

#[derive(Debug)]
pub struct Pace {
    paces: Paces,
    promised_within: Duration,
    groups: Table<Box<str>>,
    addresses: Table<IpAddr>,
    blocks: Table<Block>,
    proven: Table<IpAddr>,
    next_dial: Option<Instant>,
    texts: Table<Box<str>>,
    text_pace: Duration,
    next_text: Option<Instant>,
}

impl Pace {
    /// Empty tables: every visit is in turn. All paces and promises are divided by `divisor`; 0
    /// leaves them unchanged.
    pub fn new(paces: Paces, divisor: u32) -> Self {
        let paces = paces.divided(divisor);
        Self {
            groups: Table::new(PACED_MAX, paces.group),
            addresses: Table::new(PACED_MAX, paces.address),
            blocks: Table::new(PACED_MAX, paces.block),
            proven: Table::new(PROVEN_MAX, PROVEN_FOR),
            next_dial: None,
            texts: Table::new(PACED_MAX, paces.group),
            text_pace: TEXT_PACE.checked_div(divisor).unwrap_or(TEXT_PACE),
            next_text: None,
            promised_within: PROMISED_WITHIN
                .checked_div(divisor)
                .unwrap_or(PROMISED_WITHIN),
            paces,
        }
    }

    /// Charges a look-up to `group`.
    ///
    /// # Errors
    /// Fails if the group's last look-up was less than its pace ago. Nothing is charged then, and a
    /// slot is promised.
    pub fn charge_group(&mut self, group: &str, now: Instant) -> Result<(), Late> {
        let (pace, within) = (self.paces.group, self.promised_within);
        if let Some(slot) = self.groups.slot(group, pace, within, now) {
            self.groups.promise(group, slot);
            return Err(Late {
                why: Deferral::GroupPace,
                retry_after: slot.saturating_duration_since(now),
            });
        }
        self.groups.note(group.into(), now);
        Ok(())
    }

    /// Charges `group` for a look-up in turn that begins only at `latest`.
    pub fn put_off_group(&mut self, group: &str, latest: Instant) {
        self.groups.note(group.into(), latest);
    }

    /// Selects the first candidate whose address and block are in turn, or were charged by this
    /// open before, and charges them and a dial slot.
    ///
    /// - `Some(turn)` if there is one
    /// - `None` if none is in turn, or the dial slots are taken; nothing is charged then, and
    ///   [`Self::promise_dial`] returns when to retry
    pub fn charge_dial(
        &mut self,
        candidates: &[SocketAddr],
        charged: &mut Charged,
        now: Instant,
    ) -> Option<Turn> {
        let slot = self.next_dial.map_or(now, |next| next.max(now));
        let wait = slot.saturating_duration_since(now);
        if wait > DIAL_WAIT_MAX {
            return None;
        }
        let (index, address) = candidates
            .iter()
            .map(SocketAddr::ip)
            .enumerate()
            .find(|(_, address)| self.in_turn(*address, charged, now))?;
        self.next_dial = slot.checked_add(self.paces.dial);
        // Charged at the slot's time, not now, because the dials are spaced.
        let latest = slot.checked_add(charged.delay).unwrap_or(slot);
        let block = Block::of(address);
        if !charged.has_block(block) {
            self.blocks.note(block, latest);
        }
        if !charged.addresses.contains(&address) {
            charged.addresses.push(address);
            self.addresses.note(address, latest);
        }
        Some(Turn { index, wait })
    }

    /// Promises the time from which one open can dial `at_once` of the `targets`, or all if they
    /// are fewer.
    ///
    /// A wait of zero means that they are in turn now.
    pub fn promise_dial(&mut self, targets: &[SocketAddr], at_once: usize, now: Instant) -> Late {
        let mut slots: Vec<_> = targets
            .iter()
            .map(|target| (self.dial_slot(target.ip(), now), target.ip()))
            .collect();
        slots.sort_unstable_by_key(|((slot, _), _)| *slot);
        let last = slots
            .into_iter()
            .take(at_once.max(1))
            .next_back()
            .filter(|((slot, _), _)| *slot > now);
        let next_dial = self.next_dial.map_or(now, |next| next.max(now));
        let dial_late = Late {
            why: Deferral::DialPace,
            retry_after: next_dial.saturating_duration_since(now),
        };
        let Some(((slot, why), address)) = last else {
            return dial_late;
        };
        match why {
            Deferral::BlockPace => self.blocks.promise(&Block::of(address), slot),
            Deferral::AddressPace
            | Deferral::GroupPace
            | Deferral::DialPace
            | Deferral::Dns
            | Deferral::NoFamily
            | Deferral::Full => self.addresses.promise(&address, slot),
        }
        let late = Late {
            why,
            retry_after: slot.saturating_duration_since(now),
        };
        if dial_late.retry_after > late.retry_after {
            dial_late
        } else {
            late
        }
    }

    /// Charges a look-up of the TXT record at `label` below `group`. Returns the wait for the
    /// reserved slot, at most [`DIAL_WAIT_MAX`].
    ///
    /// Checks and look-ups of TXT records don't charge each other: a client that requests TXT
    /// records must not be able to delay a domain's checks. Each label has its own pace, because a
    /// token's form may need two labels one after the other.
    ///
    /// # Errors
    /// Fails if the last look-up was less than the group's pace ago, or if there were too many in
    /// total. Nothing is charged or promised then.
    pub fn charge_text(
        &mut self,
        label: &str,
        group: &str,
        now: Instant,
    ) -> Result<Duration, Late> {
        let key = format!("{label}.{group}");
        let by_group = self.texts.wait(key.as_str(), self.paces.group, now);
        if !by_group.is_zero() {
            return Err(Late {
                why: Deferral::GroupPace,
                retry_after: by_group,
            });
        }
        let slot = self.next_text.map_or(now, |next| next.max(now));
        let wait = slot.saturating_duration_since(now);
        if wait > DIAL_WAIT_MAX {
            return Err(Late {
                why: Deferral::Full,
                retry_after: wait,
            });
        }
        self.next_text = slot.checked_add(self.text_pace);
        self.texts.note(key.into(), slot);
        Ok(wait)
    }

    /// Records that an instance responded at `address`. From now on only its block paces it,
    /// because large hosters have thousands of instances at one address.
    pub fn prove(&mut self, address: IpAddr, now: Instant) {
        self.proven.note(address, now);
    }

    fn in_turn(&self, address: IpAddr, charged: &Charged, now: Instant) -> bool {
        let block = Block::of(address);
        let address_in_turn = charged.addresses.contains(&address)
            || self.is_proven(address, now)
            || self
                .addresses
                .wait(&address, self.paces.address, now)
                .is_zero();
        let block_in_turn =
            charged.has_block(block) || self.blocks.wait(&block, self.paces.block, now).is_zero();
        address_in_turn && block_in_turn
    }

    /// The slot to promise for `address`, and whether the address or its block determines it.
    fn dial_slot(&self, address: IpAddr, now: Instant) -> (Instant, Deferral) {
        let within = self.promised_within;
        let by_address = if self.is_proven(address, now) {
            None
        } else {
            self.addresses
                .slot(&address, self.paces.address, within, now)
        };
        let by_block = self
            .blocks
            .slot(&Block::of(address), self.paces.block, within, now);
        // The later one decides. Promising the other one too would leave unused slots.
        if by_block > by_address {
            (by_block.unwrap_or(now), Deferral::BlockPace)
        } else {
            (by_address.unwrap_or(now), Deferral::AddressPace)
        }
    }

    fn is_proven(&self, address: IpAddr, now: Instant) -> bool {
        !self.proven.wait(&address, PROVEN_FOR, now).is_zero()
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

#[cfg(test)]
mod tests;
