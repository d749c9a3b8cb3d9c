//! How checks and readings, which run in tasks, request a container slot from the loop.

use scheduler::event::{CheckNumber, SlotDemand};
use tokio::sync::{mpsc, oneshot};

/// Signals that wait for the loop; a task waits while the queue is full.
const SIGNALS_MAX: usize = 64;

/// What a task reports to the loop while it runs.
#[derive(Debug)]
pub enum Signal {
    /// The gateway has answered for a check.
    Opened {
        check: CheckNumber,
        /// Whether the check needs a slot.
        demand: SlotDemand,
        /// Sent when the check gets a slot, dropped if it gets none.
        grant: oneshot::Sender<()>,
    },
    /// A check's container gave its first output.
    FirstOutput { check: CheckNumber },
    SlotWanted {
        /// Sent with the slot, dropped if the reading gets none.
        grant: oneshot::Sender<Lease>,
    },
}

/// A reading's slot, until it is dropped.
#[derive(Debug)]
pub struct Lease(
    #[expect(dead_code, reason = "held: its drop is what the other end waits for")]
    oneshot::Sender<()>,
);

impl Lease {
    /// A lease, and a receiver that ends when the lease is dropped.
    pub fn new() -> (Self, oneshot::Receiver<()>) {
        let (held, dropped) = oneshot::channel();
        (Self(held), dropped)
    }
}

/// The tasks' end of the queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SlotQueue(mpsc::Sender<Signal>);

impl SlotQueue {
    /// Both ends; the loop keeps the second.
    pub fn new() -> (Self, mpsc::Receiver<Signal>) {
        let (sender, receiver) = mpsc::channel(SIGNALS_MAX);
        (Self(sender), receiver)
    }

    /// For a process without a loop, which runs one check: each request gets a slot. The task ends
    /// when all clones are dropped.
    pub fn unlimited() -> Self {
        let (queue, mut signals) = Self::new();
        tokio::spawn(async move {
            while let Some(signal) = signals.recv().await {
                match signal {
                    Signal::Opened { grant, .. } => drop(grant.send(())),
                    Signal::FirstOutput { .. } => {}
                    Signal::SlotWanted { grant } => drop(grant.send(Lease::new().0)),
                }
            }
        });
        queue
    }

    /// A check's host could not be opened, and will need no slot.
    pub async fn needs_none(&self, check: CheckNumber) {
        drop(self.opened(check, SlotDemand::None).await);
    }

    /// Waits for a check's slot, which the check keeps until it ends.
    ///
    /// - `true` if it has one
    /// - `false` if none became free in time, or too many wait
    pub async fn wait(&self, check: CheckNumber) -> bool {
        self.opened(check, SlotDemand::One).await.await.is_ok()
    }

    async fn opened(&self, check: CheckNumber, demand: SlotDemand) -> oneshot::Receiver<()> {
        let (grant, granted) = oneshot::channel();
        self.send(Signal::Opened {
            check,
            demand,
            grant,
        })
        .await;
        granted
    }

    /// A check's container gave its first output.
    pub async fn first_output(&self, check: CheckNumber) {
        self.send(Signal::FirstOutput { check }).await;
    }

    /// Waits for a reading's slot; `None` if none became free in time.
    pub async fn lease(&self) -> Option<Lease> {
        let (grant, granted) = oneshot::channel();
        self.send(Signal::SlotWanted { grant }).await;
        granted.await.ok()
    }

    async fn send(&self, signal: Signal) {
        // The loop is gone only when the process ends, and the waiting tasks end with it.
        self.0.send(signal).await.ok();
    }
}
