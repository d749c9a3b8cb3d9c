//! The names whose TXT records owners publish, and the bounds on the records that are kept.
//!
//! All other names are rejected, so that nobody can use the gateway to read DNS at large.

use std::fmt;

use protocol::Host;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A label that owners publish records under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    Own,
    Sigsum,
    SigsumOld,
}

impl Label {
    pub const ALL: [Self; 3] = [Self::Own, Self::Sigsum, Self::SigsumOld];

    /// The label as it is written in a name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "_fedicensus",
            Self::Sigsum => "_sigsum_v1",
            Self::SigsumOld => "_sigsum_v0",
        }
    }
}

/// Records kept of an answer. Ten are tried, and an owner who publishes more should learn that.
pub const RECORDS_MAX: usize = 16;

/// Bytes kept of a record: a key has 64, a wish less. A longer record is neither, and remains so
/// when it is cut.
pub const RECORD_BYTES_MAX: usize = 128;

/// Longest name in DNS, in bytes, without the trailing dot (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// A name whose TXT records can be looked up: a [`Label`] before a host name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TextName {
    label: Label,
    domain: Host,
}

/// Why the TXT records of a name are not looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TextNameError {
    #[error("its first label is not one under which owners publish records")]
    Label,
    #[error("the rest after its first label is not a host name")]
    Domain,
    #[error("it is longer than 253 bytes")]
    TooLong,
}

impl TextName {
    pub fn parse(text: &str) -> Result<Self, TextNameError> {
        let (first, rest) = text.split_once('.').ok_or(TextNameError::Label)?;
        let label = Label::ALL
            .into_iter()
            .find(|label| label.as_str() == first)
            .ok_or(TextNameError::Label)?;
        let domain = Host::parse(rest).map_err(|_no_host| TextNameError::Domain)?;
        let bytes = label
            .as_str()
            .len()
            .saturating_add(1)
            .saturating_add(domain.as_str().len());
        if bytes > NAME_BYTES_MAX {
            return Err(TextNameError::TooLong);
        }
        Ok(Self { label, domain })
    }

    pub fn label(&self) -> Label {
        self.label
    }

    /// The host name after the label.
    pub fn domain(&self) -> &Host {
        &self.domain
    }
}

impl fmt::Display for TextName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.label.as_str(), self.domain)
    }
}

impl TryFrom<String> for TextName {
    type Error = TextNameError;
    fn try_from(text: String) -> Result<Self, TextNameError> {
        Self::parse(&text)
    }
}

impl From<TextName> for String {
    fn from(name: TextName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // S20
    fn names_without_owners_records_are_never_looked_up() {
        let check = |text: &str, expect: Result<&str, TextNameError>| {
            assert_eq!(
                TextName::parse(text).map(|name| name.to_string()),
                expect.map(str::to_owned),
                "{text:?}"
            );
        };
        check("_fedicensus.a.example", Ok("_fedicensus.a.example"));
        check("_sigsum_v0.A.example.", Ok("_sigsum_v0.a.example"));
        check(
            "_sigsum_v1.bücher.example",
            Ok("_sigsum_v1.xn--bcher-kva.example"),
        );
        check("a.example", Err(TextNameError::Label));
        check("_dmarc.a.example", Err(TextNameError::Label));
        check("_FEDICENSUS.a.example", Err(TextNameError::Label));
        check("_fedicensus", Err(TextNameError::Label));
        check("_fedicensus.localhost", Err(TextNameError::Domain));
        check(
            "_fedicensus._fedicensus.a.example",
            Err(TextNameError::Domain),
        );
        check("_fedicensus.192.0.2.1", Err(TextNameError::Domain));
        let long = format!(
            "_fedicensus.{0}.{0}.{0}.{1}.example",
            "a".repeat(63),
            "b".repeat(45)
        );
        check(&long, Err(TextNameError::TooLong));
    }
}
