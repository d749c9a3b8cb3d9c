//! The list of public suffixes: where one owner's names end and the next one's begin.
//!
//! In: a name; perhaps the bytes of a file in the format of publicsuffix.org. Out: the name's public suffix and whether the list names it.
//! Refused: a file that is too big or of another format. What replaces the census's own list has to be the whole list too: one that lacks half of
//! its rules would park half of the census. Admission rules may go by an excerpt: whatever it lacks is refused, or shares a count.

mod table;

use std::fmt;
use std::path::{Path, PathBuf};

use protocol::{Host, escaped};
use psl::Psl;
use thiserror::Error;

use self::table::{Flaw, Table, lines, rules};
pub use self::table::{RULE_BYTES_MAX, RULES_MAX};
use crate::domain::DomainName;

/// Longest file. The list of 2026 has 0.33 MiB, so it may grow sixfold.
pub const FILE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Fewest rules in the section of ICANN's domains. There are over 1 400 top-level domains alone; fewer than a thousand rules are a piece of the list.
pub const ICANN_RULES_MIN: usize = 1000;

/// The lines that the list's two sections stand between, in this order. The last of them proves that the file was not cut off.
const MARKS: [&str; 4] = [
    "===BEGIN ICANN DOMAINS===",
    "===END ICANN DOMAINS===",
    "===BEGIN PRIVATE DOMAINS===",
    "===END PRIVATE DOMAINS===",
];

/// A list of public suffixes.
#[derive(PartialEq, Eq)]
pub struct Suffixes(List);

#[derive(PartialEq, Eq)]
enum List {
    /// The one of the crate `psl`, as code. Embedding the text instead would mean a copy of a file under another licence in this tree that
    /// somebody has to remember to renew, where a dependency's new version is noticed by tools. It overlooks a wildcard where a longer rule
    /// stands beside it, for two dozen names of other people's machinery in the list of 2026: these count as one owner's.
    Compiled,
    /// The operator's.
    Loaded {
        all: Table,
        /// The rules before the private section; none when there are none.
        icann: Option<Table>,
    },
}

/// A name's public suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suffix<'name> {
    /// The suffix, without a leading dot.
    pub name: &'name str,
    /// A rule of the list names it. Otherwise the last label was taken, since there is no better guess.
    pub is_known: bool,
}

/// Why a file holds no list of public suffixes.
#[derive(Debug, Error)]
pub enum SuffixError {
    /// More than [`FILE_BYTES_MAX`].
    #[error(
        "public suffix list {}: is larger than {FILE_BYTES_MAX} bytes; the list of publicsuffix.org is far smaller, is this the right file?",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line that marks a section is missing or out of order.
    #[error(
        "public suffix list {}: the line `// {mark}` is missing or out of order; fetch the whole file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    NoMark {
        /// The file.
        path: PathBuf,
        /// The mark.
        mark: &'static str,
    },
    /// A rule longer than [`RULE_BYTES_MAX`].
    #[error(
        "public suffix list {}: line {line} holds a rule of more than {RULE_BYTES_MAX} bytes; fetch the file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    RuleTooLong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Fewer than [`ICANN_RULES_MIN`] rules.
    #[error(
        "public suffix list {}: holds {found} ICANN rules, fewer than {ICANN_RULES_MIN}; fetch the whole file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    TooFew {
        /// The file.
        path: PathBuf,
        /// Rules in the section of ICANN's domains.
        found: usize,
    },
    /// No text.
    #[error(
        "public suffix list {}: is not UTF-8; fetch the file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A line that is neither a comment nor a rule.
    #[error(
        "public suffix list {}: line {line} holds no rule: `{}`; mend it, or fetch the file from https://publicsuffix.org/list/ again",
        path.display(), escaped(rule.as_bytes(), RULE_BYTES_MAX)
    )]
    BadRule {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What stands there.
        rule: String,
    },
    /// More than [`RULES_MAX`].
    #[error(
        "public suffix list {}: holds more than {RULES_MAX} rules; the list of publicsuffix.org has far fewer, is this the right file?",
        path.display()
    )]
    TooMany {
        /// The file.
        path: PathBuf,
    },
    /// Comments at most.
    #[error("public suffix list {}: holds no rule; is this the right file?", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Why a name has no registered domain. The text is a sentence about the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoRegisteredDomain {
    /// Others register names below it.
    #[error("it is a public suffix, below which others register names")]
    PublicSuffix,
    /// No rule of the list covers it.
    #[error("no rule of the public suffix list covers it")]
    UnknownSuffix,
}

impl Suffixes {
    /// The compiled-in list. Costs nothing: it is code.
    pub fn compiled() -> Self {
        Self(List::Compiled)
    }

    /// The list in these bytes, which were read from the file at `path`, in the format of publicsuffix.org: the whole one, instead of the
    /// compiled-in list.
    ///
    /// # Errors
    /// When they are more than [`FILE_BYTES_MAX`] or not the whole list; see [`SuffixError`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, SuffixError> {
        let text = text(bytes, path)?;
        inspect(text, path)?;
        loaded(text, path)
    }

    /// The list in these bytes, which were read from the file at `path`: an excerpt of that of publicsuffix.org, or one that has nothing to do
    /// with it.
    ///
    /// # Errors
    /// When they are more than [`FILE_BYTES_MAX`], a line is no rule, or there is none; see [`SuffixError`].
    pub fn from_excerpt(bytes: &[u8], path: &Path) -> Result<Self, SuffixError> {
        loaded(text(bytes, path)?, path)
    }

    /// The public suffix of `host`, which may be the host itself.
    pub fn suffix<'host>(&self, host: &'host Host) -> Suffix<'host> {
        self.suffix_of_name(host.as_str())
    }

    /// The public suffix of `domain`, which may be the domain itself.
    pub fn suffix_of_domain<'domain>(&self, domain: &'domain DomainName) -> Suffix<'domain> {
        self.suffix_of_name(domain.as_str())
    }

    /// The registered domain of `domain`: its public suffix plus one label.
    ///
    /// # Errors
    /// When it has none.
    pub fn registered_domain<'domain>(
        &self,
        domain: &'domain DomainName,
    ) -> Result<&'domain str, NoRegisteredDomain> {
        let suffix = self.suffix_of_domain(domain);
        if !suffix.is_known {
            return Err(NoRegisteredDomain::UnknownSuffix);
        }
        // The first of the name's tails that are longer than the suffix, from the short end.
        domain
            .tails()
            .take_while(|tail| tail.len() > suffix.name.len())
            .last()
            .ok_or(NoRegisteredDomain::PublicSuffix)
    }

    /// Where `domain` lies below a suffix that is no registry's but some owner's, such as `github.io`, who hands out names below it for free: the
    /// registered domain of that owner by ICANN's rules alone. Nothing for all others.
    pub fn shared_suffix<'domain>(&self, domain: &'domain DomainName) -> Option<&'domain str> {
        let suffix = self.suffix_of_domain(domain);
        let icann = self.icann_suffix(domain.as_str())?;
        if !suffix.is_known || icann.len() >= suffix.name.len() {
            return None;
        }
        domain
            .tails()
            .take_while(|tail| tail.len() > icann.len())
            .last()
    }

    fn icann_suffix<'name>(&self, name: &'name str) -> Option<&'name str> {
        match &self.0 {
            List::Compiled => {
                // Each round goes on with a shorter name.
                let mut rest = Some(name);
                while let Some(name) = rest {
                    let suffix = psl::List.suffix(name.as_bytes())?;
                    let text = str::from_utf8(suffix.as_bytes()).ok()?;
                    match suffix.typ() {
                        Some(psl::Type::Icann) => {
                            return name.get(name.len().checked_sub(text.len())?..);
                        }
                        Some(psl::Type::Private) => {
                            rest = name
                                .get(name.len().checked_sub(text.len())?..)
                                .and_then(|suffix| suffix.split_once('.'))
                                .map(|(_, parent)| parent);
                        }
                        None => return None,
                    }
                }
                None
            }
            List::Loaded { icann, .. } => icann.as_ref()?.suffix(name),
        }
    }

    fn suffix_of_name<'name>(&self, name: &'name str) -> Suffix<'name> {
        let known = match &self.0 {
            // It hands back a tail of what it was given, so the text is there.
            List::Compiled => psl::List
                .suffix(name.as_bytes())
                .filter(psl::Suffix::is_known)
                .and_then(|suffix| str::from_utf8(suffix.as_bytes()).ok()),
            List::Loaded { all, .. } => all.suffix(name),
        };
        Suffix {
            name: known.unwrap_or_else(|| name.rsplit_once('.').map_or(name, |(_, last)| last)),
            is_known: known.is_some(),
        }
    }
}

impl fmt::Debug for Suffixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            List::Compiled => "Suffixes(compiled)",
            List::Loaded { .. } => "Suffixes(loaded)",
        })
    }
}

fn text<'bytes>(bytes: &'bytes [u8], path: &Path) -> Result<&'bytes str, SuffixError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(SuffixError::TooLarge {
            path: path.to_owned(),
        });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    str::from_utf8(bytes).map_err(|_position| SuffixError::NotText {
        path: path.to_owned(),
    })
}

fn loaded(text: &str, path: &Path) -> Result<Suffixes, SuffixError> {
    let path = || path.to_owned();
    let table = Table::parse(text).map_err(|flaw| match flaw {
        Flaw::RuleTooLong { line } => SuffixError::RuleTooLong { path: path(), line },
        Flaw::BadRule { line, rule } => SuffixError::BadRule {
            path: path(),
            line,
            rule,
        },
        Flaw::TooMany => SuffixError::TooMany { path: path() },
        Flaw::Empty => SuffixError::Empty { path: path() },
    })?;
    let private = lines(text).find(|(_, text)| is_mark(text, MARKS[2]));
    let icann = match private {
        // Every rule of it was read once already.
        Some((begin, _)) => Table::before(text, begin),
        None => None,
    };
    Ok(Suffixes(List::Loaded { all: table, icann }))
}

fn is_mark(line: &str, mark: &str) -> bool {
    line.trim_start()
        .strip_prefix("//")
        .is_some_and(|comment| comment.trim() == mark)
}

/// Sees to it that this is the whole list: the marks are there, and rules enough.
fn inspect(text: &str, path: &Path) -> Result<(), SuffixError> {
    let path = || path.to_owned();
    let mut lines = lines(text);
    let mut line_of = |mark| {
        let found = lines.find_map(|(line, text)| is_mark(text, mark).then_some(line));
        found.ok_or_else(|| SuffixError::NoMark { path: path(), mark })
    };
    let [begin, end, ..]: [usize; 4] = [
        line_of(MARKS[0])?,
        line_of(MARKS[1])?,
        line_of(MARKS[2])?,
        line_of(MARKS[3])?,
    ];
    let found = rules(text)
        .filter(|(line, _)| (begin..end).contains(line))
        .count();
    if found < ICANN_RULES_MIN {
        return Err(SuffixError::TooFew {
            path: path(),
            found,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
