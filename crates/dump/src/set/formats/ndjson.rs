//! `instances.ndjson`: one JSON object ([`ListedRow`]) per line, for programs that read row by row.
//! [`crate::rows`] reads it back.

use std::io;

use crate::row::ListedRow;
use crate::set::formats::Format;

#[derive(Debug)]
pub(crate) struct Ndjson;

impl Format for Ndjson {
    fn head(&self) -> &'static [u8] {
        b""
    }

    fn row(&self, _earlier: u64, instance: &ListedRow, out: &mut Vec<u8>) -> io::Result<()> {
        serde_json::to_writer(&mut *out, instance)?;
        out.push(b'\n');
        Ok(())
    }

    fn tail(&self) -> &'static [u8] {
        b""
    }
}
