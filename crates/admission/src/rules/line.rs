//! One line of a rules file.

use thiserror::Error;

use super::{KeyHash, Limit, ListPlace, Public};
use crate::domain::{DomainName, DomainNameError};

/// Longest path that a system opens, in bytes (Linux's `PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// What names the census's own list instead of a file.
pub(super) const DEFAULT_LIST: &str = "default";

/// What a line says.
pub(super) enum Rule {
    Key(KeyHash, Limit),
    Domain(DomainName, Limit),
    Public(Public),
}

/// What is wrong with a line. The text is a sentence about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
    /// CR elsewhere than before LF.
    #[error("it holds a carriage return; end lines with LF or CR LF")]
    CarriageReturn,
    /// Bytes before the comment that are no text.
    #[error("it is not UTF-8")]
    NotText,
    /// Not three fields.
    #[error(
        "it has {found} field(s) and not three: `key HEX LIMIT`, `domain NAME LIMIT` or `public FILE LIMIT`"
    )]
    Fields {
        /// How many there are.
        found: usize,
    },
    /// Another first field than the three words, or one of them in capitals.
    #[error("it begins with none of `key`, `domain` and `public`")]
    Keyword,
    /// No limit.
    #[error("its limit is no decimal number from 0 to {}", Limit::MAX)]
    Limit,
    /// `key` with something else than a hash.
    #[error("its key is not 64 hexadecimal digits, the SHA-256 of a public key")]
    Key,
    /// `domain` with something that no name can be.
    #[error("no name matches its domain: {0}")]
    Domain(DomainNameError),
    /// `domain` with a name's beginning that means "and all below".
    #[error(
        "its domain begins with a dot or `*.`, but a line covers all names below its domain already; leave it out"
    )]
    AllBelow,
    /// `public` with something that no file can be called.
    #[error("its file has a name that no file can have")]
    File,
    /// The key or the domain has a line already.
    #[error("line {first} has the same item; keep one of them")]
    Twice {
        /// The number of that line.
        first: usize,
    },
    /// There is a `public` line already.
    #[error("line {first} is a `public` line already; keep one of them")]
    SecondPublic {
        /// The number of that line.
        first: usize,
    },
}

impl Rule {
    /// What the line says; nothing when it is empty or a comment.
    pub(super) fn parse(line: &[u8]) -> Result<Option<Self>, Problem> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Where other programs end lines so, the rest of a file would be one comment.
        if line.contains(&b'\r') {
            return Err(Problem::CarriageReturn);
        }
        // Comments are cut before the text is looked at: they may be in any encoding.
        let line = line.split(|&byte| byte == b'#').next().unwrap_or_default();
        let line = str::from_utf8(line).map_err(|_position| Problem::NotText)?;
        let mut fields = line.split_whitespace();
        let (keyword, item, limit) =
            match (fields.next(), fields.next(), fields.next(), fields.count()) {
                (None, ..) => return Ok(None),
                (Some(keyword), Some(item), Some(limit), 0) => (keyword, item, limit),
                _ => {
                    let found = line.split_whitespace().count();
                    return Err(Problem::Fields { found });
                }
            };
        let read = match keyword {
            "key" => key,
            "domain" => domain,
            "public" => public,
            _ => return Err(Problem::Keyword),
        };
        let limit = Limit::parse(limit).ok_or(Problem::Limit)?;
        read(item, limit).map(Some)
    }
}

fn key(item: &str, limit: Limit) -> Result<Rule, Problem> {
    let key = KeyHash::parse(item).ok_or(Problem::Key)?;
    Ok(Rule::Key(key, limit))
}

fn domain(item: &str, limit: Limit) -> Result<Rule, Problem> {
    let is_all_below = item.len() > 1 && item.starts_with('.') || item.starts_with("*.");
    match DomainName::parse(item) {
        Ok(domain) => Ok(Rule::Domain(domain, limit)),
        Err(_) if is_all_below => Err(Problem::AllBelow),
        Err(why) => Err(Problem::Domain(why)),
    }
}

fn public(item: &str, limit: Limit) -> Result<Rule, Problem> {
    let list = if item == DEFAULT_LIST {
        ListPlace::Default
    } else if item.len() > PATH_BYTES_MAX || item.contains('\0') {
        return Err(Problem::File);
    } else {
        ListPlace::File(item.into())
    };
    Ok(Rule::Public(Public { list, limit }))
}
