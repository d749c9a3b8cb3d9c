//! What witnesses have shown to work: the last time, the start of the current gapless run, and the
//! witnesses' addresses.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use census::time::Timestamp;
use protocol::egress::Family;

use super::{CLOSE, Dns, Doubt, Witness};

/// How long fresh look-ups of witnesses are remembered: longer than a failure's check and its wait
/// together.
const LOOK_UPS_FOR: Duration = Duration::from_secs(5 * 60);

/// Most remembered fresh look-ups: the gateway's 20 dials a second for five minutes, with some
/// reserve. A failure that loses the oldest one needs a second check.
const LOOK_UPS_MAX: usize = 8192;

/// How long after the last witness at another address a further one is required. After a fortnight
/// without one no host is listed any more (I11), and a world that has shrunk to one address must
/// still find its unreachable hosts.
const ELSEWHERE_FOR: Duration = Duration::from_secs(14 * 24 * 3600);

/// When each thing was last shown to work, and since when without a gap.
#[derive(Debug)]
pub(super) struct Witnessed {
    any: Run,
    v4: Run,
    v6: Run,
    /// When fresh look-ups of witnesses' names happened and to which addresses they led, ordered by
    /// time.
    look_ups: VecDeque<(Timestamp, IpAddr)>,
    addresses_v4: Addresses,
    addresses_v6: Addresses,
}

/// The last two distinct addresses of one family at which a host responded.
#[derive(Debug, Default)]
struct Addresses {
    last: Option<(IpAddr, Timestamp)>,
    /// The one before, different from the last.
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
        // After the clock was set back, no entry in the future remains.
        self.look_ups
            .retain(|(at, _)| now.since(*at) < LOOK_UPS_FOR && *at <= now);
        if self.look_ups.len() > LOOK_UPS_MAX {
            self.look_ups.pop_front();
        }
    }

    /// Times from before are no longer comparable. The addresses of witnesses are kept, with `now`
    /// as their time.
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

    /// Whether a witness at `witness` shows that DNS leads names to their own addresses, and not
    /// all of them to `led_to`. The other family of the same server does not count as a different
    /// address, so the witness must use the same family.
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

    /// Whether everything that the check relied on was shown to work without a gap from before
    /// `began` until after `ended`.
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
    const NONE: Self = Self {
        since: Timestamp(i64::MAX),
        last: Timestamp(i64::MIN),
    };

    fn add(&mut self, at: Timestamp) {
        if at < self.last {
            // A slow check that began earlier. The run holds without it.
            return;
        }
        if at > self.last.plus(CLOSE) || self.last == Self::NONE.last {
            self.since = at;
        }
        self.last = at;
    }
}
