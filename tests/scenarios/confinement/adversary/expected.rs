//! The expected result of each attempt, as data, and its comparison with the actual result.

use std::collections::BTreeMap;

use anyhow::Context;
use tests::{EngineApi, Table};

/// The table of expectations; its head explains its format.
const EXPECTED: &str = include_str!("../../../fixtures/adversary/expected.toml");

#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) happened: String,
    pub(super) detail: String,
}

pub(super) type Attempts = BTreeMap<String, Attempt>;

/// Parses an attacker's lines: `attempt`, the item, what happened, and a detail for readers,
/// separated by tabs.
pub(super) fn read(stdout: &str) -> Attempts {
    stdout
        .lines()
        .filter_map(|line| {
            let mut fields = line.split('\t');
            if fields.next() != Some("attempt") {
                return None;
            }
            let item = fields.next()?.to_owned();
            let happened = fields.next()?.to_owned();
            let detail = fields.next().unwrap_or_default().to_owned();
            Some((item, Attempt { happened, detail }))
        })
        .collect()
}

struct Row {
    item: String,
    outcomes: Vec<String>,
    /// The text for all engines, if they differ.
    shown: Option<String>,
    /// Why it is harmless if it works or the engines differ.
    why: Option<String>,
}

impl Row {
    fn expected(&self) -> String {
        let outcomes = match &self.shown {
            Some(shown) => shown.clone(),
            None => self.outcomes.join(" or "),
        };
        match &self.why {
            Some(why) => format!("{outcomes}: {why}"),
            None => outcomes,
        }
    }
}

fn texts(value: &toml::Value) -> anyhow::Result<Vec<String>> {
    match value {
        toml::Value::Array(values) => {
            let texts = values.iter().map(|value| {
                let text = value.as_str().context("a text")?;
                Ok(text.to_owned())
            });
            texts.collect()
        }
        other => Ok(vec![other.as_str().context("a text")?.to_owned()]),
    }
}

fn rows(engine: &EngineApi) -> anyhow::Result<Vec<Row>> {
    let table: toml::Table = EXPECTED.parse()?;
    let mut rows = Vec::new();
    for (section, items) in &table {
        for (item, value) in items.as_table().context("sections")? {
            let mut shown = None;
            let (outcomes, why) = match (section.as_str(), value) {
                ("differs", value) => {
                    let why = value["why"].as_str().context("a reason")?;
                    let of = |engine: &str| anyhow::Ok(texts(&value[engine])?.join(" or "));
                    let (docker, podman) = (of("docker")?, of("podman")?);
                    shown = Some(format!("{docker} on Docker, {podman} on Podman"));
                    (texts(&value[engine.word()])?, Some(why.to_owned()))
                }
                ("harmless", value) => {
                    let mut texts = texts(value)?;
                    let why = texts.pop();
                    (texts, why)
                }
                (_, value) => (texts(value)?, None),
            };
            assert!(!outcomes.is_empty(), "{item}: nothing is expected");
            rows.push(Row {
                item: item.clone(),
                outcomes,
                shown,
                why,
            });
        }
    }
    Ok(rows)
}

/// Writes the table of attempts and results. Returns the differences: attempts with another result,
/// unexpected attempts, and attempts that were never made.
pub(super) fn compare(engine: &EngineApi, attempts: &Attempts) -> anyhow::Result<Vec<String>> {
    let columns = ["tried", "expected", "happened", "in particular"];
    let heading = format!("Getting out of the container, {}", engine.title());
    let mut table = Table::new(&heading, &columns);
    let mut differences = Vec::new();
    let rows = rows(engine)?;
    for row in &rows {
        let expected = row.expected();
        let Some(attempt) = attempts.get(&row.item) else {
            table.row(&[&row.item, &expected, "**was not tried**", ""]);
            differences.push(format!("{}: was not tried", row.item));
            continue;
        };
        let as_expected = row.outcomes.contains(&attempt.happened);
        let happened = match as_expected {
            true => attempt.happened.clone(),
            false => format!("**{}**", attempt.happened),
        };
        table.row(&[&row.item, &expected, &happened, &attempt.detail]);
        if !as_expected {
            differences.push(format!(
                "{}: {} ({}), not {expected}",
                row.item, attempt.happened, attempt.detail
            ));
        }
    }
    for (item, attempt) in attempts {
        if !rows.iter().any(|row| row.item == *item) {
            table.row(&[item, "**nothing**", &attempt.happened, &attempt.detail]);
            differences.push(format!(
                "{item}: {} ({}), of which nothing is expected",
                attempt.happened, attempt.detail
            ));
        }
    }
    table.note(&format!(
        "{} attempts; {} that came out otherwise than expected.",
        attempts.len(),
        differences.len()
    ));
    table.write("adversary", "1-confinement")?;
    Ok(differences)
}
