//! The daemon's state, which the loop and the modules that carry out its commands share.

use std::sync::{Arc, Mutex};

use dump::Cancel;
use scheduler::{Event, Scheduler};
use store::{Reader, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::clock_watch::ClockWatch;
use super::orders::{Order, Ordered};
use super::running::Running;
use super::slot_desk::SlotDesk;
use super::snapshot::Live;
use crate::check::slot_queue::Signal;
use crate::config::Config;
use crate::publish::round::Done;
use crate::services::Services;

/// The trusted daemon.
#[derive(Debug)]
pub struct Daemon {
    pub(super) services: Services,
    pub(super) store: Store,
    pub(super) config: Config,
    pub(super) scheduler: Scheduler,
    pub(super) checks: Running,
    /// Due hosts are counted over this one.
    pub(super) reader: Arc<Mutex<Reader>>,
    /// What takes hosts and writes rows. The daemon waits for it at its end.
    pub(super) work: JoinSet<anyhow::Result<Event>>,
    /// What only asks. It ends with the daemon.
    pub(super) asks: JoinSet<anyhow::Result<Event>>,
    pub(super) publishing: Publishing,
    pub(super) desk: SlotDesk,
    pub(super) signals: mpsc::Receiver<Signal>,
    pub(super) orders: mpsc::Receiver<Order>,
    /// Checks that the operator ordered and whose host is being taken.
    pub(super) ordered: JoinSet<Ordered>,
    /// Who watches the ordered check that starts next.
    pub(super) watcher: Option<mpsc::Sender<String>>,
    pub(super) live: Arc<Live>,
    pub(super) clock: ClockWatch,
    pub(super) ticker: tokio::time::Interval,
}

/// Where an operator who asked for a publication waits for its outcome.
pub(super) type Answer = oneshot::Sender<Result<u64, String>>;

/// The publication in progress, and those who wait for one.
#[derive(Debug, Default)]
pub(super) struct Publishing {
    pub(super) running: JoinSet<Done>,
    /// Given when the daemon ends, which otherwise waits for the one in progress.
    pub(super) cancel: Cancel,
    /// Wait for the one in progress.
    pub(super) waiters: Vec<Answer>,
    /// Wait for the one after it.
    pub(super) queued: Vec<Answer>,
    /// What the last one failed of, so that the same is logged once.
    pub(super) trouble: Option<String>,
}

impl Publishing {
    /// The one that ends next; `None` if none is in progress.
    pub(super) async fn next(&mut self) -> Option<Done> {
        let joined = self.running.join_next().await?;
        Some(joined.unwrap_or_else(|_panicked| nothing_made(StoreError::Closed)))
    }
}

/// A publication that made nothing.
pub(super) fn nothing_made(error: StoreError) -> Done {
    Done {
        names: Err(error.into()),
        has_pages: false,
    }
}
