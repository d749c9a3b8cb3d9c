//! Counters, for Prometheus. No label has an address or a name.

use prometheus::core::Collector;
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

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
    pub(super) refused: IntCounter,
    /// Waiting messages that were removed because newer ones needed their room.
    displaced: IntCounter,
    /// Notifications about a list that were accepted.
    pub(super) notified: IntCounter,
    /// Subscriptions to a list that ended because their endpoint is gone.
    pub(super) ended: IntCounter,
    /// Notifications about a list that failed.
    pub(super) failed: IntCounter,
    /// Calls that the storage failed.
    pub(super) storage_failures: IntCounter,
}

impl Default for Meters {
    fn default() -> Self {
        let registry = Registry::new();
        let by_outcome = |name, help| {
            let counters = IntCounterVec::new(Opts::new(name, help), &["outcome"]);
            registered(&registry, counters)
        };
        let messages = by_outcome(
            "fedicensus_push_messages_total",
            "Messages for clients, by outcome.",
        );
        let notifications = by_outcome(
            "fedicensus_push_notifications_total",
            "Notifications about the list, by outcome.",
        );
        let connections =
            IntGauge::new("fedicensus_push_connections", "Clients that are connected.");
        let storage_failures = IntCounter::new(
            "fedicensus_push_storage_failures_total",
            "Requests that failed because the storage failed.",
        );
        Self {
            connections: registered(&registry, connections),
            direct: messages.with_label_values(&["direct"]),
            stored: messages.with_label_values(&["stored"]),
            dropped: messages.with_label_values(&["dropped"]),
            refused: messages.with_label_values(&["refused"]),
            displaced: messages.with_label_values(&["displaced"]),
            notified: notifications.with_label_values(&["accepted"]),
            ended: notifications.with_label_values(&["ended"]),
            failed: notifications.with_label_values(&["failed"]),
            storage_failures: registered(&registry, storage_failures),
            registry,
        }
    }
}

impl Meters {
    /// All metrics as text, including the number of connected clients, and of messages that the
    /// storage has displaced so far.
    pub(super) fn page(&self, connections: usize, displaced: u64) -> String {
        self.displaced
            .inc_by(displaced.saturating_sub(self.displaced.get()));
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
