//! What `status` shows: the census, the daemon, its doors.

use std::collections::BTreeMap;
use std::path::Path;

use census::time::Timestamp;
use serde::{Deserialize, Serialize};
use store::{Reader, StoreError};

use crate::daemon::LiveState;
use crate::explain::rfc3339;

/// The whole answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// Version of this program.
    pub version: String,
    /// Hosts by state, all states.
    pub hosts: BTreeMap<String, u64>,
    /// All hosts.
    pub hosts_total: u64,
    /// Of them, those that ask to be left out.
    pub hidden: u64,
    /// Hosts that are due now.
    pub due: u64,
    /// Hosts marked in flight.
    pub in_flight: u64,
    /// The last dump: when (RFC 3339) and how many names.
    pub last_dump: Option<(String, u64)>,
    /// The daemon, when it runs.
    pub daemon: Option<LiveState>,
    /// The gateway: its state, or why not.
    pub gateway: Option<Door<gateway::control::Status>>,
    /// The launcher: its state, or why not.
    pub launcher: Option<Door<launcher::wire::Status>>,
}

/// What came of asking at a door.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door<T> {
    /// It answered.
    Open(T),
    /// It did not, and why.
    Closed(String),
}

/// Reads the database's part. Blocks.
///
/// # Errors
/// When the database can't be read.
pub fn read(reader: &Reader, now: Timestamp) -> Result<Status, StoreError> {
    let counts = reader.counts()?;
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hosts: counts
            .by_state
            .iter()
            .map(|(state, count)| (state.as_str().to_owned(), *count))
            .collect(),
        hosts_total: counts.hosts,
        hidden: counts.hidden,
        due: reader.due(now)?,
        in_flight: counts.in_flight,
        last_dump: reader
            .last_dump()?
            .map(|dump| (rfc3339(dump.at), dump.names)),
        daemon: None,
        gateway: None,
        launcher: None,
    })
}

impl Status {
    /// As lines for people.
    pub fn text(&self, data_dir: &Path) -> String {
        let mut lines = vec![format!(
            "fedicensus {}, database in {}",
            self.version,
            data_dir.display()
        )];
        let states: Vec<_> = self
            .hosts
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        let states = if states.is_empty() {
            String::new()
        } else {
            format!(": {}", states.join(", "))
        };
        lines.push(format!(
            "hosts      {}{states}; {} hidden",
            self.hosts_total, self.hidden
        ));
        lines.push(format!(
            "checks     {} due, {} in flight",
            self.due, self.in_flight
        ));
        match &self.daemon {
            None => lines.push("daemon     not running".to_owned()),
            Some(daemon) => lines.extend(daemon_lines(daemon)),
        }
        lines.push(match &self.last_dump {
            None => "last dump  never".to_owned(),
            Some((at, names)) => format!("last dump  {at}, {names} names"),
        });
        if let Some(gateway) = &self.gateway {
            lines.push(match gateway {
                Door::Open(gateway) => {
                    let families = if gateway.families.is_empty() {
                        "NO NETWORK".to_owned()
                    } else {
                        format!("{:?}", gateway.families)
                    };
                    format!(
                        "gateway    {families}, {} open, {} dials{}",
                        gateway.open,
                        gateway.dials_total,
                        if gateway.lab { ", LAB MODE" } else { "" }
                    )
                }
                Door::Closed(why) => format!("gateway    NOT THERE: {why}"),
            });
        }
        if let Some(launcher) = &self.launcher {
            lines.push(match launcher {
                Door::Open(launcher) => launcher_line(launcher),
                Door::Closed(why) => format!("engine     LAUNCHER NOT THERE: {why}"),
            });
        }
        lines.join("\n")
    }
}

fn daemon_lines(daemon: &LiveState) -> Vec<String> {
    let ended: Vec<_> = daemon
        .ended
        .iter()
        .map(|(verdict, count)| format!("{count} {verdict}"))
        .collect();
    let mut lines = vec![format!(
        "daemon     since {}, {:.2} checks/s, {} wait for confirmation{}{}",
        rfc3339(Timestamp(daemon.started_ms)),
        daemon.checks_per_second,
        daemon.waiting,
        if ended.is_empty() { "" } else { "; ended: " },
        ended.join(", ")
    )];
    if let Some((what, since)) = &daemon.outage {
        lines.push(format!(
            "OUTAGE     since {}: {what}",
            rfc3339(Timestamp(*since))
        ));
    }
    if let Some(trouble) = &daemon.dump_trouble {
        lines.push(format!("DUMP       not published: {trouble}"));
    }
    lines
}

fn launcher_line(launcher: &launcher::wire::Status) -> String {
    let engine = launcher.engine.as_deref().unwrap_or("not reached yet");
    let trouble = launcher
        .trouble
        .as_ref()
        .map(|trouble| format!("; TROUBLE: {trouble}"))
        .unwrap_or_default();
    let warnings: String = launcher
        .warnings
        .iter()
        .map(|warning| format!("; warning: {warning}"))
        .collect();
    format!(
        "engine     {engine}, {} running, {} launched, {} reaped{trouble}{warnings}",
        launcher.running, launcher.launches_total, launcher.reaped_total
    )
}
