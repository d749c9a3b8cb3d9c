//! The instances of each software as files next to its page: names as JSON, rows as NDJSON.
//!
//! Hundreds of files grow at once. Each has a buffer in memory and is opened only to append it, so
//! that neither memory nor open files grow with the census.

use std::collections::HashMap;
use std::io::Write as _;

use publish::{Tree, TreeError};

use super::Software;
use crate::error::SiteError;
use crate::list::Listed;

/// Size of a file's buffer: 400 files take 6.5 MB.
const GATHERED_BYTES: usize = 16 * 1024;

struct Growing {
    name: String,
    gathered: Vec<u8>,
}

struct Files {
    names: Growing,
    rows: Growing,
    is_empty: bool,
}

/// Writes the files of all software that has a page.
pub(crate) fn write(
    tree: &Tree,
    folder: &str,
    listed: &mut Listed<'_>,
    pages: &[Software],
) -> Result<(), SiteError> {
    let mut growing: HashMap<&str, Files> = HashMap::new();
    for software in pages {
        let path = format!("{folder}/{}", software.slug);
        let (names, rows) = (format!("{path}.json"), format!("{path}.ndjson"));
        tree.create(&names)?;
        tree.create(&rows)?;
        growing.insert(&software.name, Files::new(names, rows));
    }
    let mut failed = None;
    listed.read(|_, row, json| {
        if let Some(files) = growing.get_mut(row.software)
            && failed.is_none()
        {
            failed = files.take(tree, row.host, json).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    for mut files in growing.into_values() {
        files
            .names
            .push(tree, if files.is_empty { b"[]\n" } else { b"]\n" })?;
        for file in [files.names, files.rows] {
            file.write(tree)?;
            tree.pack(&file.name)?;
        }
    }
    Ok(())
}

impl Files {
    fn new(names: String, rows: String) -> Self {
        let growing = |name| Growing {
            name,
            gathered: Vec::new(),
        };
        Self {
            names: growing(names),
            rows: growing(rows),
            is_empty: true,
        }
    }

    fn take(&mut self, tree: &Tree, host: &str, json: &str) -> Result<(), TreeError> {
        let before = if self.is_empty { '[' } else { ',' };
        self.is_empty = false;
        // A canonical name contains no character that JSON escapes.
        self.names
            .push(tree, format!("{before}\"{host}\"").as_bytes())?;
        self.rows.push(tree, json.as_bytes())?;
        self.rows.push(tree, b"\n")
    }
}

impl Growing {
    fn push(&mut self, tree: &Tree, bytes: &[u8]) -> Result<(), TreeError> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHERED_BYTES {
            self.write(tree)?;
            self.gathered.clear();
        }
        Ok(())
    }

    fn write(&self, tree: &Tree) -> Result<(), TreeError> {
        let written = tree.append(&self.name)?.write_all(&self.gathered);
        written.map_err(|error| tree.failed(&self.name, "writing", error))
    }
}
