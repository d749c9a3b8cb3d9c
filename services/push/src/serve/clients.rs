//! The clients connected here, and how messages reach them.

pub(super) mod held;
pub(super) mod newcomers;
pub(super) mod slots;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::ids::Uaid;
use crate::notification::Notification;
use crate::session::Direct;

/// Most messages in transit to one client. Further ones are stored instead.
const QUEUE_MAX: usize = 25;

/// Bytes of all messages that are in transit to clients or unacknowledged: they are only in memory.
/// Further ones are stored instead.
const DIRECT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a message in addition to its body: its version, and its share of tasks and queues.
const MESSAGE_BYTES: usize = 1024;

#[derive(Debug)]
pub(super) struct Clients {
    by_id: Mutex<HashMap<Uaid, Client>>,
    connections: AtomicU64,
    /// A permit for each byte of [`DIRECT_BYTES_MAX`].
    room: Arc<Semaphore>,
}

/// A message in transit, and the room that it takes.
pub(super) type OnItsWay = (Notification, OwnedSemaphorePermit);

#[derive(Debug)]
struct Client {
    connection: u64,
    direct: mpsc::Sender<OnItsWay>,
    rule: Direct,
    reach: Arc<Reach>,
    /// Ends the connection: dropped when the client connects again, used when the service stops.
    end: oneshot::Sender<()>,
}

/// Signals between a connection and the rest of the service.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub(super) check: Notify,
    pub(super) wake: Notify,
    /// Whether messages may be sent straight to the client.
    pub(super) takes_direct: AtomicBool,
}

/// A connection's side of the signals.
#[derive(Debug)]
pub(super) struct Entry {
    connection: u64,
    pub(super) direct: mpsc::Receiver<OnItsWay>,
    pub(super) reach: Arc<Reach>,
    /// An error when the client connects again, a value when the service stops.
    pub(super) end: oneshot::Receiver<()>,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            by_id: Mutex::default(),
            connections: AtomicU64::default(),
            room: Arc::new(Semaphore::new(DIRECT_BYTES_MAX)),
        }
    }
}

/// Memory of a message that is not stored.
pub(super) fn direct_bytes(message: &Notification) -> usize {
    message.payload_bytes().saturating_add(MESSAGE_BYTES)
}

impl Clients {
    /// Registers a connection under its client's id. An earlier connection of the same client is
    /// superseded.
    pub(super) fn enter(&self, uaid: Uaid, rule: Direct) -> Entry {
        let connection = self.connections.fetch_add(1, Ordering::Relaxed);
        let (sender, direct) = mpsc::channel(QUEUE_MAX);
        let (ends, end) = oneshot::channel();
        let reach = Arc::<Reach>::default();
        let client = Client {
            connection,
            direct: sender,
            rule,
            reach: Arc::clone(&reach),
            end: ends,
        };
        self.by_id().insert(uaid, client);
        Entry {
            connection,
            direct,
            reach,
            end,
        }
    }

    /// Removes an ended connection. No message reaches it any more; messages in transit are
    /// returned.
    pub(super) fn leave(&self, uaid: Uaid, mut entry: Entry) -> Vec<OnItsWay> {
        {
            let mut by_id = self.by_id();
            let is_this = |client: &Client| client.connection == entry.connection;
            if by_id.get(&uaid).is_some_and(is_this) {
                by_id.remove(&uaid);
            }
        }
        entry.direct.close();
        std::iter::from_fn(|| entry.direct.try_recv().ok()).collect()
    }

    /// Sends a message straight to a client; false if the client is not here or busy, or there is
    /// no room.
    pub(super) fn push(&self, uaid: Uaid, message: Notification) -> bool {
        let by_id = self.by_id();
        let Some(client) = by_id.get(&uaid) else {
            return false;
        };
        if !client.reach.takes_direct.load(Ordering::Acquire) {
            return false;
        }
        let bytes = u32::try_from(direct_bytes(&message)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(bytes) else {
            return false;
        };
        match client.rule {
            Direct::Always => {}
            Direct::OnlyUnstorable if message.ttl_s > 0 => return false,
            Direct::OnlyUnstorable => {}
            // One at a time: the connection allows the next one.
            Direct::WhenDrained => client.reach.takes_direct.store(false, Ordering::Release),
        }
        client.direct.try_send((message, room)).is_ok()
    }

    /// Notifies a client's connection of a stored message; false if the client is not here.
    pub(super) fn notify(&self, uaid: Uaid) -> bool {
        let by_id = self.by_id();
        let client = by_id.get(&uaid);
        if let Some(client) = client {
            client.reach.check.notify_one();
        }
        client.is_some()
    }

    /// Tells all connections that other nodes may have taken this one for dead.
    pub(super) fn wake(&self) {
        for client in self.by_id().values() {
            client.reach.check.notify_one();
            client.reach.wake.notify_one();
        }
    }

    pub(super) fn has(&self, uaid: Uaid) -> bool {
        self.by_id().contains_key(&uaid)
    }

    /// Ends the connections of this many clients at most. Returns how many are left.
    pub(super) fn dismiss(&self, count: usize) -> usize {
        let mut by_id = self.by_id();
        let some: Vec<Uaid> = by_id.keys().take(count).copied().collect();
        for client in some.iter().filter_map(|uaid| by_id.remove(uaid)) {
            // The connection may have ended by itself.
            client.end.send(()).ok();
        }
        by_id.len()
    }

    pub(super) fn count(&self) -> usize {
        self.by_id().len()
    }

    #[cfg(test)]
    pub(super) fn free_bytes(&self) -> usize {
        self.room.available_permits()
    }

    fn by_id(&self) -> MutexGuard<'_, HashMap<Uaid, Client>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // S30
    fn message_without_room_is_refused() {
        let message = Notification::sample("");
        let clients = Clients {
            room: Arc::new(Semaphore::new(direct_bytes(&message) * 2 - 1)),
            ..Clients::default()
        };
        let (one, other) = (Uaid::from_random([1; 16]), Uaid::from_random([2; 16]));
        let mut entries = [one, other].map(|uaid| clients.enter(uaid, Direct::Always));
        for entry in &entries {
            entry.reach.takes_direct.store(true, Ordering::Release);
        }
        assert!(clients.push(one, message.clone()));
        assert!(!clients.push(other, message.clone()), "no room for both");
        drop(entries[0].direct.try_recv().unwrap());
        assert!(clients.push(other, message));
    }
}
