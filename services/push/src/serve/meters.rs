//! Counters, for Prometheus. No label has an address or a name.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};
use tokio::time::Instant;

use crate::storage::{Condition, StorageError};

/// Interval of log lines about one kind of failure.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Most kinds of failures in [`LOG_EVERY`].
const KINDS_MAX: usize = 16;

/// What the service has done since its start.
#[derive(Debug)]
pub(super) struct Meters {
    registry: Registry,
    connections: IntGauge,
    /// Messages that went straight to a client.
    pub(super) direct: IntCounter,
    pub(super) stored: IntCounter,
    /// Messages with a TTL of 0 to clients that were not connected.
    pub(super) dropped: IntCounter,
    pub(super) refused_messages: IntCounter,
    /// Waiting messages that were removed because newer ones needed their room.
    displaced: IntCounter,
    /// Notifications about a list that were accepted.
    pub(super) notified: IntCounter,
    /// Subscriptions to a list that ended because their endpoint is gone.
    pub(super) ended: IntCounter,
    /// Notifications about a list that failed.
    pub(super) failed: IntCounter,
    closes: IntCounterVec,
    refusals: IntCounterVec,
    again: IntCounter,
    waiting: IntGauge,
    database_bytes: IntGauge,
    storage_failures: IntCounter,
    /// When each kind of failure was logged last.
    logged: Mutex<HashMap<String, Instant>>,
}

impl Default for Meters {
    fn default() -> Self {
        let registry = Registry::new();
        let gauge = |name, help| registered(&registry, IntGauge::new(name, help));
        let counter = |name, help| registered(&registry, IntCounter::new(name, help));
        let labelled = |name, help, label: &str| {
            let counters = IntCounterVec::new(Opts::new(name, help), &[label]);
            registered(&registry, counters)
        };
        let messages = labelled(
            "fedicensus_push_messages_total",
            "Messages for clients, by outcome.",
            "outcome",
        );
        let notifications = labelled(
            "fedicensus_push_notifications_total",
            "Notifications about the list, by outcome.",
            "outcome",
        );
        Self {
            waiting: gauge(
                "fedicensus_push_waiting_messages",
                "Messages that wait for clients.",
            ),
            database_bytes: gauge("fedicensus_push_database_bytes", "Size of the database."),
            closes: labelled(
                "fedicensus_push_closes_total",
                "Connections of clients that ended, by the code of our close frame (1000: the client was reset), or `client`, or `broken`.",
                "code",
            ),
            refusals: labelled(
                "fedicensus_push_refusals_total",
                "Requests of applications that were refused, by autopush's number.",
                "errno",
            ),
            again: messages.with_label_values(&["again"]),
            logged: Mutex::default(),
            connections: gauge("fedicensus_push_connections", "Clients that are connected."),
            direct: messages.with_label_values(&["direct"]),
            stored: messages.with_label_values(&["stored"]),
            dropped: messages.with_label_values(&["dropped"]),
            refused_messages: messages.with_label_values(&["refused"]),
            displaced: messages.with_label_values(&["displaced"]),
            notified: notifications.with_label_values(&["accepted"]),
            ended: notifications.with_label_values(&["ended"]),
            failed: notifications.with_label_values(&["failed"]),
            storage_failures: counter(
                "fedicensus_push_storage_failures_total",
                "Calls of clients, applications and the service that the storage failed.",
            ),
            registry,
        }
    }
}

impl Meters {
    pub(super) fn closed(&self, code: &str) {
        self.closes.with_label_values(&[code]).inc();
    }

    #[cfg(test)]
    pub(super) fn closes(&self, code: &str) -> u64 {
        self.closes.with_label_values(&[code]).get()
    }

    pub(super) fn refused(&self, errno: Option<u16>) {
        let errno = errno.map_or_else(|| "none".to_owned(), |errno| errno.to_string());
        self.refusals.with_label_values(&[errno.as_str()]).inc();
    }

    /// Messages that were not acknowledged before the connection ended.
    pub(super) fn again(&self, messages: usize) {
        self.again
            .inc_by(u64::try_from(messages).unwrap_or(u64::MAX));
    }

    /// Counts a failure, and logs it once a minute.
    pub(super) fn storage_failed(&self, error: &StorageError) {
        self.storage_failures.inc();
        let kind = error.to_string();
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|_, when| when.elapsed() < LOG_EVERY);
        if !logged.contains_key(&kind) && logged.len() < KINDS_MAX {
            tracing::error!(%error, "the storage fails; see fedicensus_push_storage_failures_total");
            logged.insert(kind, Instant::now());
        }
    }

    /// All metrics as text, including the number of connected clients and the storage's condition.
    pub(super) fn page(&self, connections: usize, condition: Option<Condition>) -> String {
        if let Some(condition) = condition {
            let displaced = condition.displaced.saturating_sub(self.displaced.get());
            self.displaced.inc_by(displaced);
            self.waiting.set(condition.messages);
            self.database_bytes.set(condition.bytes);
        }
        let connections = i64::try_from(connections).unwrap_or(i64::MAX);
        self.connections.set(connections);
        made(TextEncoder::new().encode_to_string(&self.registry.gather()))
    }
}

fn registered<T: Collector + Clone + 'static>(
    registry: &Registry,
    meter: prometheus::Result<T>,
) -> T {
    let meter = made(meter);
    made(registry.register(Box::new(meter.clone())));
    meter
}

#[expect(
    clippy::expect_used,
    reason = "all names and labels are written in this file: each service makes all of them"
)]
fn made<T>(result: prometheus::Result<T>) -> T {
    result.expect("invariant: names and labels are well-formed")
}
