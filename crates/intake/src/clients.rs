//! How much one client may ask: a window that slides.
//!
//! In: whose request it is, and the moment. Out: go, or how long to wait. Never more than the limit in any window, whatever the order of requests.
//! Memory is bounded by [`WINDOWS`] times the limit. Addresses are not kept (invariant I10): a client is the place that a keyed hash of its address
//! points to, by a key that is drawn at the start and never leaves this table. Two clients that share a place share its limit, so that nothing more
//! gets through; who doesn't know the key can't choose whose place to fill.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Places. A thousand clients an hour share one with another in three cases of a hundred.
pub const WINDOWS: usize = 1 << 14;

/// Largest limit: with it the table has 26 MB.
pub const LIMIT_MAX: usize = 100;

/// How much more the wider neighbourhood of an IPv6 client, a /48, may ask: whoever is given one has 65 536 /64s to ask from.
pub const WIDE_FACTOR: usize = 8;

/// Whose request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// An IPv4 address.
    V4([u8; 4]),
    /// The /64 of an IPv6 address, which one subscriber has at least.
    V6([u16; 4]),
    /// Nobody can tell; all of these are one client.
    Unknown,
}

impl Client {
    /// The client at an address. A mapped IPv4 address is an IPv4 address.
    pub fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::V4(v4.octets()),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                Self::V6([a, b, c, d])
            }
        }
    }

    /// The /48 that an IPv6 client lies in.
    fn wide(self) -> Option<[u16; 3]> {
        match self {
            Self::V6([a, b, c, _]) => Some([a, b, c]),
            Self::V4(_) | Self::Unknown => None,
        }
    }
}

/// The table of clients.
#[derive(Debug)]
pub struct Clients {
    limit: usize,
    window: Duration,
    key: RandomState,
    narrow: Vec<VecDeque<Instant>>,
    wide: Vec<VecDeque<Instant>>,
}

impl Clients {
    /// An empty table: `limit` requests, at least 1 and at most [`LIMIT_MAX`], in each `window`.
    pub fn new(limit: usize, window: Duration) -> Self {
        Self {
            limit: limit.clamp(1, LIMIT_MAX),
            window,
            key: RandomState::new(),
            narrow: vec![VecDeque::new(); WINDOWS],
            // A wide place holds as much as eight others, so there are an eighth as many.
            wide: vec![VecDeque::new(); WINDOWS / WIDE_FACTOR],
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// How long to wait at least, when the window is full. Nothing is counted then.
    pub fn admit(&mut self, client: Client, now: Instant) -> Result<(), Duration> {
        let Self {
            limit,
            window,
            key,
            narrow,
            wide,
        } = self;
        let narrow = place(narrow, key, client);
        let wide = client.wide().and_then(|block| place(wide, key, block));
        let wide_limit = limit.saturating_mul(WIDE_FACTOR);
        let limits = [(narrow, *limit), (wide, wide_limit)];
        let mut charged = Vec::with_capacity(limits.len());
        for (place, limit) in limits {
            let Some(place) = place else { continue };
            if let Some(wait) = full_for(place, limit, *window, now) {
                return Err(wait);
            }
            charged.push(place);
        }
        for place in charged {
            place.push_back(now);
        }
        Ok(())
    }
}

fn place<'table>(
    places: &'table mut [VecDeque<Instant>],
    key: &RandomState,
    whose: impl Hash,
) -> Option<&'table mut VecDeque<Instant>> {
    let count = u64::try_from(places.len()).ok()?;
    let index = key.hash_one(whose).checked_rem(count)?;
    places.get_mut(usize::try_from(index).ok()?)
}

/// How long this window is full; nothing when it has room. Forgets what has left it.
fn full_for(
    requests: &mut VecDeque<Instant>,
    limit: usize,
    window: Duration,
    now: Instant,
) -> Option<Duration> {
    while let Some(first) = requests.front() {
        if now.saturating_duration_since(*first) < window {
            break;
        }
        requests.pop_front();
    }
    if requests.is_empty() {
        // What an empty place holds on to would add up over all clients that ever came.
        requests.shrink_to_fit();
    }
    if requests.len() < limit {
        return None;
    }
    let ends = requests.front().and_then(|first| first.checked_add(window));
    Some(ends.map_or(window, |end| end.saturating_duration_since(now)))
}

#[cfg(test)]
mod tests;
