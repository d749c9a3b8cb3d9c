//! Limits the requests per client, with a sliding window.
//!
//! [`Clients::admit`] takes the client and the time, and either admits the request or returns how
//! long to wait. No window ever holds more than the limit, whatever the order of requests. Memory
//! is bounded by [`WINDOWS`] times the limit. Addresses are not stored (invariant I10): a client is
//! the table entry that a keyed hash of its address selects. The key is drawn at the start and
//! never leaves this table. Two clients with the same entry share its limit, so that no more gets
//! through. Without the key, nobody can choose which client's entry to fill.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Number of table entries. With a thousand clients an hour, three in a hundred share an entry.
pub const WINDOWS: usize = 1 << 14;

/// Highest limit, with which the table has 26 MB.
pub const LIMIT_MAX: usize = 100;

/// Factor for the limit of an IPv6 client's /48: the holder of one can send requests from 65 536
/// /64s.
pub const WIDE_FACTOR: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    V4([u8; 4]),
    /// The /64 of an IPv6 address: one subscriber has at least this much.
    V6([u16; 4]),
    /// The address is unknown. All such requests count as one client.
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

    fn wide(self) -> Option<[u16; 3]> {
        match self {
            Self::V6([a, b, c, _]) => Some([a, b, c]),
            Self::V4(_) | Self::Unknown => None,
        }
    }
}

#[derive(Debug)]
pub struct Clients {
    limit: usize,
    window: Duration,
    key: RandomState,
    narrow: Vec<VecDeque<Instant>>,
    wide: Vec<VecDeque<Instant>>,
}

impl Clients {
    /// An empty table for `limit` requests, at least 1 and at most [`LIMIT_MAX`], in each `window`.
    pub fn new(limit: usize, window: Duration) -> Self {
        Self {
            limit: limit.clamp(1, LIMIT_MAX),
            window,
            key: RandomState::new(),
            narrow: vec![VecDeque::new(); WINDOWS],
            // A wide entry holds eight times as much as others, so there are an eighth as many.
            wide: vec![VecDeque::new(); WINDOWS / WIDE_FACTOR],
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// Returns the shortest wait if the window is full. The request is not counted then.
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

/// How long this window is full. `None` if it has room. Removes entries that have left the window.
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
        // The buffers of empty entries would add up over all clients that ever came.
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
