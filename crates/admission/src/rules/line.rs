//! One line of a rules file.

use thiserror::Error;

use super::{KeyHash, Limit, ListPlace, Public};
use crate::domain::{DomainName, DomainNameError};

/// Longest path that a system opens, in bytes (Linux's `PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// The word for the census's own list in place of a file.
pub(super) const DEFAULT_LIST: &str = "default";

pub(super) enum Rule {
    Key(KeyHash, Limit),
    Domain(DomainName, Limit),
    Public(Public),
}

/// What is wrong with a line. The text is a sentence about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
    #[error("it holds a carriage return; end lines with LF or CR LF")]
    CarriageReturn,
    #[error("it is not UTF-8")]
    NotText,
    #[error(
        "it has {found} field(s) instead of three: `key HEX LIMIT`, `domain NAME LIMIT` or `public FILE LIMIT`"
    )]
    Fields { found: usize },
    /// The first field is none of the three keywords, or is in capitals.
    #[error("it begins with none of `key`, `domain` and `public`")]
    Keyword,
    #[error("its limit is not a decimal number from 0 to {}", Limit::MAX)]
    Limit,
    #[error("its key is not 64 hexadecimal digits, the SHA-256 of a public key")]
    Key,
    #[error("no name matches its domain: {0}")]
    Domain(DomainNameError),
    /// The item of `domain` begins with a prefix that means "and all below".
    #[error(
        "its domain begins with a dot or `*.`, but a line covers all names below its domain already; leave it out"
    )]
    AllBelow,
    #[error("its file has an impossible name")]
    File,
    #[error("line {first} has the same item; keep one of them")]
    Twice { first: usize },
    #[error("line {first} is a `public` line already; keep one of them")]
    SecondPublic { first: usize },
}

impl Rule {
    /// Parses a line. `None` if it is empty or a comment.
    pub(super) fn parse(line: &[u8]) -> Result<Option<Self>, Problem> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // A program that ends lines with CR alone would turn the rest of a file into one comment.
        if line.contains(&b'\r') {
            return Err(Problem::CarriageReturn);
        }
        // Comments are cut off before the text is decoded: they may be in any encoding.
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
