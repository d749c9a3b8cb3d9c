//! Parses the operator's file of sources into [`Source`]s.
//!
//! The file is TOML with `[[source]]` tables. All errors are returned together, each with its line:
//! unknown keys, values out of bounds, two sources with the same name or address, two suffix lists.
//! One error rejects the whole file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::limits::PEERS_MAX;
use protocol::{Host, ListFormat, ListPath, escaped};
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Source, SourceName};
use crate::ground::input_file::{self, FileError};

/// The file's name in errors.
const WHAT: &str = "sources";

/// Longest file in bytes: a hundred sources with comments take some 30 KiB.
pub const FILE_BYTES_MAX: usize = 64 * 1024;

/// Most sources. Some dozen lists are worth reading; each costs a container and a request to
/// another server.
pub const SOURCES_MAX: usize = 100;

/// Least time between two readings, in hours: lists are updated once a day or less often, and their
/// owners pay for each reading.
pub const INTERVAL_HOURS_MIN: u64 = 6;

/// Longest time between two readings, in hours: a year. A longer time is more likely a typing
/// error.
pub const INTERVAL_HOURS_MAX: u64 = 366 * 24;

/// Default hours between two readings.
pub const INTERVAL_HOURS: u64 = 24;

/// Default for names taken from one reading: twice all known names of the Fediverse.
pub const NAMES_MAX: u32 = 100_000;

/// Most bytes of a value that an error shows.
const SHOWN_BYTES_MAX: usize = 100;

const FORMATS: &str = "lines, json, ndjson, csv or suffixes";

const HOUR_S: u64 = 3600;

const KEYS: &str = "name, url, format, interval_hours and limit";

/// Why the sources can't be used.
#[derive(Debug, Error)]
pub enum SourcesError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{WHAT} {}: is larger than {FILE_BYTES_MAX} bytes; is this the right file?", .0.display())]
    TooLarge(PathBuf),
    #[error("{}", Problems(.path, .problems))]
    Wrong {
        path: PathBuf,
        problems: Vec<Problem>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub text: String,
}

struct Problems<'a>(&'a Path, &'a [Problem]);

impl fmt::Display for Problems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.1.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            let (path, line, text) = (self.0.display(), problem.line, &problem.text);
            write!(f, "{end}{WHAT} {path}:{line}: {text}")?;
        }
        Ok(())
    }
}

/// The sources in the file at `path`.
pub fn read(path: &Path) -> Result<Vec<Source>, SourcesError> {
    let bytes = input_file::read(WHAT, path, FILE_BYTES_MAX)?;
    parse(&bytes, path)
}

/// The sources in these bytes, which were read from the file at `path`.
///
/// # Errors
/// There are more than [`FILE_BYTES_MAX`] bytes, or entries are wrong; all of them are named.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Vec<Source>, SourcesError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(SourcesError::TooLarge(path.to_owned()));
    }
    let wrong = |mut problems: Vec<Problem>| {
        problems.sort_by_key(|problem| problem.line);
        SourcesError::Wrong {
            path: path.to_owned(),
            problems,
        }
    };
    let text = str::from_utf8(bytes).map_err(|position| {
        let line = line_at(bytes, position.valid_up_to());
        let text = "is not UTF-8".to_owned();
        wrong(vec![Problem { line, text }])
    })?;
    let table = DeTable::parse(text).map_err(|error| {
        let line = line_at(bytes, error.span().map_or(0, |span| span.start));
        let text = error.message().to_owned();
        wrong(vec![Problem { line, text }])
    })?;
    let mut reader = Reader {
        bytes,
        problems: Vec::new(),
    };
    let sources = reader.sources(table.get_ref());
    if reader.problems.is_empty() {
        Ok(sources)
    } else {
        Err(wrong(reader.problems))
    }
}

fn line_at(bytes: &[u8], offset: usize) -> usize {
    let before = bytes.iter().take(offset);
    before.filter(|&&byte| byte == b'\n').count() + 1
}

/// A parser that continues after an error, so that all errors are reported at once.
struct Reader<'a> {
    bytes: &'a [u8],
    problems: Vec<Problem>,
}

/// A source as far as it was parsed; each missing value has been noted as a problem.
#[derive(Default)]
struct Draft {
    name: Option<SourceName>,
    address: Option<(Host, ListPath)>,
    format: Option<ListFormat>,
    interval_hours: Option<u64>,
    names_max: Option<u32>,
}

impl Reader<'_> {
    fn wrong(&mut self, offset: usize, text: impl Into<String>) {
        self.problems.push(Problem {
            line: line_at(self.bytes, offset),
            text: text.into(),
        });
    }

    fn sources(&mut self, table: &DeTable<'_>) -> Vec<Source> {
        let mut sources = Vec::new();
        for (key, value) in table {
            if &**key.get_ref() != "source" {
                let shown = shown(key.get_ref());
                self.wrong(
                    key.span().start,
                    format!("`{shown}` is unknown; sources are written as `[[source]]`"),
                );
                continue;
            }
            let DeValue::Array(entries) = value.get_ref() else {
                self.wrong(
                    value.span().start,
                    "sources are written as `[[source]]`, with two brackets",
                );
                continue;
            };
            if let Some(over) = entries.get(SOURCES_MAX) {
                self.wrong(
                    over.span().start,
                    format!("there are more than {SOURCES_MAX} sources"),
                );
                continue;
            }
            for entry in entries.iter() {
                if let Some(source) = self.source(entry) {
                    self.compare(entry.span().start, &source, &sources);
                    sources.push(source);
                }
            }
        }
        sources
    }

    /// Notes what the source shares with another, if no two may share it.
    fn compare(&mut self, offset: usize, source: &Source, others: &[Source]) {
        for other in others {
            if other.name == source.name {
                self.wrong(
                    offset,
                    format!("there is another source named `{}`", source.name),
                );
            }
            if other.host == source.host && other.path == source.path {
                self.wrong(offset, format!("source `{}` has the same url", other.name));
            }
            let both = [other.format, source.format];
            if both == [ListFormat::Suffixes; 2] {
                self.wrong(
                    offset,
                    format!(
                        "source `{}` is already a list of public suffixes; only one is allowed",
                        other.name
                    ),
                );
            }
        }
    }

    fn source(&mut self, entry: &Spanned<DeValue<'_>>) -> Option<Source> {
        let begin = entry.span().start;
        let DeValue::Table(table) = entry.get_ref() else {
            self.wrong(
                begin,
                "sources are written as `[[source]]`, with two brackets",
            );
            return None;
        };
        let before = self.problems.len();
        let mut draft = Draft::default();
        for (key, value) in table {
            self.member(&mut draft, key.get_ref(), key.span().start, value);
        }
        if self.problems.len() == before {
            for (is_missing, key) in [
                (draft.name.is_none(), "name"),
                (draft.address.is_none(), "url"),
                (draft.format.is_none(), "format"),
            ] {
                if is_missing {
                    self.wrong(begin, format!("a source lacks its `{key}`"));
                }
            }
        }
        if self.problems.len() > before {
            return None;
        }
        let (host, path) = draft.address?;
        let hours = draft.interval_hours.unwrap_or(INTERVAL_HOURS);
        Some(Source {
            name: draft.name?,
            host,
            path,
            format: draft.format?,
            interval: Duration::from_secs(hours.saturating_mul(HOUR_S)),
            names_max: draft.names_max.unwrap_or(NAMES_MAX),
        })
    }

    fn member(
        &mut self,
        draft: &mut Draft,
        key: &str,
        offset: usize,
        value: &Spanned<DeValue<'_>>,
    ) {
        let at = value.span().start;
        let outcome = match key {
            "name" => text(value).and_then(|text| {
                draft.name = SourceName::parse(text);
                let most = SourceName::BYTES_MAX;
                draft.name.as_ref().map(|_| ()).ok_or(format!(
                    "must be 1 to {most} letters, digits, `-`, `_` or `.`"
                ))
            }),
            "url" => text(value).and_then(|text| {
                draft.address = Some(address(text)?);
                Ok(())
            }),
            "format" => text(value).and_then(|text| {
                draft.format = Some(format_of(text)?);
                Ok(())
            }),
            "interval_hours" => {
                number(value, INTERVAL_HOURS_MIN, INTERVAL_HOURS_MAX).map(|hours| {
                    draft.interval_hours = Some(hours);
                })
            }
            "limit" => number(value, 1, PEERS_MAX).map(|names| {
                draft.names_max = Some(u32::try_from(names).unwrap_or(u32::MAX));
            }),
            unknown => {
                let shown = shown(unknown);
                self.wrong(offset, format!("`{shown}` is unknown; a source has {KEYS}"));
                return;
            }
        };
        if let Err(problem) = outcome {
            self.wrong(at, format!("`{key}` {problem}"));
        }
    }
}

fn shown(text: &str) -> String {
    escaped(text.as_bytes(), SHOWN_BYTES_MAX)
}

fn text<'a>(value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, String> {
    let text = value.get_ref().as_str();
    text.ok_or_else(|| "must be a text in quotes".to_owned())
}

fn number(value: &Spanned<DeValue<'_>>, least: u64, most: u64) -> Result<u64, String> {
    let written = value.get_ref().as_integer();
    let number =
        written.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("must be a whole number from {least} to {most}"))
}

fn format_of(text: &str) -> Result<ListFormat, String> {
    match text.parse::<ListFormat>() {
        Ok(ListFormat::Proof) => Err(format!(
            "`proof` is not a format of a list, but of an owner's file, which is read when its owner asks for that; a list is {FORMATS}"
        )),
        Ok(format) => Ok(format),
        Err(protocol::list::UnknownFormat) => Err(format!(
            "`{}` is not a format of a list: {FORMATS}",
            shown(text)
        )),
    }
}

/// Parses `https://HOST/PATH`: lists are read over port 443 of a named host, like everything else.
fn address(text: &str) -> Result<(Host, ListPath), String> {
    let refused = |problem: String| format!("`{}` {problem}", shown(text));
    let rest = text
        .strip_prefix("https://")
        .ok_or_else(|| refused("must begin with `https://`".to_owned()))?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = Host::parse(host).map_err(|error| {
        refused(format!(
            "has no valid host (without a port or a user): {error}"
        ))
    })?;
    let path = if path.is_empty() { "/" } else { path };
    let path =
        ListPath::parse(path).map_err(|error| refused(format!("has a path that {error}")))?;
    Ok((host, path))
}

#[cfg(test)]
mod tests;
