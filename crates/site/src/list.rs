//! The list for the start page's script, `list.txt`: one tab-separated line per listed host, sorted
//! by name. The same lines can be read back for the pages of each software. The newest lines are
//! kept for the start page itself.

mod least;

use std::cmp::Reverse;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::os::unix::fs::FileExt as _;

use dump::ListedRow;
use publish::{File, Gzip, Tree, gzip};

use crate::error::SiteError;
use crate::text::{shown, unicode};
pub(crate) use least::Least;

pub(crate) const FILE: &str = "list.txt";
const GZIP_FILE: &str = "list.txt.gz";

/// Rows in the start page itself: some screens of them, 2 kB on the wire.
pub(crate) const NEWEST_MAX: usize = 50;

/// The first line: the column names. `unicode` is empty for ASCII names.
const HEADER: &str =
    "host\tsoftware\tversion\tstate\topen_registrations\tfirst_seen\tlast_alive\tunicode\n";

const BUFFER_BYTES: usize = 64 * 1024;

/// A listed host for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    pub(crate) host: &'a str,
    pub(crate) software: &'a str,
    pub(crate) version: &'a str,
    pub(crate) state: &'a str,
    /// `yes`, `no`, or empty if the instance does not publish it.
    pub(crate) open_registrations: &'a str,
    pub(crate) first_seen: &'a str,
    pub(crate) last_alive: &'a str,
    /// The name in Unicode; empty if it is the same.
    pub(crate) unicode: &'a str,
}

impl<'a> Row<'a> {
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.trim_end_matches('\n').split('\t');
        let mut next = || fields.next();
        Some(Self {
            host: next()?,
            software: next()?,
            version: next()?,
            state: next()?,
            open_registrations: next()?,
            first_seen: next()?,
            last_alive: next()?,
            unicode: next()?,
        })
    }
}

#[derive(Debug)]
pub(crate) struct List<'t> {
    tree: &'t Tree,
    plain: BufWriter<File>,
    zipped: Gzip<BufWriter<File>>,
    again: BufWriter<std::fs::File>,
    newest: Least<Reverse<String>>,
    rows: u64,
    last: String,
    /// Bytes in `again`.
    bytes: u64,
}

/// Where the line of a listed host can be read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Listed<'t> {
    tree: &'t Tree,
    again: std::fs::File,
    pub(crate) rows: u64,
    /// Size of the gzipped list on the wire, in bytes.
    pub(crate) wire_bytes: u64,
    /// The [`NEWEST_MAX`] lines of the hosts that were first seen last.
    pub(crate) newest: Vec<String>,
}

impl<'t> List<'t> {
    pub(crate) fn new(tree: &'t Tree) -> Result<Self, SiteError> {
        let zipped = tree.create(GZIP_FILE)?;
        let plain = tree.create(FILE)?;
        let again = tempfile::tempfile_in(tree.folder())
            .map_err(|error| tree.failed(FILE, "creating a temporary file for", error))?;
        let buffered = |file| BufWriter::with_capacity(BUFFER_BYTES, file);
        let mut list = Self {
            tree,
            plain: buffered(plain),
            zipped: gzip(buffered(zipped)),
            again: BufWriter::with_capacity(BUFFER_BYTES, again),
            newest: Least::new(NEWEST_MAX),
            rows: 0,
            last: String::new(),
            bytes: 0,
        };
        list.publish(HEADER)?;
        Ok(list)
    }

    /// Adds a host; returns its software's name as counted and shown, and where its line is.
    pub(crate) fn push(&mut self, row: &ListedRow) -> Result<(Option<String>, Span), SiteError> {
        if self.rows > 0 && row.host <= self.last {
            return Err(SiteError::OutOfOrder {
                name: row.host.clone(),
            });
        }
        let software = row.instance.software.as_deref().and_then(shown);
        let first_seen = row.first_seen.day().to_string();
        let line = format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
            row.host,
            software.as_deref().unwrap_or_default(),
            row.instance
                .version
                .as_deref()
                .and_then(shown)
                .unwrap_or_default(),
            row.state.as_str(),
            match row.instance.open_registrations {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            },
            first_seen,
            row.last_alive.day(),
            unicode(&row.host).unwrap_or_default(),
        );
        let json = serde_json::to_string(row).map_err(|error| self.failed(error.into()))?;
        let columns = line.trim_end_matches('\n');
        writeln!(self.again, "{columns}\t{json}").map_err(|error| self.failed(error))?;
        let bytes = |text: &str| u64::try_from(text.len()).unwrap_or(u64::MAX);
        let span = Span {
            at: self.bytes,
            bytes: bytes(columns),
        };
        // A tab and the end of the line.
        let after = bytes(&json).saturating_add(2);
        self.bytes = span.at.saturating_add(span.bytes).saturating_add(after);
        self.publish(&line)?;
        self.newest.push(Reverse(first_seen), &line);
        self.rows = self.rows.saturating_add(1);
        self.last.clone_from(&row.host);
        Ok((software, span))
    }

    pub(crate) fn finish(self) -> Result<Listed<'t>, SiteError> {
        let failed = |error| self.tree.failed(FILE, "writing", error);
        self.plain
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        let zipped = self
            .zipped
            .finish()
            .and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(failed)?;
        let again = self
            .again
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        Ok(Listed {
            wire_bytes: zipped.bytes().map_err(failed)?,
            newest: self.newest.into_lines(),
            tree: self.tree,
            again,
            rows: self.rows,
        })
    }

    fn publish(&mut self, line: &str) -> Result<(), SiteError> {
        self.plain
            .write_all(line.as_bytes())
            .and_then(|()| self.zipped.write_all(line.as_bytes()))
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> SiteError {
        self.tree.failed(FILE, "writing", error).into()
    }
}

impl Listed<'_> {
    /// The columns of a line.
    pub(crate) fn line(&self, span: Span) -> io::Result<String> {
        // A line has at most a few hundred bytes.
        let mut line = vec![0; usize::try_from(span.bytes).unwrap_or_default()];
        self.again.read_exact_at(&mut line, span.at)?;
        String::from_utf8(line).map_err(|_text| io::ErrorKind::InvalidData.into())
    }

    /// Passes each line and the instance as JSON to `each`, in order, until cancelled.
    pub(crate) fn read(
        &mut self,
        mut each: impl FnMut(&str, Row<'_>, &str),
    ) -> Result<(), SiteError> {
        let tree = self.tree;
        let failed = |error| tree.failed(FILE, "reading back", error);
        self.again.rewind().map_err(failed)?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, &self.again);
        let mut line = String::new();
        // Ends after the last line; each line has a bounded length.
        while reader.read_line(&mut line).map_err(failed)? > 0 {
            self.tree.cancel().check()?;
            // JSON contains no tab: it is escaped.
            if let Some((columns, json)) = line.trim_end_matches('\n').rsplit_once('\t')
                && let Some(row) = Row::parse(columns)
            {
                each(columns, row, json);
            }
            line.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dump::{ListedState, Moment};
    use protocol::Instance;

    use super::*;
    use crate::write::tests::tree;

    fn instance(host: &str, software: &str) -> ListedRow {
        ListedRow {
            host: host.to_owned(),
            state: ListedState::Alive,
            instance: Instance {
                open_registrations: Some(true),
                ..kit::software(software, "1\t2\n3")
            },
            first_seen: Moment::from_milliseconds(0),
            last_alive: Moment::from_milliseconds(1_700_000_000_000),
        }
    }

    #[test]
    fn a_line_holds_a_host_whatever_its_software_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree(folder.path());
        let mut list = List::new(&tree).unwrap();
        let (software, _) = list.push(&instance("a.example", "x\ty\n")).unwrap();
        assert_eq!(software.as_deref(), Some("x\u{fffd}y"));
        let mut listed = list.finish().unwrap();
        let text = std::fs::read_to_string(tree.path(FILE)).unwrap();
        let line =
            "a.example\tx\u{fffd}y\t1\u{fffd}2\u{fffd}3\talive\tyes\t1970-01-01\t2023-11-14\t\n";
        assert_eq!(text, format!("{HEADER}{line}"));
        let mut lines = Vec::new();
        listed
            .read(|line, row, json| {
                assert_eq!((row.host, row.last_alive), ("a.example", "2023-11-14"));
                let read: ListedRow = serde_json::from_str(json).unwrap();
                assert_eq!(read, instance("a.example", "x\ty\n"));
                lines.push(format!("{line}\n"));
            })
            .unwrap();
        assert_eq!(lines, [line]);
    }

    #[test]
    fn a_host_out_of_order_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree(folder.path());
        let mut list = List::new(&tree).unwrap();
        list.push(&instance("b.example", "x")).unwrap();
        for host in ["a.example", "b.example"] {
            let error = list.push(&instance(host, "x")).unwrap_err();
            assert!(matches!(error, SiteError::OutOfOrder { .. }), "{error}");
        }
    }
}
