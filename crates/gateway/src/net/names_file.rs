//! The lab's names file, which replaces DNS. It is never used outside a lab.
//!
//! A line is `NAME ADDRESS PORT`, or `NAME` with one of `nxdomain`, `nodata`, `servfail` and
//! `timeout` to simulate DNS failures. `#` begins a comment. The first label may be `*`, for any
//! one or more labels. The last match wins. `_LABEL.NAME txt WORD` adds a TXT record to a name;
//! such a name may also simulate a failure, and otherwise does not exist. The file is read again
//! when it changes. A file over [`FILE_BYTES_MAX`] is rejected; a bad line is logged with its
//! number and skipped.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use protocol::{Host, escaped};
use thiserror::Error;

use crate::wire::control::Texts;
use crate::wire::text_name::{RECORD_BYTES_MAX, RECORDS_MAX, TextName};

/// Largest file: a crowd of 250 000 names takes about 12 MiB.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most bad lines that are logged per reading; the rest is counted.
const BAD_LINES_LOGGED_MAX: u64 = 20;

/// The result of a name in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    At(SocketAddr),
    NoSuchName,
    NoAddress,
    ServerFailure,
    Silence,
}

/// Why the file can't be used now.
#[derive(Debug, Error)]
pub enum NamesFileError {
    #[error("the names file can't be read")]
    Read(#[source] io::Error),
    #[error("the names file is over {FILE_BYTES_MAX} bytes")]
    TooLarge,
}

/// The file, with the content last read.
#[derive(Debug)]
pub struct NamesFile {
    path: PathBuf,
    read: Option<(Stamp, Names)>,
}

/// Detects changes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl NamesFile {
    /// A names file at this path. The first look-up reads it.
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: None }
    }

    /// The entry of the last line that matches `host`. `None` if no line does.
    ///
    /// # Errors
    /// Fails if the file is missing, unreadable or too large. This is our fault, never the host's.
    pub fn look_up(&mut self, host: &Host) -> Result<Option<Entry>, NamesFileError> {
        let stamp = std::fs::metadata(&self.path)
            .map(|metadata| Stamp::of(&metadata))
            .map_err(NamesFileError::Read)?;
        let current = match self.read.take() {
            Some((seen, names)) if seen == stamp => (seen, names),
            Some(_) | None => read(&self.path)?,
        };
        let found = current.1.look_up(host);
        self.read = Some(current);
        Ok(found)
    }
}

impl NamesFile {
    /// The TXT records of a name.
    pub fn texts(&mut self, name: &TextName) -> Result<Texts, NamesFileError> {
        // Reads the file if it has changed.
        self.look_up(name.domain())?;
        let known = self
            .read
            .as_ref()
            .and_then(|(_, names)| names.texts.get(name));
        Ok(known.cloned().unwrap_or(Texts::NoSuchName {}))
    }
}

fn read(path: &Path) -> Result<(Stamp, Names), NamesFileError> {
    let file = File::open(path).map_err(NamesFileError::Read)?;
    let stamp = file
        .metadata()
        .map(|metadata| Stamp::of(&metadata))
        .map_err(NamesFileError::Read)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(NamesFileError::Read)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Err(NamesFileError::TooLarge);
    }
    let (names, bad_lines) = Names::parse(&bytes);
    tracing::info!(path = %path.display(), names = names.len(), bad_lines, "names file read");
    Ok((stamp, names))
}

/// The parsed lines. Each entry has its line's number, so that the last match wins.
#[derive(Debug, Default)]
pub(crate) struct Names {
    exact: HashMap<Box<str>, (u64, Entry)>,
    wildcards: HashMap<Box<str>, (u64, Entry)>,
    texts: HashMap<TextName, Texts>,
}

impl Names {
    /// Parses a file. Returns the good lines, and the number of bad ones.
    pub(crate) fn parse(bytes: &[u8]) -> (Self, u64) {
        let mut names = Self::default();
        let mut bad_lines: u64 = 0;
        for (number, line) in (1_u64..).zip(bytes.split(|&byte| byte == b'\n')) {
            let code = line.split(|&byte| byte == b'#').next().unwrap_or_default();
            if code.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if names.add_text(code).is_some() {
                continue;
            }
            match parse_line(code) {
                Some((Pattern::Exact(name), entry)) => {
                    names.exact.insert(name, (number, entry));
                }
                Some((Pattern::Below(name), entry)) => {
                    names.wildcards.insert(name, (number, entry));
                }
                None => {
                    bad_lines = bad_lines.saturating_add(1);
                    if bad_lines <= BAD_LINES_LOGGED_MAX {
                        tracing::warn!(line = number, text = %escaped(line, 200), "names file: line skipped");
                    }
                }
            }
        }
        (names, bad_lines)
    }

    /// Adds a line about a name's TXT records. `None` if it is not such a line.
    fn add_text(&mut self, code: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(code).ok()?;
        let mut words = text.split_ascii_whitespace();
        let name = TextName::parse(words.next()?).ok()?;
        let texts = match (words.next()?, words.next(), words.next()) {
            ("txt", Some(word), None) => {
                let record: String = word.chars().take(RECORD_BYTES_MAX).collect();
                let mut records = match self.texts.remove(&name) {
                    Some(Texts::Records { records }) => records,
                    Some(_) | None => Vec::new(),
                };
                records.push(record);
                records.truncate(RECORDS_MAX);
                Texts::Records { records }
            }
            ("nxdomain", None, None) => Texts::NoSuchName {},
            ("nodata", None, None) => Texts::NoData {},
            ("servfail", None, None) => Texts::ServerFailed {},
            ("timeout", None, None) => Texts::TimedOut {},
            _ => return None,
        };
        self.texts.insert(name, texts);
        Some(())
    }

    fn len(&self) -> usize {
        self.exact
            .len()
            .saturating_add(self.wildcards.len())
            .saturating_add(self.texts.len())
    }

    pub(crate) fn look_up(&self, host: &Host) -> Option<Entry> {
        let name = host.as_str();
        let mut best = self.exact.get(name).copied();
        // A name has at most 127 labels.
        let mut rest = name;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(&found) = self.wildcards.get(parent)
                && best.is_none_or(|(number, _)| number < found.0)
            {
                best = Some(found);
            }
            rest = parent;
        }
        best.map(|(_, entry)| entry)
    }
}

enum Pattern {
    Exact(Box<str>),
    Below(Box<str>),
}

fn parse_line(code: &[u8]) -> Option<(Pattern, Entry)> {
    let text = std::str::from_utf8(code).ok()?;
    let mut words = text.split_ascii_whitespace();
    let pattern = parse_pattern(words.next()?)?;
    let entry = match words.next()? {
        "nxdomain" => Entry::NoSuchName,
        "nodata" => Entry::NoAddress,
        "servfail" => Entry::ServerFailure,
        "timeout" => Entry::Silence,
        address => {
            let address: IpAddr = address.parse().ok()?;
            let port: u16 = words.next()?.parse().ok()?;
            Entry::At(SocketAddr::new(address, port))
        }
    };
    (words.next().is_none()).then_some((pattern, entry))
}

fn parse_pattern(word: &str) -> Option<Pattern> {
    let Some(parent) = word.strip_prefix("*.") else {
        return Some(Pattern::Exact(Host::parse(word).ok()?.as_str().into()));
    };
    // A parent may be a single label, such as `*.test`, so it is parsed with a label in front.
    let below = Host::parse(&format!("x.{parent}")).ok()?;
    Some(Pattern::Below(below.as_str().strip_prefix("x.")?.into()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn check(text: &str, name: &str, expect: Option<&str>) {
        let (names, _) = Names::parse(text.as_bytes());
        let found = names.look_up(&Host::parse(name).unwrap());
        let shown = found.map(|entry| match entry {
            Entry::At(at) => at.to_string(),
            other => format!("{other:?}"),
        });
        assert_eq!(shown.as_deref(), expect, "{name} in {text:?}");
    }

    #[test]
    fn the_last_match_wins_be_it_exact_or_a_wildcard() {
        let text = "a.lab.test 127.0.0.1 8443 # one\n*.lab.test 127.0.0.2 1\n\nB.lab.test. ::1 2\n*.test nxdomain\nc.lab.test servfail";
        check(text, "b.lab.test", Some("NoSuchName"));
        check(text, "c.lab.test", Some("ServerFailure"));
        check(text, "deep.d.other.test", Some("NoSuchName"));
        check(text, "lab.example", None);
        check(
            "*.lab.test 127.0.0.2 1\na.lab.test ::1 2",
            "a.lab.test",
            Some("[::1]:2"),
        );
        check(
            "a.lab.test ::1 2\n*.lab.test 127.0.0.2 1",
            "a.lab.test",
            Some("127.0.0.2:1"),
        );
        check("*.lab.test 127.0.0.2 1", "lab.test", None);
        check("*.lab.test 127.0.0.2 1", "notlab.test", None);
    }

    #[test]
    fn bad_lines_are_skipped_and_counted() {
        let text = b"a.test 127.0.0.1\na.test 127.0.0.1 99999\na.test nope 1\n\xff\xfe 1 2\na.test 127.0.0.1 1 2\na..test nxdomain\n* nxdomain\n\
            # fine\nb.test 127.0.0.1 7\r\n";
        let (names, bad_lines) = Names::parse(text);
        assert_eq!((names.len(), bad_lines), (1, 7));
        assert_eq!(
            names.look_up(&Host::parse("b.test").unwrap()),
            Some(Entry::At("127.0.0.1:7".parse().unwrap()))
        );
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_missing_one_is_our_own_trouble() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        let host = Host::parse("a.lab.test").unwrap();
        let mut file = NamesFile::new(path.clone());
        assert!(matches!(file.look_up(&host), Err(NamesFileError::Read(_))));
        std::fs::write(&path, "a.lab.test nodata").unwrap();
        assert_eq!(file.look_up(&host).unwrap(), Some(Entry::NoAddress));
        let mut temporary = tempfile::NamedTempFile::new_in(directory.path()).unwrap();
        temporary.write_all(b"a.lab.test timeout").unwrap();
        temporary.persist(&path).unwrap();
        assert_eq!(file.look_up(&host).unwrap(), Some(Entry::Silence));
        std::fs::remove_file(&path).unwrap();
        assert!(file.look_up(&host).is_err());
    }

    #[test]
    fn a_file_over_its_bound_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(FILE_BYTES_MAX + 1).unwrap();
        let mut names = NamesFile::new(file.path().to_owned());
        let host = Host::parse("a.lab.test").unwrap();
        assert!(matches!(
            names.look_up(&host),
            Err(NamesFileError::TooLarge)
        ));
    }

    #[test]
    fn ten_thousand_names_are_looked_up_by_hash() {
        let text: String = (0..10_000)
            .map(|index| format!("n{index}.crowd.test 127.0.0.1 {}\n", index % 60_000 + 1))
            .collect();
        check(&text, "n9999.crowd.test", Some("127.0.0.1:10000"));
        check(&text, "n10000.crowd.test", None);
    }
}
