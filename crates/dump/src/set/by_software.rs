//! `by-software.json`: the listed hosts by software, and `software/NAME.json`: those of one, for
//! programs that complete names or offer servers.
//!
//! Rows come sorted by host. Names are grouped in an unnamed file, with a small buffer for each
//! software, so that memory does not grow with the rows.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::Value;

/// Software with a file of its own: the most frequent, as many as have a page.
pub(super) const FILES_MAX: usize = 200;

/// Size of a software's buffer: a thousand take 4 MB.
const BUFFER_BYTES: usize = 4096;

/// The hosts of each software of a ranking.
#[derive(Debug)]
pub(super) struct Groups {
    file: BufWriter<File>,
    end: u64,
    groups: Vec<Group>,
    /// Index of each software's group.
    by_name: HashMap<Option<String>, usize>,
}

#[derive(Debug)]
struct Group {
    software: Option<String>,
    is_empty: bool,
    buffer: Vec<u8>,
    /// Where its hosts are in the file, and how many bytes.
    pieces: Vec<(u64, usize)>,
}

impl Groups {
    /// Groups for this software. The unnamed file is in `folder`.
    pub(super) fn new(folder: &Path, ranking: &[Option<String>]) -> io::Result<Self> {
        let group = |software: &Option<String>| Group {
            software: software.clone(),
            is_empty: true,
            buffer: Vec::new(),
            pieces: Vec::new(),
        };
        Ok(Self {
            file: BufWriter::new(tempfile::tempfile_in(folder)?),
            end: 0,
            groups: ranking.iter().map(group).collect(),
            by_name: ranking.iter().cloned().zip(0..).collect(),
        })
    }

    /// Adds a host. That of a software that is not in the ranking is left out.
    pub(super) fn push(&mut self, software: &Option<String>, host: &str) -> io::Result<()> {
        let index = self.by_name.get(software);
        let Some(group) = index.and_then(|index| self.groups.get_mut(*index)) else {
            return Ok(());
        };
        if !std::mem::take(&mut group.is_empty) {
            group.buffer.push(b',');
        }
        // A canonical name contains no character that JSON escapes.
        write!(group.buffer, "\"{host}\"")?;
        if group.buffer.len() < BUFFER_BYTES {
            return Ok(());
        }
        self.file.write_all(&group.buffer)?;
        group.pieces.push((self.end, group.buffer.len()));
        self.end += u64::try_from(group.buffer.len()).unwrap_or(u64::MAX);
        group.buffer.clear();
        Ok(())
    }

    /// Writes all groups, in the order of the ranking.
    pub(super) fn write(&mut self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(b"[")?;
        for index in 0..self.groups.len() {
            let software = self.groups.get(index).map(|group| &group.software);
            let software = Value::from(software.cloned().flatten());
            let before = if index == 0 { "" } else { ",\n" };
            write!(to, "{before}{{\"software\":{software},\"hosts\":")?;
            self.write_hosts(index, to)?;
            to.write_all(b"}")?;
        }
        to.write_all(b"]\n")
    }

    /// Writes one group's hosts, sorted, as a JSON array.
    pub(super) fn write_hosts(&mut self, index: usize, to: &mut dyn Write) -> io::Result<()> {
        self.file.flush()?;
        to.write_all(b"[")?;
        if let Some(group) = self.groups.get(index) {
            let mut piece = Vec::new();
            for (at, bytes) in &group.pieces {
                piece.resize(*bytes, 0);
                self.file.get_ref().read_exact_at(&mut piece, *at)?;
                to.write_all(&piece)?;
            }
            to.write_all(&group.buffer)?;
        }
        to.write_all(b"]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_grouped_whatever_their_number_and_software() {
        let folder = tempfile::tempdir().unwrap();
        let odd = "x\",\"y\n\u{0}".to_owned();
        let ranking = [Some("many".to_owned()), None, Some(odd.clone())];
        let mut groups = Groups::new(folder.path(), &ranking).unwrap();
        let mut many = Vec::new();
        for number in 0..3000 {
            let host = format!("h{number:05}.example");
            groups.push(&ranking[0], &host).unwrap();
            many.push(host);
        }
        groups.push(&None, "unknown.example").unwrap();
        groups
            .push(&Some("rare".to_owned()), "rare.example")
            .unwrap();
        groups.push(&ranking[2], "odd.example").unwrap();
        let mut text = Vec::new();
        groups.write(&mut text).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        let expect = serde_json::json!([
            {"software": "many", "hosts": many},
            {"software": null, "hosts": ["unknown.example"]},
            {"software": odd, "hosts": ["odd.example"]},
        ]);
        assert_eq!(read, expect);
        let mut text = Vec::new();
        groups.write_hosts(0, &mut text).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<String>>(&text).unwrap(), many);
        assert!(!groups.groups[0].pieces.is_empty(), "some are in the file");
    }
}
