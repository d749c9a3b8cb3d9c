//! Compares a census's findings with the expected ones.
//!
//! It takes the table, the findings, the published list, and the lab's log of requests. It returns
//! a line for each persona, and whether everything matches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::expectation::{ExpectedVerdict, Registrations};
use crate::personas::Persona;
use crate::state_dir::Table;

/// Most differences that are written out.
const DIFFERENCES_MAX: usize = 500;

/// A census's findings about a host: an element of the array in `found.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub host: String,
    pub state: String,
    /// The last verdict's name in snake case. `None` if there was none.
    #[serde(default)]
    pub verdict: Option<String>,
    /// The reason, if the verdict is `dead`.
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub software: Option<String>,
    #[serde(default)]
    pub open_registrations: Option<bool>,
    /// Whether it asks to be left out of statistics.
    #[serde(default)]
    pub hidden: Option<bool>,
}

/// Requested paths of each host, from the log.
pub type Asked = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug, Clone)]
pub struct Report {
    pub text: String,
    /// Personas and members of the crowd that match the expectation.
    pub well: usize,
    pub differences: Vec<String>,
}

/// Compares the findings. Without a log, requests are not compared.
pub fn compare(table: &Table, found: &[Found], nodes: &[String], asked: Option<&Asked>) -> Report {
    let rows: BTreeMap<&str, &Found> = found.iter().map(|row| (row.host.as_str(), row)).collect();
    let listed: BTreeSet<&str> = nodes.iter().map(String::as_str).collect();
    let mut report = Report {
        text: String::new(),
        well: 0,
        differences: Vec::new(),
    };
    let width = 34;
    report.line(&format!(
        "{:width$} {:44} {:44} ok",
        "persona", "expected", "found"
    ));
    for persona in &table.personas {
        let row = rows.get(persona.host.as_str()).copied();
        let is_listed = listed.contains(persona.host.as_str());
        let mut wrong = judge(persona, row, is_listed);
        if let Some(asked) = asked {
            wrong.extend(judge_requests(persona, asked.get(persona.host.as_str())));
        }
        let (expected, seen) = (expected(persona), seen(row, is_listed));
        let ok = if wrong.is_empty() { "ok" } else { "DIFFERS" };
        report.line(&format!(
            "{:width$} {expected:44} {seen:44} {ok}",
            persona.host.as_str()
        ));
        report.well += usize::from(wrong.is_empty());
        report
            .differences
            .extend(wrong.iter().map(|what| format!("{}: {what}", persona.host)));
    }
    crowd(&mut report, table, &rows, &listed);
    farm(&mut report, table, &rows);
    strangers(&mut report, table, nodes);
    report.close();
    report
}

impl Report {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn close(&mut self) {
        let (well, wrong) = (self.well, self.differences.len());
        let mut text = String::new();
        for difference in self.differences.iter().take(DIFFERENCES_MAX) {
            // Writing to a String can't fail.
            writeln!(text, "differs: {difference}").ok();
        }
        writeln!(text, "{well} as expected, {wrong} differences").ok();
        self.text.push_str(&text);
    }
}

fn expected(persona: &Persona) -> String {
    let wanted = &persona.expectation;
    let verdict = match &wanted.verdict {
        ExpectedVerdict::Dead { reasons } => {
            format!("dead {}", reasons.first().map(reason).unwrap_or_default())
        }
        other => other.name().unwrap_or("never checked").to_owned(),
    };
    let listed = if wanted.listed { ", listed" } else { "" };
    let story = if wanted.changes { ", changes" } else { "" };
    format!("{}: {verdict}{listed}{story}", wanted.state)
}

fn seen(row: Option<&Found>, is_listed: bool) -> String {
    let listed = if is_listed { ", listed" } else { "" };
    match row {
        None => format!("unknown{listed}"),
        Some(row) => {
            let verdict = row.verdict.as_deref().unwrap_or("never checked");
            let reason = row.reason.as_deref().unwrap_or_default();
            format!(
                "{}: {}{listed}",
                row.state,
                format!("{verdict} {reason}").trim()
            )
        }
    }
}

fn reason(reason: &protocol::DeadReason) -> String {
    match serde_json::to_value(reason) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

fn judge(persona: &Persona, row: Option<&Found>, is_listed: bool) -> Vec<String> {
    let wanted = &persona.expectation;
    let mut wrong = Vec::new();
    let state = row.map_or("unknown", |row| row.state.as_str());
    if state != wanted.state && !wanted.later.iter().any(|later| later == state) {
        wrong.push(format!("its state is {state}"));
    }
    if wanted.changes {
        return wrong;
    }
    if is_listed != wanted.listed {
        let is = if is_listed { "is" } else { "is not" };
        wrong.push(format!("it {is} in nodes.json"));
    }
    let Some(row) = row else {
        return wrong;
    };
    if row.verdict.as_deref() != wanted.verdict.name() {
        wrong.push(format!(
            "its verdict is {}",
            row.verdict.as_deref().unwrap_or("none")
        ));
    } else if let ExpectedVerdict::Dead { reasons } = &wanted.verdict {
        let found = row.reason.as_deref().unwrap_or("none");
        if !reasons.iter().any(|wanted| reason(wanted) == found) {
            wrong.push(format!("it is dead by {found}"));
        }
    }
    if let (Some(found), Some(wanted)) = (&row.software, &wanted.software)
        && found != wanted
    {
        wrong.push(format!(
            "its software is {}",
            protocol::escaped(found.as_bytes(), 100)
        ));
    }
    let found = Registrations::from(row.open_registrations);
    if wanted.registrations.is_some_and(|wanted| wanted != found) {
        wrong.push(format!("its registrations are {}", found.as_str()));
    }
    if let (Some(found), ExpectedVerdict::Alive) = (row.hidden, &wanted.verdict)
        && found != wanted.hidden
    {
        wrong.push(format!(
            "it is {} hidden",
            if found { "found" } else { "not" }
        ));
    }
    wrong
}

fn judge_requests(persona: &Persona, asked: Option<&BTreeSet<String>>) -> Vec<String> {
    let wanted = &persona.expectation;
    let Some(asked) = asked else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    if wanted.never_contacted {
        wrong.push("it was contacted".to_owned());
    }
    for path in asked {
        let outside = wanted
            .asked_only
            .as_ref()
            .is_some_and(|only| !only.contains(path));
        if outside || wanted.never_asked.contains(path) {
            wrong.push(format!("it was asked for {path}"));
        }
    }
    wrong
}

fn crowd(
    report: &mut Report,
    table: &Table,
    rows: &BTreeMap<&str, &Found>,
    listed: &BTreeSet<&str>,
) {
    if table.crowd.is_empty() {
        return;
    }
    let mut well = 0;
    for name in &table.crowd {
        let alive = rows
            .get(name.as_str())
            .is_some_and(|row| row.state == "alive");
        if alive && listed.contains(name.as_str()) {
            well += 1;
        } else {
            let seen = seen(
                rows.get(name.as_str()).copied(),
                listed.contains(name.as_str()),
            );
            report
                .differences
                .push(format!("{name} of the crowd: {seen}"));
        }
    }
    report.well += well;
    report.line(&format!(
        "crowd: {well} of {} alive and listed",
        table.crowd.len()
    ));
}

/// Names of a farm that the census doesn't know: it may not have read who names them. A listed one
/// is a stranger.
fn farm(report: &mut Report, table: &Table, rows: &BTreeMap<&str, &Found>) {
    let is_known = |row: &&&Found| row.state != "unknown";
    for name in &table.farm {
        match rows.get(name.as_str()).filter(is_known) {
            Some(_) => report.well += 1,
            None => report
                .differences
                .push(format!("{name} of the farm is not known")),
        }
    }
}

/// Names in the list that do not belong to the lab, or to its farm.
fn strangers(report: &mut Report, table: &Table, nodes: &[String]) {
    let ours: BTreeSet<&str> = table
        .personas
        .iter()
        .map(|persona| persona.host.as_str())
        .chain(table.crowd.iter().map(String::as_str))
        .chain(table.added.iter().map(String::as_str))
        .collect();
    for name in nodes.iter().filter(|name| !ours.contains(name.as_str())) {
        let name = protocol::escaped(name.as_bytes(), 253);
        report
            .differences
            .push(format!("{name} is in nodes.json and is nobody's"));
    }
    for (one, next) in nodes.iter().zip(nodes.iter().skip(1)) {
        if one >= next {
            let one = protocol::escaped(one.as_bytes(), 253);
            report
                .differences
                .push(format!("nodes.json is not sorted, or doubled, after {one}"));
        }
    }
}

#[cfg(test)]
mod tests;
