//! `cargo xtask confinement [--update]`: compares what a taken-over checker tried on each engine
//! with the committed results, and writes the document that shows them.
//!
//! The adversaries' scenarios write `confinement/ENGINE/PART.tsv` among the tables. A difference
//! from the committed files fails; with `--update`, the new results replace them, and
//! `tests/fixtures/adversary/outcomes.md` is written again below its mark. Unexpected outcomes are
//! rejected.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::step::{Outcome, say, target_folder};

/// The committed results of each engine.
const COMMITTED: &str = "tests/fixtures/adversary/found";

const DOCUMENT: &str = "tests/fixtures/adversary/outcomes.md";

/// This chore writes everything below the mark in the document.
const MARK: &str = "<!-- Below: `cargo xtask confinement --update`. -->\n";

/// The results of a run on this machine's engine, below the build's folder.
const HERE: &str = "tables/confinement";

/// The results of a run on the virtual machine's engine, below the build's folder.
const IN_MACHINE: &str = "rootless/results/tables/confinement";

/// The engines in the order of their columns: folder names, and names for readers.
const ENGINES: [(&str, &str); 2] = [("docker", "Docker"), ("podman", "Rootless Podman")];

/// What to do with new results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Compare them with the committed ones.
    Compare {
        /// Whether to include the virtual machine's results.
        machine: bool,
    },
    /// Replace the committed ones.
    Update,
}

/// One table on one engine: a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    /// Engine and kernel, with their versions.
    title: String,
    heading: String,
    /// Item, expectation, outcome.
    rows: Vec<[String; 3]>,
}

/// All tables of an engine, by the name of their part.
type Parts = BTreeMap<String, Found>;

/// Compares or replaces the results of the last runs.
///
/// # Errors
/// There are no results, or they differ from the committed ones or from the expectations.
pub(crate) fn run(root: &Path, purpose: Use) -> anyhow::Result<Outcome> {
    let mut places = vec![target_folder(root).join(HERE)];
    if purpose != (Use::Compare { machine: false }) {
        places.push(target_folder(root).join(IN_MACHINE));
    }
    let mut missing = Vec::new();
    let mut engines_missing = 0;
    for (engine, name) in ENGINES {
        let folders = places.iter().map(|place| place.join(engine));
        let Some(folder) = folders.into_iter().find(|folder| folder.exists()) else {
            missing.push(name.to_owned());
            engines_missing += 1;
            continue;
        };
        let found = read(&folder)?;
        let committed = read(&root.join(COMMITTED).join(engine))?;
        let not_run = committed
            .iter()
            .filter(|(part, _)| !found.contains_key(*part));
        missing.extend(not_run.map(|(_, part)| format!("{name} of “{}”", part.heading)));
        for (part, found) in &found {
            as_expected(found)?;
            let path = root.join(COMMITTED).join(engine).join(part);
            match purpose {
                Use::Update => take_over(&folder.join(part), &path)?,
                Use::Compare { .. } => {
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    let differences = differences(&parse(&text).unwrap_or(Found::empty()), found);
                    if !differences.is_empty() {
                        bail!(
                            "{name}, {}: `cargo xtask confinement --update` and look at what changed:\n{}",
                            found.heading,
                            differences.join("\n")
                        );
                    }
                }
            }
            say(&format!(
                "{name}, {}: {} attempts",
                found.heading,
                found.rows.len()
            ))?;
        }
    }
    if engines_missing == ENGINES.len() {
        bail!("nothing was found in {places:?}: run the adversaries first");
    }
    document(root, purpose)?;
    Ok(match missing.as_slice() {
        [] => Outcome::Passed,
        some => Outcome::Partly(format!("there was no run on {}", some.join(", "))),
    })
}

impl Found {
    fn empty() -> Self {
        Self {
            title: String::new(),
            heading: String::new(),
            rows: Vec::new(),
        }
    }
}

fn parse(text: &str) -> anyhow::Result<Found> {
    let mut lines = text.lines();
    let mut head = || {
        lines
            .next()
            .map(str::to_owned)
            .context("two lines of heading")
    };
    let (title, heading) = (head()?, head()?);
    let rows = lines.map(|line| {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        <[String; 3]>::try_from(fields)
            .ok()
            .with_context(|| format!("not three fields: {line}"))
    });
    Ok(Found {
        title,
        heading,
        rows: rows.collect::<anyhow::Result<_>>()?,
    })
}

/// All parts in a folder; empty if there is no folder.
fn read(folder: &Path) -> anyhow::Result<Parts> {
    let mut parts = Parts::new();
    if !folder.exists() {
        return Ok(parts);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let found = parse(&fs::read_to_string(&path)?);
        let found = found.with_context(|| path.display().to_string())?;
        parts.insert(name.into_owned(), found);
    }
    Ok(parts)
}

fn take_over(found: &Path, committed: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(committed.parent().unwrap_or(committed))?;
    fs::copy(found, committed)?;
    Ok(())
}

/// A test marks unexpected results, and fails; its files stay.
fn as_expected(found: &Found) -> anyhow::Result<()> {
    let strange = found
        .rows
        .iter()
        .find(|[_, _, happened]| happened.starts_with("**"));
    match strange {
        Some([item, expected, happened]) => bail!("{item}: {happened}, not {expected}"),
        None => Ok(()),
    }
}

/// The differences, item by item. Another version of engine or kernel may refuse the same thing
/// with another of the expected errors.
fn differences(committed: &Found, found: &Found) -> Vec<String> {
    let same_machine = committed.title == found.title;
    let by_item = |found: &Found| -> BTreeMap<String, (String, String)> {
        let rows = found.rows.iter().map(|[item, expected, happened]| {
            let happened = if same_machine {
                happened.clone()
            } else {
                String::new()
            };
            (item.clone(), (expected.clone(), happened))
        });
        rows.collect()
    };
    let (before, after) = (by_item(committed), by_item(found));
    let mut differences = Vec::new();
    for (item, outcome) in &after {
        match before.get(item) {
            None => differences.push(format!("{item}: is not committed")),
            Some(other) if other != outcome => {
                differences.push(format!("{item}: {outcome:?}, committed as {other:?}"));
            }
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|item| !after.contains_key(*item));
    differences.extend(gone.map(|item| format!("{item}: was not tried")));
    differences
}

/// Updates or checks the document, which shows the committed results.
fn document(root: &Path, purpose: Use) -> anyhow::Result<()> {
    let path: PathBuf = root.join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (before, _) = text
        .split_once(MARK)
        .with_context(|| format!("{DOCUMENT} has no mark"))?;
    let mut engines = Vec::new();
    for (engine, _) in ENGINES {
        engines.push(read(&root.join(COMMITTED).join(engine))?);
    }
    let shown = format!("{before}{MARK}{}", tables(&engines));
    match purpose {
        Use::Update => Ok(fs::write(&path, shown)?),
        Use::Compare { .. } if shown == text => Ok(()),
        Use::Compare { .. } => {
            bail!("{DOCUMENT} is out of date: `cargo xtask confinement --update`")
        }
    }
}

/// Attempts in one area with the same expectation and outcomes: a row of a table.
struct Group<'a> {
    /// What precedes the colon in an item; empty if there is none.
    area: &'a str,
    attempts: Vec<&'a str>,
    expected: String,
    /// One for each engine.
    outcomes: Vec<&'a str>,
}

/// A table for each part, with a column for each engine.
fn tables(engines: &[Parts]) -> String {
    let mut text = String::new();
    let mut parts: Vec<&String> = engines.iter().flat_map(Parts::keys).collect();
    parts.sort();
    parts.dedup();
    for part in parts {
        let found: Vec<Option<&Found>> = engines.iter().map(|engine| engine.get(part)).collect();
        let heading = found
            .iter()
            .flatten()
            .next()
            .map_or("", |found| &found.heading);
        let titles: Vec<&str> = found
            .iter()
            .zip(ENGINES)
            .map(|(found, (_, name))| found.map_or(name, |found| &found.title))
            .collect();
        // Writing to a String can't fail.
        write!(text, "\n## {heading}\n\n").ok();
        row(&mut text, "tried", "expected", &titles);
        row(&mut text, "---", "---", &["---"; ENGINES.len()]);
        for group in groups(&found) {
            let attempts = group.attempts.join("; ");
            let tried = match group.area {
                "" => attempts,
                area => format!("{area}: {attempts}"),
            };
            row(&mut text, &tried, &group.expected, &group.outcomes);
        }
    }
    text
}

/// The rows of a table, each where its first item would be.
fn groups<'f>(found: &[Option<&'f Found>]) -> Vec<Group<'f>> {
    let mut items: Vec<&'f String> = found
        .iter()
        .flatten()
        .flat_map(|found| found.rows.iter().map(|[item, _, _]| item))
        .collect();
    items.sort();
    items.dedup();
    let mut groups: Vec<Group<'f>> = Vec::new();
    for item in items {
        let of_item: Vec<Option<&[String; 3]>> = found
            .iter()
            .map(|found| found.and_then(|found| found.rows.iter().find(|row| row[0] == *item)))
            .collect();
        let outcomes: Vec<&str> = of_item
            .iter()
            .map(|row| row.map_or("not tried", |row| &row[2]))
            .collect();
        let expected = expectation(&of_item);
        let (area, attempt) = item.split_once(": ").unwrap_or(("", item.as_str()));
        let same = groups.iter_mut().find(|group| {
            group.area == area && group.expected == expected && group.outcomes == outcomes
        });
        match same {
            Some(group) => group.attempts.push(attempt),
            None => groups.push(Group {
                area,
                attempts: vec![attempt],
                expected,
                outcomes,
            }),
        }
    }
    groups
}

/// One expectation, or one for each engine where they differ.
fn expectation(of_item: &[Option<&[String; 3]>]) -> String {
    let mut texts: Vec<(&str, &str)> = of_item
        .iter()
        .zip(ENGINES)
        .filter_map(|(row, (_, name))| row.map(|row| (name, row[1].as_str())))
        .collect();
    texts.dedup_by_key(|(_, text)| *text);
    match texts.as_slice() {
        [(_, text)] => (*text).to_owned(),
        several => {
            let each = several.iter().map(|(name, text)| format!("{name}: {text}"));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

fn row(text: &mut String, item: &str, expected: &str, outcomes: &[&str]) {
    for cell in [item, expected].iter().chain(outcomes) {
        write!(text, "| {} ", cell.replace('|', "\\|")).ok();
    }
    text.push_str("|\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(title: &str, rows: &[[&str; 3]]) -> Found {
        Found {
            title: title.to_owned(),
            heading: "h".to_owned(),
            rows: rows.iter().map(|row| row.map(str::to_owned)).collect(),
        }
    }

    #[test]
    fn an_outcome_that_changed_is_a_difference_on_the_same_machine_alone() {
        let before = found("Docker 1", &[["a", "x or y", "x"]]);
        let after = |title| found(title, &[["a", "x or y", "y"]]);
        assert_eq!(differences(&before, &before), [""; 0]);
        assert_eq!(differences(&before, &after("Docker 1")).len(), 1);
        assert_eq!(differences(&before, &after("Docker 2")), [""; 0]);
    }

    #[test]
    fn what_is_tried_or_expected_is_the_same_on_every_machine() {
        let before = found("Docker 1", &[["a", "x", "x"], ["b", "x", "x"]]);
        let after = found("Docker 2", &[["a", "y", "y"], ["c", "x", "x"]]);
        let differences = differences(&before, &after);
        let items: Vec<_> = differences
            .iter()
            .filter_map(|text| text.split(':').next())
            .collect();
        assert_eq!(items, ["a", "c", "b"]);
    }

    #[test]
    fn what_nobody_expected_is_refused() {
        assert!(as_expected(&found("", &[["a", "x", "x"]])).is_ok());
        assert!(as_expected(&found("", &[["a", "x", "**y**"]])).is_err());
    }

    #[test]
    fn engines_stand_side_by_side() {
        let docker = found("Docker 1", &[["a|b", "x", "x"], ["c", "x", "x"]]);
        let podman = found("Podman 1", &[["a|b", "x", "x"], ["c", "y: why", "y"]]);
        let parts = |found: Found| Parts::from([("1".to_owned(), found)]);
        let text = tables(&[parts(docker.clone()), parts(podman)]);
        assert_eq!(
            text,
            "\n## h\n\n| tried | expected | Docker 1 | Podman 1 |\n| --- | --- | --- | --- |\n| a\\|b | x | x | x |\n\
             | c | Docker: x; Rootless Podman: y: why | x | y |\n"
        );
        let alone = tables(&[parts(docker), Parts::new()]);
        assert!(
            alone.contains("| a\\|b; c | x | x | not tried |"),
            "{alone}"
        );
        assert!(alone.contains("| Docker 1 | Rootless Podman |"), "{alone}");
    }

    #[test]
    fn attempts_in_one_area_with_the_same_outcomes_share_a_row() {
        let rows = [
            ["read: b", "x", "x"],
            ["read: a", "x", "x"],
            ["read: c", "x or y", "x"],
            ["write: a", "x", "x"],
        ];
        let parts = Parts::from([("1".to_owned(), found("Docker 1", &rows))]);
        let text = tables(&[parts.clone(), parts]);
        let (_, shown) = text.split_once("| --- | --- | --- | --- |\n").unwrap();
        assert_eq!(
            shown,
            "| read: a; b | x | x | x |\n| read: c | x or y | x | x |\n| write: a | x | x | x |\n"
        );
    }
}
