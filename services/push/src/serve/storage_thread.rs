//! A thread for the storage, since its calls wait for a disk. Carries out calls one after the
//! other, in order of arrival.

mod trial;

use std::sync::{Arc, mpsc};
use std::thread;

use tokio::sync::oneshot;

use crate::storage::StorageError;
use crate::storage::sqlite::Sqlite;

use super::meters::Meters;

pub(super) use trial::Trial;

/// Queued calls. Callers wait while the queue is full.
const WAITING_MAX: usize = 4096;

type Job = Box<dyn FnOnce(&Sqlite) + Send>;

/// The storage, for tasks. Clones are cheap and share the thread.
#[derive(Clone)]
pub(super) struct StorageThread {
    storage: Arc<Sqlite>,
    jobs: mpsc::SyncSender<Job>,
    room: Arc<tokio::sync::Semaphore>,
    meters: Arc<Meters>,
}

impl std::fmt::Debug for StorageThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageThread").finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the storage's thread has ended")]
struct Ended;

impl StorageThread {
    /// Starts the thread. It ends when its last handle is dropped.
    pub(super) fn start(storage: Arc<Sqlite>, meters: Arc<Meters>) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::sync_channel::<Job>(WAITING_MAX);
        let at_work = Arc::clone(&storage);
        thread::Builder::new()
            .name("push-storage".to_owned())
            .spawn(move || {
                for job in waiting {
                    job(at_work.as_ref());
                }
            })?;
        let room = Arc::new(tokio::sync::Semaphore::new(WAITING_MAX));
        Ok(Self {
            storage,
            jobs,
            room,
            meters,
        })
    }

    /// See [`Sqlite::ttl_max_s`]. Does not wait.
    pub(super) fn ttl_max_s(&self) -> u32 {
        self.storage.ttl_max_s()
    }

    /// A place for a message that arrives now. Does not wait.
    pub(super) fn place(&self, now_ms: i64) -> i64 {
        self.storage.place(now_ms)
    }

    /// Failures are counted and logged here.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Sqlite) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let called = self.wait_for(call).await;
        if let Err(error) = &called {
            self.meters.storage_failed(error);
        }
        called
    }

    async fn wait_for<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Sqlite) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let _room = self.room.acquire().await.map_err(|_closed| ended())?;
        let (told, answer) = oneshot::channel();
        let job: Job = Box::new(move |storage| {
            // The caller may be gone.
            told.send(call(storage)).ok();
        });
        self.jobs.send(job).map_err(|_closed| ended())?;
        answer.await.map_err(|_closed| ended())?
    }
}

fn ended() -> StorageError {
    StorageError::new(Ended)
}
