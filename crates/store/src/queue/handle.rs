//! The handle to the writer thread, through which every module requests transactions.
//!
//! It knows no table. `writer.rs` has the census's requests; the modules of tables add theirs.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use admission::Names;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::db::error::StoreError;
use crate::known::KnownNames;
use crate::queue::batch::{Job, Task};

/// Requests that may wait: a few for each check that an engine runs at once. A full queue makes its
/// callers wait, which slows the checks down to what the disk can take.
const QUEUE_MAX: usize = 1024;

/// A handle to the writer thread.
///
/// Every method returns after its transaction is on disk. Dropping its future does not cancel the
/// request.
#[derive(Clone)]
pub struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    pub(crate) known: Arc<KnownNames>,
    /// The rule by which new rows are grouped. `None` until [`Writer::group_by`].
    names: Arc<RwLock<Option<Arc<Names>>>>,
}

impl Writer {
    /// A handle, and the queue of the requests made through it and its clones.
    pub(super) fn new(known: Arc<KnownNames>) -> (Self, mpsc::Receiver<Box<dyn Job>>) {
        let (queue, requests) = mpsc::channel(QUEUE_MAX);
        let names = Arc::default();
        (
            Self {
                queue,
                known,
                names,
            },
            requests,
        )
    }

    /// From now on, a new row gets the group of its registered domain in the transaction that
    /// inserts it.
    pub fn group_by(&self, names: Arc<Names>) {
        let place = self.names.write();
        *place.unwrap_or_else(PoisonError::into_inner) = Some(names);
    }

    pub(crate) fn names(&self) -> Option<Arc<Names>> {
        let names = self.names.read();
        names.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs `work` in a transaction. It may run more than once, each time on a database without the
    /// effect of the previous run, but takes effect once.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Task::new(work, reply));
        self.queue
            .send(job)
            .await
            .map_err(|_closed| StoreError::Closed)?;
        answer.await.map_err(|_dropped| StoreError::Closed)?
    }

    #[cfg(test)]
    pub(crate) fn known_names(&self) -> &KnownNames {
        &self.known
    }

    /// Wakes the thread without a request. A full queue wakes it anyway.
    pub(super) fn wake_up(&self) {
        drop(self.queue.try_send(Task::wake_up()));
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("waiting", &(QUEUE_MAX - self.queue.capacity()))
            .finish_non_exhaustive()
    }
}
