//! The thread that owns the only connection that writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::db::checkpoint::Checkpoints;
use crate::db::error::coded;
use crate::known::KnownNames;
use crate::queue::batch::{self, Job};
use crate::queue::handle::Writer;

/// The writer thread. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct WriterThread {
    writer: Writer,
    closing: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

pub(crate) fn start(
    connection: Connection,
    checkpoints: Checkpoints,
    known: Arc<KnownNames>,
) -> std::io::Result<WriterThread> {
    let (writer, requests) = Writer::new(known);
    let closing = Arc::new(AtomicBool::new(false));
    let handle = std::thread::Builder::new()
        .name("store-writer".to_owned())
        .spawn({
            let closing = Arc::clone(&closing);
            move || work(connection, checkpoints, requests, &closing)
        })?;
    Ok(WriterThread {
        writer,
        closing,
        handle: Some(handle),
    })
}

impl WriterThread {
    pub(crate) fn writer(&self) -> Writer {
        self.writer.clone()
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        self.writer.wake_up();
        if let Some(handle) = self.handle.take()
            && handle.join().is_err()
        {
            tracing::error!("the thread that writes the database had panicked");
        }
    }
}

/// Runs one batch after another until asked to close, then the requests accepted until then.
fn work(
    connection: Connection,
    mut checkpoints: Checkpoints,
    mut requests: mpsc::Receiver<Box<dyn Job>>,
    closing: &AtomicBool,
) {
    while let Some(first) = requests.blocking_recv() {
        if closing.load(Ordering::SeqCst) {
            requests.close();
        }
        let mut batch = vec![first];
        while batch.len() < batch::BATCH_MAX
            && let Ok(next) = requests.try_recv()
        {
            batch.push(next);
        }
        batch::run(&connection, batch);
        checkpoints.after_commit(&connection);
    }
    // The last connection that closes the database deletes the log.
    drop(checkpoints);
    if let Err((_connection, error)) = connection.close() {
        tracing::warn!(error = %coded(&error), "the database was not closed properly; it is recovered at the next start");
    }
}
