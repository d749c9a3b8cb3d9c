//! The log of all requests to the lab, `requests.ndjson`, so that a test can show what was
//! requested and what was not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use protocol::escaped;
use serde::{Deserialize, Serialize};

/// Largest log: about 400 000 requests. Beyond it the lab continues without logging.
pub const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes of a path or user agent that are kept.
const TEXT_BYTES_MAX: usize = 200;

/// A line of the log: a request, or a connection whose ClientHello named a persona (`method`
/// empty).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Milliseconds since the lab's start.
    pub ms: u64,
    pub host: String,
    /// The method. Empty for the connection itself.
    pub method: String,
    /// The path without its query, escaped.
    pub path: String,
    pub agent: String,
}

#[derive(Debug)]
pub(crate) struct RequestLog {
    begun: Instant,
    file: Mutex<Option<(File, u64)>>,
}

impl RequestLog {
    /// A log in a new file. `None` logs nothing.
    pub(crate) fn new(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(File::create).transpose()?;
        Ok(Self {
            begun: Instant::now(),
            file: Mutex::new(file.map(|file| (file, 0))),
        })
    }

    /// Adds a line, if there is room. If the log can't be written, it ends and the lab continues.
    pub(crate) fn add(&self, host: &str, method: &str, path: &str, agent: &str) {
        let entry = Entry {
            ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            host: host.to_owned(),
            method: escaped(method.as_bytes(), 20),
            path: escaped(path.as_bytes(), TEXT_BYTES_MAX),
            agent: escaped(agent.as_bytes(), TEXT_BYTES_MAX),
        };
        let Ok(mut line) = serde_json::to_vec(&entry) else {
            return;
        };
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((open, written)) = file.as_mut() else {
            return;
        };
        *written += line.len() as u64;
        if *written > LOG_BYTES_MAX || open.write_all(&line).is_err() {
            *file = None;
        }
    }
}

/// All lines of the log, in order. An incomplete last line ends the reading.
pub fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for line in BufReader::new(File::open(path)?.take(LOG_BYTES_MAX)).lines() {
        let Ok(entry) = serde_json::from_str(&line?) else {
            break;
        };
        entries.push(entry);
    }
    Ok(entries)
}

/// The requested paths of each host. A host that was only connected to has an empty set.
///
/// # Errors
/// Fails if the file can't be read. An incomplete last line ends the reading.
pub fn asked(path: &Path) -> io::Result<BTreeMap<String, BTreeSet<String>>> {
    let mut asked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in entries(path)? {
        let paths = asked.entry(entry.host).or_default();
        if !entry.method.is_empty() {
            paths.insert(entry.path);
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_what_was_asked_of_whom() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("requests.ndjson");
        let log = RequestLog::new(Some(&path)).unwrap();
        log.add("a.test", "", "", "");
        log.add("b.test", "GET", "/x\n", "me");
        let asked = asked(&path).unwrap();
        assert!(asked["a.test"].is_empty());
        assert!(asked["b.test"].contains("/x\\x0a"));
    }
}
