//! The instances of each software as files next to its page: names as JSON, rows as NDJSON.
//!
//! Hundreds of files grow at once. Each has a buffer in memory and is opened only to append it, so
//! that neither memory nor open files grow with the census.

use std::collections::HashMap;

use super::Software;
use crate::error::SiteError;
use crate::list::Listed;
use crate::staging::Staging;

/// Size of a file's buffer: 400 files take 6.5 MB.
const GATHERED_BYTES: usize = 16 * 1024;

struct Growing {
    name: String,
    gathered: Vec<u8>,
}

/// The two files of one software.
struct Files {
    names: Growing,
    rows: Growing,
    is_empty: bool,
}

/// Writes the files of all software that has a page. Software whose names can't be used for files
/// gets none.
pub(crate) fn write(
    staging: &mut Staging,
    folder: &str,
    listed: &mut Listed,
    pages: &[Software],
) -> Result<(), SiteError> {
    let mut growing: HashMap<&str, Files> = HashMap::new();
    for software in pages {
        let path = format!("{folder}/{}", software.slug);
        let (names, rows) = (format!("{path}.json"), format!("{path}.ndjson"));
        if staging.begin_pages([&names, &rows])? {
            growing.insert(&software.name, Files::new(names, rows));
        }
    }
    let mut failed = None;
    listed.read(|_, row, json| {
        if let Some(files) = growing.get_mut(row.software)
            && failed.is_none()
        {
            failed = files.take(staging, row.host, json).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    for mut files in growing.into_values() {
        files
            .names
            .push(staging, if files.is_empty { b"[]\n" } else { b"]\n" })?;
        for file in [files.names, files.rows] {
            staging.append(&file.name, &file.gathered)?;
            staging.pack(&file.name)?;
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

    fn take(&mut self, staging: &Staging, host: &str, json: &str) -> Result<(), SiteError> {
        let before = if self.is_empty { '[' } else { ',' };
        self.is_empty = false;
        // A canonical name contains no character that JSON escapes.
        self.names
            .push(staging, format!("{before}\"{host}\"").as_bytes())?;
        self.rows.push(staging, json.as_bytes())?;
        self.rows.push(staging, b"\n")
    }
}

impl Growing {
    fn push(&mut self, staging: &Staging, bytes: &[u8]) -> Result<(), SiteError> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHERED_BYTES {
            staging.append(&self.name, &self.gathered)?;
            self.gathered.clear();
        }
        Ok(())
    }
}
