//! The daemon's sockets: commands, the intake, the console, the push process, Prometheus.

pub mod console;
pub mod control;
pub mod intake;
pub mod metrics;
pub mod push;

mod socket;

use std::sync::{Arc, Mutex, PoisonError};

use store::{Reader, StoreError};

/// Reads from the database on a thread that may block.
async fn read<T: Send + 'static>(
    reader: &Arc<Mutex<Reader>>,
    read: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, String> {
    let reader = Arc::clone(reader);
    let reading = tokio::task::spawn_blocking(move || {
        read(&reader.lock().unwrap_or_else(PoisonError::into_inner))
    });
    let read = reading.await.map_err(|error| error.to_string())?;
    read.map_err(|error| error.to_string())
}
