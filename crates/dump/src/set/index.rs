//! `data/index.json`: the published files, sorted by name, with what a reader needs to verify each.

use serde::{Deserialize, Serialize};

use crate::compress::Measure;
use crate::row::Moment;

/// The version of all files' formats. An added member or column does not change it; one that is
/// removed or changes its meaning raises it.
pub const SCHEMA_VERSION: u32 = 1;

/// The media types of the published files.
pub(crate) mod media {
    pub(crate) const JSON: &str = "application/json";
    pub(crate) const NDJSON: &str = "application/x-ndjson";
    pub const CSV: &str = "text/csv; charset=utf-8; header=present";
    pub(crate) const SQLITE: &str = "application/vnd.sqlite3";
    pub(crate) const ATOM: &str = "application/atom+xml";
    pub(crate) const GZIP: &str = "application/gzip";
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) schema_version: u32,
    pub(crate) made: Moment,
    /// When its rows were read from the database. Earlier than `made` if names were only removed
    /// from a published set.
    pub(crate) rows_read: Moment,
    /// Licence of all files, an SPDX expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) licence: Option<String>,
    /// Number of listed instances, the same in every file.
    pub(crate) instances: u64,
    pub(crate) files: Vec<Entry>,
}

/// A file of the set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Path from the index's folder.
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) made: Moment,
    /// Version of the content's format: a compressed file has that of its content.
    pub(crate) schema_version: u32,
}

impl Entry {
    pub(crate) fn new(name: String, media_type: &str, measure: Measure, made: Moment) -> Self {
        Self {
            name,
            media_type: media_type.to_owned(),
            bytes: measure.bytes,
            sha256: measure.sha256,
            made,
            schema_version: SCHEMA_VERSION,
        }
    }
}

impl Index {
    /// The file's bytes, indented for human readers.
    pub(crate) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}
