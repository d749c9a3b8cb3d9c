//! Tables for people, written by the tests that assert what stands in them: `target/tables/NAME.md`, joined from the parts that several tests give.
//!
//! What a check's confinement did on an engine is written for a program as well, which lays the engines' side by side: [`Found`].

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A table that is being filled: a heading, the columns, the rows.
#[derive(Debug, Clone)]
pub struct Table {
    text: String,
}

impl Table {
    /// An empty table with a heading above it.
    pub fn new(heading: &str, columns: &[&str]) -> Self {
        let mut table = Self {
            text: format!("## {heading}\n\n"),
        };
        table.row(columns);
        table.row(&vec!["---"; columns.len()]);
        table
    }

    /// Adds a row. What would end a cell is escaped.
    pub fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        for cell in cells {
            let cell = cell.as_ref().replace('|', "\\|").replace('\n', " ");
            // Writing to a String can't fail.
            write!(self.text, "| {cell} ").ok();
        }
        self.text.push_str("|\n");
    }

    /// Adds a sentence below.
    pub fn note(&mut self, text: &str) {
        write!(self.text, "\n{text}\n").ok();
    }

    /// Writes it as a part of `name`; the parts stand in the order of their names.
    ///
    /// # Errors
    /// When the directory can't be written.
    pub fn write(&self, name: &str, part: &str) -> anyhow::Result<()> {
        join(&directory()?, name, part, &self.text)
    }
}

/// What came of each attempt on an engine: a line each of item, expectation and outcome, with tabs between.
#[derive(Debug, Clone)]
pub struct Found {
    text: String,
}

impl Found {
    /// Nothing yet, of the engine of this title, for the table with this heading.
    pub fn new(engine: &str, heading: &str) -> Self {
        Self {
            text: format!("{engine}\n{heading}\n"),
        }
    }

    /// Adds an attempt.
    pub fn add(&mut self, item: &str, expected: &str, happened: &str) {
        let line = [item, expected, happened].map(|text| text.replace(['\t', '\n'], " "));
        self.text.push_str(&line.join("\t"));
        self.text.push('\n');
    }

    /// Writes `target/tables/confinement/ENGINE/PART.tsv`.
    ///
    /// # Errors
    /// When the directory can't be written.
    pub fn write(&self, engine: &str, part: &str) -> anyhow::Result<()> {
        let folder = directory()?.join("confinement").join(engine);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join(format!("{part}.tsv")), &self.text)?)
    }
}

fn join(tables: &Path, name: &str, part: &str, text: &str) -> anyhow::Result<()> {
    let parts = tables.join(name);
    fs::create_dir_all(&parts)?;
    // Tests run beside each other: the last to write must have seen the parts of all others.
    let turn = File::create(tables.join(format!("{name}.lock")))?;
    turn.lock()?;
    fs::write(parts.join(part), text)?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(&parts)? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut whole = String::new();
    for path in paths {
        writeln!(whole, "{}", fs::read_to_string(path)?)?;
    }
    let beside = tables.join(format!("{name}.md.new"));
    fs::write(&beside, whole)?;
    Ok(fs::rename(beside, tables.join(format!("{name}.md")))?)
}

/// `tables` in the directory that this test was built into.
///
/// # Errors
/// When the test does not run from there.
pub fn directory() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let target = test
        .ancestors()
        .nth(3)
        .context("tests run from target/PROFILE/deps")?;
    Ok(target.join("tables"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_and_no_cell_ends_a_row() {
        let tables = tempfile::tempdir().unwrap();
        let mut table = Table::new("b", &["tried", "happened"]);
        table.row(&["a|b", "c\nd"]);
        join(tables.path(), "all", "2", &table.text).unwrap();
        join(tables.path(), "all", "1", "## a\n").unwrap();
        let whole = fs::read_to_string(tables.path().join("all.md")).unwrap();
        assert_eq!(
            whole,
            "## a\n\n## b\n\n| tried | happened |\n| --- | --- |\n| a\\|b | c d |\n\n"
        );
    }
}
