//! The daemon's state, shared by the loop and the modules that carry out its commands.

use std::sync::{Arc, Mutex};

use ::publish::Cancel;
use scheduler::publication::Extent;
use scheduler::{Event, Scheduler};
use store::{Reader, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::carry_out::hour::Hour;
use super::clock_watch::ClockWatch;
use super::orders::{Order, Ordered};
use super::pressure::Looks;
use super::running::Running;
use super::slot_desk::SlotDesk;
use super::snapshot::Live;
use crate::check::services::Services;
use crate::check::slot_queue::Signal;
use crate::config::Config;
use crate::publish::Publisher;
use crate::publish::round::Done;

#[derive(Debug)]
pub struct Daemon {
    pub(super) services: Services,
    pub(super) store: Store,
    pub(super) config: Config,
    pub(super) publisher: Publisher,
    pub(super) scheduler: Scheduler,
    pub(super) checks: Running,
    pub(super) reader: Arc<Mutex<Reader>>,
    /// Tasks that take hosts and write rows. The daemon waits for them at its end.
    pub(super) work: JoinSet<anyhow::Result<Event>>,
    /// Tasks that only read. They end with the daemon.
    pub(super) asks: JoinSet<anyhow::Result<Event>>,
    pub(super) publishing: Publishing,
    pub(super) desk: SlotDesk,
    pub(super) signals: mpsc::Receiver<Signal>,
    pub(super) orders: mpsc::Receiver<Order>,
    /// Ordered checks whose host is being taken.
    pub(super) ordered: JoinSet<Ordered>,
    /// Receives the steps of the next ordered check.
    pub(super) watcher: Option<mpsc::Sender<String>>,
    pub(super) live: Arc<Live>,
    pub(super) clock: ClockWatch,
    pub(super) looks: Looks,
    pub(super) hour: Hour,
    pub(super) ticker: tokio::time::Interval,
}

/// Sends the outcome of a publication to the operator who requested it.
pub(super) type Answer = oneshot::Sender<Result<u64, String>>;

/// The publication in progress, and those waiting for one.
#[derive(Debug, Default)]
pub(super) struct Publishing {
    pub(super) running: JoinSet<Done>,
    /// Cancelled when the daemon ends, which otherwise waits for the one in progress.
    pub(super) cancel: Cancel,
    /// Waiting for the one in progress.
    pub(super) waiters: Vec<Answer>,
    /// Waiting for the one after it.
    pub(super) queued: Vec<Answer>,
    /// Why the last one failed, so that the same failure is logged once.
    pub(super) trouble: Option<String>,
    /// What the one in progress makes, or the last one made.
    pub(super) extent: Option<Extent>,
    /// The kind of trouble that its pages name.
    pub(super) shown: Option<String>,
    /// When pages were last made only to show another one.
    pub(super) shown_at: Option<Instant>,
}

impl Publishing {
    /// Waits for the one in progress; `None` if there is none.
    pub(super) async fn next(&mut self) -> Option<Done> {
        let joined = self.running.join_next().await?;
        Some(joined.unwrap_or_else(|_panicked| nothing_made(StoreError::Closed)))
    }
}

/// The outcome of a publication that published nothing.
pub(super) fn nothing_made(error: StoreError) -> Done {
    Done {
        names: Err(error.into()),
        has_pages: false,
        has_names: false,
    }
}
