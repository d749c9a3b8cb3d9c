//! Sigsum's form, which allows the use of Sigsum's own tools (`sigsum-token create`, `sigsum-submit
//! -a -d`).
//!
//! It takes the value of the header `Sigsum-Token`, which is `DOMAIN SP HEX`, and returns the
//! domain that vouches. It rejects every other syntax.
//!
//! The token signs the key of a log, here the census's in its place, and neither a host, nor a
//! purpose, nor a time, nor even the domain. Anyone who has seen a token can use it as long as the
//! key is published. Therefore it is valid only for submissions, within the submitter's limits, and
//! never for an owner's decision.

use std::fmt;

use protocol::Host;
use thiserror::Error;

use crate::domain::{self, DomainError, Submitter, TestDomain};
use crate::key::{KEY_BYTES, LogKey, SIGNATURE_BYTES, SecretKey, Signature};
use crate::lookup::Form;
use crate::record::{Candidates, NotSigned};

pub const HEADER: &str = "Sigsum-Token";

/// Longest value in bytes: a name as U-labels (1012), a space, a signature.
pub const VALUE_BYTES_MAX: usize = 1012 + 1 + 2 * SIGNATURE_BYTES;

/// The prefix of the signed bytes, which no other signature of the same key has.
const NAMESPACE: &[u8; 26] = b"sigsum.org/v1/submit-token";

/// Number of signed bytes: the namespace, a zero byte, the log's key.
const SIGNED_BYTES: usize = NAMESPACE.len() + 1 + KEY_BYTES;

/// A token of Sigsum's form, not yet verified; see [`SigsumToken::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigsumToken {
    /// The domain that allegedly vouches.
    pub domain: Host,
    pub signature: Signature,
}

/// Why a header's value is not a token of Sigsum's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SigsumError {
    #[error("the token is longer than {VALUE_BYTES_MAX} bytes, and can't be one")]
    TooLong,
    #[error("the token is not a domain and a signature with exactly one space between them")]
    Shape,
    #[error("the token's domain is empty")]
    NoDomain,
    #[error("the token's domain {0}")]
    Domain(#[from] DomainError),
    #[error("the token's signature is not 128 hex digits")]
    Signature,
}

impl SigsumToken {
    /// Parses a header's value. `None` for an empty one, which counts as a missing header. Of
    /// several headers the first counts.
    pub fn parse(value: &[u8], test: TestDomain) -> Result<Option<Self>, SigsumError> {
        if value.is_empty() {
            return Ok(None);
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(SigsumError::TooLong);
        }
        let mut parts = value.split(|&byte| byte == b' ');
        let (Some(domain), Some(digits), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(SigsumError::Shape);
        };
        if domain.is_empty() {
            return Err(SigsumError::NoDomain);
        }
        let signature = Signature::from_hex(digits).ok_or(SigsumError::Signature)?;
        Ok(Some(Self {
            domain: domain::parse(domain, Form::Sigsum, test)?,
            signature,
        }))
    }

    /// Makes the token of `domain` for the log, or the census, with this key.
    pub fn sign(domain: Host, log_key: LogKey, key: &SecretKey) -> Self {
        Self {
            domain,
            signature: key.sign(&signed_bytes(log_key)),
        }
    }

    /// The form, which determines the names for the keys.
    pub fn form(&self) -> Form {
        Form::Sigsum
    }

    /// Verifies that one of the domain's keys has signed for the log, or the census, with this key.
    pub fn verify(&self, keys: &Candidates, log_key: LogKey) -> Result<Submitter, NotSigned> {
        Ok(Submitter {
            domain: self.domain.clone(),
            key_hash: keys.signer(&signed_bytes(log_key), &self.signature)?,
        })
    }
}

impl fmt::Display for SigsumToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.domain, self.signature)
    }
}

fn signed_bytes(log_key: LogKey) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SIGNED_BYTES);
    bytes.extend_from_slice(NAMESPACE);
    bytes.push(0);
    bytes.extend_from_slice(&log_key.to_bytes());
    bytes
}

#[cfg(test)]
mod tests;
