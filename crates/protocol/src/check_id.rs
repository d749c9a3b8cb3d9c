//! The id of a check.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The id of one check: 32 lower-case hexadecimal digits, 128 random bits.
///
/// It names a directory and a label. It can't be guessed: in rootless engines nothing but this id
/// separates the directories of the egress volume.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckId(Box<str>);

#[derive(Debug, Error, PartialEq, Eq)]
#[error("a check id is 32 lower-case hexadecimal digits")]
pub struct CheckIdError;

impl CheckId {
    /// An id of 128 random bits, which the caller reads from the operating system.
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}").into_boxed_str())
    }

    /// Parses an id. Its form makes an id safe as a path component.
    pub fn parse(text: &str) -> Result<Self, CheckIdError> {
        let valid = text.len() == 32
            && text
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
        ] {
            assert_eq!(CheckId::parse(text), Err(CheckIdError), "{text}");
        }
        assert_eq!(
            CheckId::parse(CheckId::from_random(7).as_str()),
            Ok(CheckId::from_random(7))
        );
    }
}
