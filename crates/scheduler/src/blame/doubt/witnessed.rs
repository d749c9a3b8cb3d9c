//! What the living have shown to work: when, without a gap since when, and where they live.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use census::time::Timestamp;
use protocol::egress::Family;

use super::{CLOSE, Dns, Doubt, Witness};

/// Fresh look-ups of the living are remembered for this long: longer than a failure's check and its wait together.
const LOOK_UPS_FOR: Duration = Duration::from_secs(5 * 60);

/// Fresh look-ups that are remembered at most: the gateway's 20 dials a second for five minutes, and room. Whoever loses the oldest asks twice.
const LOOK_UPS_MAX: usize = 8192;

/// Whoever lived elsewhere is waited for as a witness for this long: after a fortnight without it nothing is listed any more (I11), and a world
/// that has shrunk to one address must find its dead as well.
const ELSEWHERE_FOR: Duration = Duration::from_secs(14 * 24 * 3600);

/// When what was last shown to work, and since when without a gap.
#[derive(Debug)]
pub(super) struct Witnessed {
    any: Run,
    v4: Run,
    v6: Run,
    /// When and where names of the living led that were looked up afresh; by time.
    look_ups: VecDeque<(Timestamp, IpAddr)>,
    addresses_v4: Addresses,
    addresses_v6: Addresses,
}

/// The two places over one family where somebody lived last.
#[derive(Debug, Default)]
struct Addresses {
    last: Option<(IpAddr, Timestamp)>,
    /// Another than the last.
    other: Option<(IpAddr, Timestamp)>,
}

/// Moments at which something was shown to work, each within [`CLOSE`] of the one before.
#[derive(Debug, Clone, Copy)]
struct Run {
    since: Timestamp,
    last: Timestamp,
}

impl Default for Witnessed {
    fn default() -> Self {
        Self {
            any: Run::NONE,
            v4: Run::NONE,
            v6: Run::NONE,
            look_ups: VecDeque::new(),
            addresses_v4: Addresses::default(),
            addresses_v6: Addresses::default(),
        }
    }
}

impl Witnessed {
    pub(super) fn by(&mut self, witness: Witness, now: Timestamp) {
        self.any.add(witness.lived);
        match Family::of(witness.address) {
            Family::V4 => {
                self.v4.add(witness.lived);
                self.addresses_v4.add(witness.address, now);
            }
            Family::V6 => {
                self.v6.add(witness.lived);
                self.addresses_v6.add(witness.address, now);
            }
        }
        if witness.fresh {
            self.remember(witness.began, witness.address, now);
        }
    }

    fn remember(&mut self, began: Timestamp, address: IpAddr, now: Timestamp) {
        let later = self.look_ups.partition_point(|(at, _)| *at <= began);
        self.look_ups.insert(later, (began, address));
        // A clock that was set back leaves nothing behind that lies in the future.
        self.look_ups
            .retain(|(at, _)| now.since(*at) < LOOK_UPS_FOR && *at <= now);
        if self.look_ups.len() > LOOK_UPS_MAX {
            self.look_ups.pop_front();
        }
    }

    /// Nothing that was shown before can be placed in time any more. Where the living were is still known, and taken for known since now.
    pub(super) fn clock_was_set(&mut self, now: Timestamp) {
        let mut shown = std::mem::take(self);
        for places in [&mut shown.addresses_v4, &mut shown.addresses_v6] {
            for (_, at) in [&mut places.last, &mut places.other].into_iter().flatten() {
                *at = now;
            }
        }
        self.addresses_v4 = shown.addresses_v4;
        self.addresses_v6 = shown.addresses_v6;
    }

    /// Whether one who lives at `witness` shows that DNS leads names to where they belong, and not all of them to `led_to`. Its server's other
    /// family is no other place: so it must be over the same one.
    pub(super) fn tells_apart(
        &self,
        witness: IpAddr,
        led_to: Option<IpAddr>,
        now: Timestamp,
    ) -> bool {
        let Some(led_to) = led_to else { return true };
        let family = Family::of(led_to);
        let places = match family {
            Family::V4 => &self.addresses_v4,
            Family::V6 => &self.addresses_v6,
        };
        Family::of(witness) == family
            && (witness != led_to || !places.were_elsewhere_than(led_to, now))
    }

    /// Whether all that was relied on was shown to work without a gap from before `began` until after `ended`.
    pub(super) fn spans(
        &self,
        asked: &Doubt,
        began: Timestamp,
        ended: Timestamp,
        now: Timestamp,
    ) -> bool {
        let spans = |run: &Run| run.since <= began && ended <= run.last;
        let families = asked.families.iter().all(|family| match family {
            Family::V4 => spans(&self.v4),
            Family::V6 => spans(&self.v6),
        });
        let dns = || {
            let mut run = Run::NONE;
            self.look_ups
                .iter()
                .filter(|(_, address)| self.tells_apart(*address, asked.dns.led_to(), now))
                .for_each(|(at, _)| run.add(*at));
            spans(&run)
        };
        spans(&self.any) && families && (asked.dns == Dns::Sound || dns())
    }
}

impl Addresses {
    fn add(&mut self, address: IpAddr, now: Timestamp) {
        if self.last.is_some_and(|(last, _)| last != address) {
            self.other = self.last;
        }
        self.last = Some((address, now));
    }

    fn were_elsewhere_than(&self, address: IpAddr, now: Timestamp) -> bool {
        [self.last, self.other]
            .into_iter()
            .flatten()
            .any(|(place, at)| place != address && now.since(at) < ELSEWHERE_FOR)
    }
}

impl Run {
    /// Nothing was shown yet.
    const NONE: Self = Self {
        since: Timestamp(i64::MAX),
        last: Timestamp(i64::MIN),
    };

    fn add(&mut self, at: Timestamp) {
        if at < self.last {
            // A slow check that began earlier: the run holds without it.
            return;
        }
        if at > self.last.plus(CLOSE) || self.last == Self::NONE.last {
            self.since = at;
        }
        self.last = at;
    }
}
