//! The id of a check.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::egress::Way;

/// Begins the ids of checks that take the second way out.
const SECOND: char = 's';

/// The second gateway's folder in the egress volume.
pub const SECOND_FOLDER: &str = "second";

/// The id of one check: 32 lower-case hexadecimal digits, 128 random bits, less the first digit's
/// four for the second way.
///
/// It names a directory and a label. It can't be guessed: in rootless engines nothing but this id
/// separates the directories of the egress volume.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckId(Box<str>);

#[derive(Debug, Error, PartialEq, Eq)]
#[error("a check id is 32 lower-case hexadecimal digits, the first of which may be `s`")]
pub struct CheckIdError;

impl CheckId {
    /// An id of 128 random bits, which the caller reads from the operating system.
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}").into_boxed_str())
    }

    /// The id of a check that takes this way out. The second way's ids begin with `s`.
    #[must_use]
    pub fn by(self, way: Way) -> Self {
        match (way, self.0.get(1..)) {
            (Way::Second, Some(rest)) => Self(format!("{SECOND}{rest}").into_boxed_str()),
            (Way::First | Way::Second, _) => self,
        }
    }

    /// The way out that the check takes.
    pub fn way(&self) -> Way {
        if self.0.starts_with(SECOND) {
            Way::Second
        } else {
            Way::First
        }
    }

    /// The check's folder, relative to the egress volume: each gateway has a folder of its own.
    pub fn folder(&self) -> String {
        match self.way() {
            Way::First => self.0.to_string(),
            Way::Second => format!("{SECOND_FOLDER}/{self}"),
        }
    }

    /// Parses an id. Its form makes an id safe as a path component.
    pub fn parse(text: &str) -> Result<Self, CheckIdError> {
        let digits = text.strip_prefix(SECOND).unwrap_or(text);
        let valid = text.len() == 32
            && digits
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if valid {
            Ok(Self(text.into()))
        } else {
            Err(CheckIdError)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CheckId {
    type Error = CheckIdError;
    fn try_from(text: String) -> Result<Self, CheckIdError> {
        Self::parse(&text)
    }
}

impl From<CheckId> for String {
    fn from(id: CheckId) -> Self {
        id.0.into()
    }
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_a_path() {
        for text in [
            "",
            "../../../../../../../../../../etc",
            "0123456789ABCDEF0123456789abcdef",
            "0123456789abcdef0123456789abcde/",
            "ss23456789abcdef0123456789abcdef",
            "0s23456789abcdef0123456789abcdef",
        ] {
            assert_eq!(CheckId::parse(text), Err(CheckIdError), "{text}");
        }
        assert_eq!(
            CheckId::parse(CheckId::from_random(7).as_str()),
            Ok(CheckId::from_random(7))
        );
    }

    #[test]
    fn an_id_names_its_way_out_and_the_folder_there() {
        let first = CheckId::from_random(7);
        assert_eq!(first.folder(), "00000000000000000000000000000007");
        assert_eq!(first.clone().by(Way::First), first);
        let second = first.by(Way::Second);
        assert_eq!(second.folder(), "second/s0000000000000000000000000000007");
        assert_eq!(CheckId::parse(second.as_str()).unwrap().way(), Way::Second);
    }
}
