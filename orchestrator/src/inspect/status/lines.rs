//! `status` as text: one line per subject, and a wrapped and coloured form for terminals.

use std::collections::BTreeMap;
use std::path::Path;

use census::time::{Timestamp, rfc3339};
use protocol::egress::Family;

use super::{PartStatus, SourceShown, Status};
use crate::admit::gate::TEST_DOMAIN_WARNING;
use crate::daemon::{LiveState, Pace, troubles};
use crate::inspect::state_word;

/// Columns before the text of a line; shorter labels are padded.
const INDENT: usize = 11;

/// Most columns of a line on a terminal. A single longer word, such as a path, is not broken.
const COLUMNS_MAX: usize = 100;

const RESET: &str = "\x1b[0m";

/// A subject and what `status` says about it.
struct Line {
    label: String,
    text: String,
    tone: Tone,
}

/// How much attention a line needs.
#[derive(Clone, Copy)]
enum Tone {
    Plain,
    Warning,
    /// Checks or the list have stopped, or a part is missing.
    Alarm,
}

impl Status {
    /// The status as plain text, one line per subject.
    pub fn text(&self, data_dir: &Path) -> String {
        let lines: Vec<_> = self.lines(data_dir).iter().map(Line::plain).collect();
        lines.join("\n")
    }

    /// The status for a terminal: wrapped at 100 columns, with coloured labels if `has_colour`.
    pub fn terminal(&self, data_dir: &Path, has_colour: bool) -> String {
        let lines = self.lines(data_dir);
        let lines: Vec<_> = lines.iter().map(|line| line.wrapped(has_colour)).collect();
        lines.join("\n")
    }

    fn lines(&self, data_dir: &Path) -> Vec<Line> {
        let program = format!("{}, database in {}", self.version, data_dir.display());
        let hosts = self.hosts.iter();
        let words = hosts.map(|(state, hosts)| (state_word(state).to_owned(), *hosts));
        let states = counted(&words.collect());
        let colon = if states.is_empty() { "" } else { ": " };
        let hosts = format!(
            "{}{colon}{states}; {} hidden",
            self.hosts_total, self.hidden
        );
        let checks = format!("{} due, {} in flight", self.due, self.in_flight);
        let groups = format!(
            "{} held with {} hosts held back, {} denied",
            self.groups_held, self.hosts_held_back, self.groups_denied
        );
        let mut lines = vec![
            plain("fedicensus", program),
            plain("hosts", hosts),
            plain("checks", checks),
        ];
        lines.extend(self.progress.clone().map(|text| plain("progress", text)));
        lines.push(plain("groups", groups));
        for (label, outcomes) in [("peers", &self.peers_lists), ("walks", &self.walks)] {
            if !outcomes.is_empty() {
                lines.push(plain(label, counted(outcomes)));
            }
        }
        lines.extend(self.sources.iter().map(source_line));
        match &self.daemon {
            None => lines.push(alarm("daemon", "not running".to_owned())),
            Some(daemon) => lines.extend(daemon_lines(daemon)),
        }
        let dump = match &self.last_dump {
            None => "never".to_owned(),
            Some((at, names)) => format!("{at}, {names} names"),
        };
        lines.push(plain("last dump", dump));
        let gateways = [
            ("gateway", &self.gateway),
            ("gateway 2", &self.second_gateway),
        ];
        lines.extend(gateways.into_iter().filter_map(|(label, gateway)| {
            gateway.as_ref().map(|gateway| gateway_line(label, gateway))
        }));
        lines.extend(self.launcher.as_ref().map(launcher_line));
        lines
    }
}

impl Line {
    fn plain(&self) -> String {
        format!("{:<width$} {}", self.label, self.text, width = INDENT - 1)
    }

    fn wrapped(&self, has_colour: bool) -> String {
        let plain = self.plain();
        let head = plain.len() - self.text.len();
        let (label, text) = plain.split_at(head);
        let mut wrapped = match (self.tone, has_colour) {
            (_, false) => label.to_owned(),
            (Tone::Plain, true) => format!("\x1b[1m{label}{RESET}"),
            (Tone::Warning, true) => format!("\x1b[1;33m{label}{RESET}"),
            (Tone::Alarm, true) => format!("\x1b[1;31m{label}{RESET}"),
        };
        let mut column = label.chars().count();
        let mut is_first = true;
        for word in text.split_whitespace() {
            let width = word.chars().count();
            if !is_first && column + 1 + width > COLUMNS_MAX {
                wrapped.push('\n');
                wrapped.extend(std::iter::repeat_n(' ', INDENT));
                column = INDENT;
            } else if !is_first {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += width;
            is_first = false;
        }
        wrapped
    }
}

fn plain(label: &str, text: String) -> Line {
    toned(label, text, Tone::Plain)
}

fn alarm(label: &str, text: String) -> Line {
    toned(label, text, Tone::Alarm)
}

fn toned(label: &str, text: String, tone: Tone) -> Line {
    let label = label.to_owned();
    Line { label, text, tone }
}

/// `3 complete, 1 refused`, without zeros.
fn counted<Count: Copy + Into<u64>>(counts: &BTreeMap<String, Count>) -> String {
    let counts: Vec<_> = counts
        .iter()
        .map(|(what, count)| (what, (*count).into()))
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    counts.join(", ")
}

fn source_line(source: &SourceShown) -> Line {
    let tone = if source.paused.is_some() || source.trouble.is_some() {
        Tone::Warning
    } else {
        Tone::Plain
    };
    let text = format!("{}: {}", source.name, source.text());
    toned("source", text, tone)
}

fn daemon_lines(daemon: &LiveState) -> Vec<Line> {
    let ended = counted(&daemon.ended);
    let state = format!(
        "since {}, {:.2} checks/s, {} wait for confirmation{}{ended}",
        rfc3339(Timestamp(daemon.started_ms)),
        daemon.checks_per_second,
        daemon.waiting,
        if ended.is_empty() { "" } else { "; ended: " },
    );
    let mut lines = vec![
        plain("daemon", state),
        plain("pace", pace_words(&daemon.pace)),
    ];
    if let Some(admission) = &daemon.admission {
        lines.push(plain("admission", admission.text()));
        if admission.takes_test_domain {
            lines.push(toned(
                "WARNING",
                TEST_DOMAIN_WARNING.to_owned(),
                Tone::Warning,
            ));
        }
    }
    let troubles = troubles(daemon).into_iter();
    lines.extend(troubles.map(|trouble| alarm(&trouble.label, trouble.text)));
    // The census works: an operator decides about the list.
    let held_back = daemon.dump_trouble.clone().filter(|_| daemon.is_held_back);
    lines.extend(held_back.map(|trouble| alarm("DUMP", trouble)));
    lines
}

fn pace_words(pace: &Pace) -> String {
    let in_progress = counted(&pace.under_way);
    let in_progress = if in_progress.is_empty() {
        "none"
    } else {
        &in_progress
    };
    format!(
        "{} of {} containers at once ({} to {}), limited by {}; {:.0} starts/s at most; in progress: {in_progress}",
        pace.checks_running,
        pace.checks_allowed,
        pace.checks_min,
        pace.checks_max,
        pace.limited_by,
        pace.starts_per_second,
    )
}

fn gateway_line(label: &str, gateway: &PartStatus<gateway::control::Status>) -> Line {
    match gateway {
        PartStatus::Open(gateway) => {
            let (families, tone) = families_words(&gateway.families);
            let lab = if gateway.lab { ", LAB MODE" } else { "" };
            let (open, dials) = (gateway.open, gateway.dials_total);
            let text = format!("{families}, {open} open, {dials} dials{lab}");
            toned(label, text, tone)
        }
        PartStatus::Closed(why) => alarm(label, format!("UNREACHABLE: {why}")),
    }
}

/// Which address families work, and what follows if one is missing.
fn families_words(families: &[Family]) -> (&'static str, Tone) {
    match (
        families.contains(&Family::V4),
        families.contains(&Family::V6),
    ) {
        (true, true) => ("IPv6 and IPv4", Tone::Plain),
        (true, false) => (
            "IPv4 only; hosts with IPv6 addresses only are deferred, and no failure counts",
            Tone::Plain,
        ),
        (false, true) => (
            "IPv6 only; NO IPv4: hosts with IPv4 addresses only are deferred, and no failure counts",
            Tone::Alarm,
        ),
        (false, false) => ("NO NETWORK", Tone::Alarm),
    }
}

fn launcher_line(launcher: &PartStatus<launcher::wire::Status>) -> Line {
    let launcher = match launcher {
        PartStatus::Open(launcher) => launcher,
        PartStatus::Closed(why) => return alarm("engine", format!("LAUNCHER UNREACHABLE: {why}")),
    };
    let engine = launcher.engine.as_deref().unwrap_or("not reached yet");
    let mut text = format!(
        "{engine}, {} running, {} launched, {} reaped",
        launcher.running, launcher.launches_total, launcher.reaped_total
    );
    let trouble = launcher.trouble.as_ref();
    let trouble = trouble.map(|trouble| format!("; TROUBLE: {trouble}"));
    let tone = match (&trouble, launcher.warnings.is_empty()) {
        (Some(_), _) => Tone::Alarm,
        (None, false) => Tone::Warning,
        (None, true) => Tone::Plain,
    };
    text.extend(trouble);
    text.extend(
        launcher
            .warnings
            .iter()
            .map(|warning| format!("; warning: {warning}")),
    );
    toned("engine", text, tone)
}
