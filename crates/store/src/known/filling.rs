//! Reads all known names into memory at start, in the background.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::db::connection;
use crate::db::error::StoreError;
use crate::known::KnownNames;

/// The thread that fills [`KnownNames`]. Dropping this stops it.
#[derive(Debug)]
pub(crate) struct Filling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Filling {
    pub(crate) fn begin(path: &Path, known: &Arc<KnownNames>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (path, known, is_over) = (path.to_owned(), Arc::clone(known), Arc::clone(&stop));
        let fill = move || {
            let filled = connection::read_only(&path)
                .map_err(StoreError::from)
                .and_then(|connection| known.fill(&connection, &is_over));
            match filled {
                Ok(()) => tracing::debug!(names = known.names(), "known names are in memory"),
                // Other requests to the database log the cause.
                Err(error) => {
                    tracing::debug!(%error, "known names could not be read into memory; they are looked up in the database")
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("store-names".to_owned())
            .spawn(fill)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Waits until all names are loaded.
    pub(crate) fn wait(&mut self) {
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that reads the known names had panicked");
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}
