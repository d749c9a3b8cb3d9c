//! Memory that clients hold: what they have sent and is not handled, and what waits for them.
//! All connections together have a limit, beyond which the one that holds most is closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Memory of a connected client, in bytes: 18 KiB if it sends and receives nothing, and 20 KiB in
/// the kernel if it does not read, where its send buffer is bounded.
const CLIENT_BYTES: u64 = (18 + 20) * 1024;

/// Memory that is not clients': the program, its storage, and messages on their way.
const OTHER_BYTES: u64 = 96 * 1024 * 1024;

/// Most clients whatever the memory: one process over one SQLite file serves no more.
const CLIENTS_MAX: u64 = 25_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub clients: usize,
    /// What all of them together hold, in bytes.
    pub held_bytes: usize,
}

impl Bounds {
    /// Bounds within this much memory, in bytes: a quarter for what clients hold, the rest for
    /// connections.
    pub fn within(memory_bytes: u64) -> Self {
        let held = memory_bytes / 4;
        let rest = memory_bytes
            .saturating_sub(held)
            .saturating_sub(OTHER_BYTES);
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            clients: size((rest / CLIENT_BYTES).min(CLIENTS_MAX)),
            held_bytes: size(held),
        }
    }
}

#[derive(Debug)]
pub(in crate::serve) struct Held {
    max: usize,
    shares: Mutex<Shares>,
}

#[derive(Debug, Default)]
struct Shares {
    total: usize,
    next: u64,
    by_connection: HashMap<u64, One>,
}

#[derive(Debug)]
struct One {
    bytes: usize,
    closed: Arc<Notify>,
}

impl Held {
    pub(in crate::serve) fn new(max: usize) -> Self {
        Self {
            max,
            shares: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub(in crate::serve) fn total(&self) -> usize {
        self.shares().total
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(in crate::serve) struct Share {
    held: Arc<Held>,
    id: u64,
    bytes: usize,
    closed: Arc<Notify>,
}

impl Share {
    pub(in crate::serve) fn new(held: Arc<Held>) -> Self {
        let id = {
            let mut shares = held.shares();
            shares.next = shares.next.wrapping_add(1);
            shares.next
        };
        Self {
            held,
            id,
            bytes: 0,
            closed: Arc::default(),
        }
    }

    /// Waits until the connection must be closed, because all together hold too much and it most.
    pub(in crate::serve) async fn is_over(&self) {
        self.closed.notified().await;
    }

    /// Sets what the connection holds now.
    pub(in crate::serve) fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let mut shares = self.held.shares();
        // One that is being closed counts no more.
        if self.bytes > 0 && !shares.by_connection.contains_key(&self.id) {
            return;
        }
        shares.total = shares
            .total
            .saturating_sub(self.bytes)
            .saturating_add(bytes);
        self.bytes = bytes;
        if bytes == 0 {
            shares.by_connection.remove(&self.id);
            return;
        }
        let closed = Arc::clone(&self.closed);
        shares.by_connection.insert(self.id, One { bytes, closed });
        while shares.total > self.held.max {
            let most = shares.by_connection.iter().max_by_key(|(_, one)| one.bytes);
            let Some(id) = most.map(|(id, _)| *id) else {
                return;
            };
            if let Some(one) = shares.by_connection.remove(&id) {
                shares.total = shares.total.saturating_sub(one.bytes);
                one.closed.notify_one();
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_over(share: &Share) -> bool {
        let mut waiting = std::pin::pin!(share.is_over());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        waiting.as_mut().poll(&mut context).is_ready()
    }

    #[test]
    fn who_holds_most_is_closed_and_gives_room_to_others() {
        let held = Arc::new(Held::new(100));
        let mut shares = [0, 1, 2].map(|_| Share::new(Arc::clone(&held)));
        for (share, bytes) in shares.iter_mut().zip([30, 50, 20]) {
            share.set(bytes);
        }
        assert!(!shares.iter().any(is_over), "all of it fits");
        shares[2].set(21);
        assert_eq!([false, true, false], [0, 1, 2].map(|n| is_over(&shares[n])));
        // It has not let go yet, and counts no more.
        shares[1].set(90);
        shares[0].set(70);
        assert!(!shares.iter().any(is_over));
        drop(shares);
        assert_eq!(held.shares().total, 0);
        assert!(held.shares().by_connection.is_empty());
    }

    #[test] // S31
    fn memory_decides_how_many_clients_there_are() {
        const MIB: u64 = 1024 * 1024;
        let bounds = |mib| Bounds::within(mib * MIB);
        assert_eq!(bounds(768).held_bytes, 192 * 1024 * 1024);
        assert!((12_000..13_000).contains(&bounds(768).clients));
        assert!(bounds(1360).clients < 25_000 && bounds(1370).clients == 25_000);
        assert_eq!(bounds(64).clients, 0);
    }
}
