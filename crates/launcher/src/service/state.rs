//! The state that the server, the supervisor and the launches share.

use std::sync::atomic::{AtomicU32, AtomicU64};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::container::slot::Slots;
use crate::engine::{Created, Engine, Identity, bounded};
use crate::run::{ending, fault};
use crate::service::registry::Registry;
use crate::settings::{STARTING_WAIT_MAX, Settings};
use crate::wire::{FaultKind, LaunchFault};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    Starting,
    Ready(Ready),
    Trouble(LaunchFault),
}

/// What a launch needs to know about the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) identity: Identity,
    /// Id of the probed image, from which checks start.
    pub(crate) image: String,
    /// Id of the image that had the configured name at that time. It differs from `image` if its
    /// probe failed.
    pub(crate) named: String,
    /// The runtime of checks. `None` for the engine's default.
    pub(crate) runtime: Option<&'static str>,
    /// Sweeps left until the next probe.
    pub(crate) sweeps: u32,
    pub(crate) warnings: Vec<String>,
}

impl Ready {
    /// The engine, and the runtime of checks if it is not the engine's default. For people.
    pub(crate) fn engine(&self) -> String {
        match self.runtime {
            Some(runtime) => format!("{} with {runtime}", self.identity),
            None => self.identity.to_string(),
        }
    }
}

/// State shared by the server, the supervisor and the launches.
#[derive(Debug)]
pub(crate) struct Shared<E> {
    pub(crate) settings: Settings,
    pub(crate) engine: E,
    pub(crate) registry: Registry,
    pub(crate) condition: watch::Sender<Condition>,
    /// Wakes the supervisor when a launch finds the engine out of order.
    pub(crate) nudge: Notify,
    pub(crate) ending: CancellationToken,
    pub(crate) reaped_total: AtomicU64,
    pub(crate) launches_total: AtomicU64,
    /// Launches in a row that ended with an engine error.
    pub(crate) refusals: AtomicU32,
    /// Checks in a row that reached their deadline although their container had ended.
    pub(crate) unended: AtomicU32,
    pub(crate) slots: Slots,
    pub(crate) connections: TaskTracker,
}

impl<E: Engine> Shared<E> {
    /// The state of a launcher that has not found its engine yet.
    pub(crate) fn new(settings: Settings, engine: E) -> Self {
        Self {
            engine,
            registry: Registry::default(),
            condition: watch::Sender::new(Condition::Starting),
            nudge: Notify::new(),
            ending: CancellationToken::new(),
            reaped_total: AtomicU64::new(0),
            launches_total: AtomicU64::new(0),
            refusals: AtomicU32::new(0),
            unended: AtomicU32::new(0),
            slots: Slots::new(settings.checks_max),
            connections: TaskTracker::new(),
            settings,
        }
    }

    /// The engine's state if it can run checks, otherwise the reason why it can't.
    pub(crate) async fn ready(&self) -> Result<Ready, LaunchFault> {
        if self.ending.is_cancelled() {
            return Err(ending());
        }
        self.settled().await;
        match &*self.condition.borrow() {
            Condition::Starting => Err(starting()),
            Condition::Ready(ready) => Ok(ready.clone()),
            Condition::Trouble(fault) => Err(lasting(fault)),
        }
    }

    /// Waits, for a bounded time, until it is known whether checks can start.
    pub(crate) async fn settled(&self) {
        let mut condition = self.condition.subscribe();
        let known = condition.wait_for(|condition| *condition != Condition::Starting);
        if tokio::time::timeout(STARTING_WAIT_MAX, known)
            .await
            .is_err()
        {
            tracing::debug!("the engine has not answered yet");
        }
    }

    /// Removes a container by force. If that fails, the next sweep tries again.
    pub(crate) async fn remove(&self, container: Option<Created>) {
        let Some(Created { id, .. }) = container else {
            return;
        };
        let removed = bounded(
            "remove",
            self.settings.start_timeout,
            self.engine.remove(&id),
        );
        if let Err(error) = removed.await {
            tracing::warn!(container = %id, error = %fault(&error).message, "a container could not be removed; the next sweep tries again");
        }
    }
}

/// The fault of a launch that was not tried. If an engine refuses every check, its refusal must not
/// look like a single check's bad luck, because the orchestrator retries those at once.
fn lasting(trouble: &LaunchFault) -> LaunchFault {
    let kind = match trouble.kind {
        FaultKind::EngineDown
        | FaultKind::EngineError
        | FaultKind::Full
        | FaultKind::BadRequest => FaultKind::EngineDown,
        FaultKind::ImageMissing => FaultKind::ImageMissing,
        FaultKind::NotConfined => FaultKind::NotConfined,
    };
    LaunchFault {
        kind,
        message: trouble.message.clone(),
    }
}

/// The fault of a launcher that has not found its engine yet.
pub(crate) fn starting() -> LaunchFault {
    LaunchFault {
        kind: FaultKind::EngineDown,
        message: "the engine has not been probed yet".to_owned(),
    }
}
