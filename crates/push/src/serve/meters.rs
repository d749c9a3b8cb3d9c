//! Counters, in Prometheus's text format. No label has an address or a name.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the service has done since its start.
#[derive(Debug, Default)]
pub(super) struct Meters {
    /// Messages that went straight to a client.
    pub(super) direct: Counter,
    /// Messages that were stored.
    pub(super) stored: Counter,
    /// Messages with a TTL of 0 to clients that were not connected.
    pub(super) dropped: Counter,
    /// Messages that were refused.
    pub(super) refused: Counter,
    /// Notifications about a list that were accepted.
    pub(super) notified: Counter,
    /// Subscriptions to a list that ended because their endpoint is gone.
    pub(super) ended: Counter,
    /// Notifications about a list that failed.
    pub(super) failed: Counter,
    /// Calls that the storage failed.
    pub(super) storage_failures: Counter,
}

impl Meters {
    /// All metrics as text, including the number of connected clients.
    pub(super) fn page(&self, connections: usize) -> String {
        let mut page = String::new();
        metric(
            &mut page,
            ("fedicensus_push_connections", "gauge"),
            "Clients that are connected.",
            &[("", u64::try_from(connections).unwrap_or(u64::MAX))],
        );
        metric(
            &mut page,
            ("fedicensus_push_messages_total", "counter"),
            "Messages for clients, by outcome.",
            &[
                ("outcome=\"direct\"", self.direct.value()),
                ("outcome=\"stored\"", self.stored.value()),
                ("outcome=\"dropped\"", self.dropped.value()),
                ("outcome=\"refused\"", self.refused.value()),
            ],
        );
        metric(
            &mut page,
            ("fedicensus_push_notifications_total", "counter"),
            "Notifications about the list, by outcome.",
            &[
                ("outcome=\"accepted\"", self.notified.value()),
                ("outcome=\"ended\"", self.ended.value()),
                ("outcome=\"failed\"", self.failed.value()),
            ],
        );
        metric(
            &mut page,
            ("fedicensus_push_storage_failures_total", "counter"),
            "Requests that failed because the storage failed.",
            &[("", self.storage_failures.value())],
        );
        page
    }
}

fn metric(page: &mut String, (name, kind): (&str, &str), help: &str, samples: &[(&str, u64)]) {
    // Writing to a string can't fail.
    writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}").unwrap_or(());
    for (labels, value) in samples {
        match *labels {
            "" => writeln!(page, "{name} {value}").unwrap_or(()),
            labels => writeln!(page, "{name}{{{labels}}} {value}").unwrap_or(()),
        }
    }
}
