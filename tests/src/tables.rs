//! Tables for readers, written by the tests that assert their content: `target/tables/NAME.md`,
//! joined from the parts of several tests.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A table in progress: a heading, the columns, the rows.
#[derive(Debug, Clone)]
pub struct Table {
    text: String,
}

impl Table {
    /// An empty table below a heading.
    pub fn new(heading: &str, columns: &[&str]) -> Self {
        let mut table = Self {
            text: format!("## {heading}\n\n"),
        };
        table.row(columns);
        table.row(&vec!["---"; columns.len()]);
        table
    }

    /// Adds a row. Characters that would end a cell are escaped.
    pub fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        for cell in cells {
            let cell = cell.as_ref().replace('|', "\\|").replace('\n', " ");
            // Writing to a String can't fail.
            write!(self.text, "| {cell} ").ok();
        }
        self.text.push_str("|\n");
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, text: &str) {
        write!(self.text, "\n{text}\n").ok();
    }

    /// Writes it as a part of `name`; the parts are sorted by their names.
    pub fn write(&self, name: &str, part: &str) -> anyhow::Result<()> {
        join(&directory()?, name, "", part, &format!("{}\n", self.text))
    }
}

/// Writes a part of `NAME.md`, and joins it with the others below the head.
pub(crate) fn join(
    tables: &Path,
    name: &str,
    head: &str,
    part: &str,
    text: &str,
) -> anyhow::Result<()> {
    let parts = tables.join(name);
    fs::create_dir_all(&parts)?;
    // Tests run concurrently: the last one to write must have read the parts of all others.
    let turn = File::create(tables.join(format!("{name}.lock")))?;
    turn.lock()?;
    fs::write(parts.join(part), text)?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(&parts)? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut whole = head.to_owned();
    for path in paths {
        whole.push_str(&fs::read_to_string(path)?);
    }
    let temporary = tables.join(format!("{name}.md.new"));
    fs::write(&temporary, whole)?;
    Ok(fs::rename(temporary, tables.join(format!("{name}.md")))?)
}

/// `tables` in the directory where this test was built.
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
        join(tables.path(), "all", "", "2", &table.text).unwrap();
        join(tables.path(), "all", "", "1", "## a\n\n").unwrap();
        let whole = fs::read_to_string(tables.path().join("all.md")).unwrap();
        assert_eq!(
            whole,
            "## a\n\n## b\n\n| tried | happened |\n| --- | --- |\n| a\\|b | c d |\n"
        );
    }
}
