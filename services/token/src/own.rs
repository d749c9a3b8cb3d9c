//! The census's own form: a domain states a wish about one host, with an expiry.
//!
//! It takes the value of the header `Fedicensus-Token`, the requested purpose and host, and the
//! time. It returns who vouches, and for what. It rejects everything that is not exactly of the
//! form, in its only spelling; tokens that have expired, or expire more than
//! [`EXPIRES_IN_SECONDS_MAX`] ahead; another purpose; another host; and an owner's decision by a
//! domain that does not contain the host.
//!
//! The value is six words in ASCII, separated by single spaces:
//!
//! ```text
//! v1 PURPOSE DOMAIN HOST EXPIRES SIGNATURE
//! ```
//!
//! PURPOSE is `submit`, `opt-out` or `opt-in`. DOMAIN, whose TXT records at `_fedicensus.DOMAIN`
//! hold the key, and HOST are names in canonical form: A-labels in lower case, no trailing dot.
//! EXPIRES is the first second since 1970 in UTC at which the token is no longer valid, a decimal
//! number below 2⁶⁴ without leading zeros. SIGNATURE is 128 hex digits in lower case: pure Ed25519
//! (RFC 8032) over these bytes:
//!
//! | bytes | content |
//! |---|---|
//! | 19 | `fedicensus/v1/token`, which makes the signature useless for any other purpose |
//! | 1 | zero |
//! | 2 | length of PURPOSE, big-endian |
//! | that length | PURPOSE |
//! | 2 | length of DOMAIN, big-endian |
//! | that length | DOMAIN |
//! | 2 | length of HOST, big-endian |
//! | that length | HOST |
//! | 8 | EXPIRES, big-endian |
//!
//! The bytes name no census: a recipient may pass a token on to another census while it is valid.

use std::fmt;

use protocol::{Host, HostError};
use thiserror::Error;

use crate::domain::{self, DomainError, Submitter, TestDomain};
use crate::key::{SIGNATURE_BYTES, SecretKey, Signature};
use crate::lookup::Form;
use crate::record::{Candidates, NotSigned};

pub const HEADER: &str = "Fedicensus-Token";

/// Furthest expiry, in seconds from now. A token is made for one request. A day allows making it on
/// another machine, and limits how long an observer can replay it.
pub const EXPIRES_IN_SECONDS_MAX: u64 = 24 * 60 * 60;

/// Tolerated error of the signer's clock, in seconds: how far it may be ahead of ours for a token
/// with the longest lifetime.
pub const CLOCK_AHEAD_SECONDS_MAX: u64 = 5 * 60;

/// Longest value in bytes: the version, the longest purpose, two names, the largest number, a
/// signature and five spaces.
pub const VALUE_BYTES_MAX: usize = 2 + 7 + 253 + 253 + 20 + 2 * SIGNATURE_BYTES + 5;

const VERSION: &str = "v1";

/// The prefix of the signed bytes, which no other signature of the same key has.
const NAMESPACE: &[u8; 19] = b"fedicensus/v1/token";

/// Seconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixSeconds(pub u64);

/// The wish about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The census should check it.
    Submit,
    OptOut,
    /// Its owner withdraws the opt-out.
    OptIn,
}

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The wish about the host.
    pub purpose: Purpose,
    pub domain: Host,
    pub host: Host,
    /// From then on it is no longer valid.
    pub expires: UnixSeconds,
}

/// A token of the census's own form, not yet verified; see [`OwnToken::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnToken {
    pub claim: Claim,
    /// The alleged signature of the domain.
    pub signature: Signature,
}

/// What a request asks for, and when.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'host> {
    /// The wish about the host.
    pub purpose: Purpose,
    pub host: &'host Host,
    pub now: UnixSeconds,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub submitter: Submitter,
    /// The wish about the host.
    pub purpose: Purpose,
    pub host: Host,
    /// From then on the token is no longer valid.
    pub expires: UnixSeconds,
}

/// Why a header's value is not a token of the census's own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OwnError {
    #[error("the token is longer than {VALUE_BYTES_MAX} bytes, and can't be one")]
    TooLong,
    #[error(
        "the token does not begin with `{VERSION} `: it is of another version, or of Sigsum's form, which has a header of its own"
    )]
    Version,
    #[error("the token is not six words with exactly one space between each two")]
    Shape,
    #[error("the token's purpose is not `submit`, `opt-out` or `opt-in`")]
    Purpose,
    #[error("the token's domain {0}")]
    Domain(#[from] DomainError),
    #[error("the token's host can't be used: {0}")]
    Host(HostError),
    #[error("the token's expiry is not a number of seconds since 1970")]
    Expires,
    #[error("the token's signature is not 128 hex digits")]
    Signature,
    #[error(
        "the token is not in its only valid spelling: names are A-labels in lower case, hex digits are in lower case, numbers have no leading zeros"
    )]
    Spelling,
}

/// Why a token is not valid for a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejected {
    #[error("the token expired {seconds_ago} s ago: make a new one")]
    Expired { seconds_ago: u64 },
    #[error(
        "the token is not valid for another {seconds} s, because a token may expire at most {EXPIRES_IN_SECONDS_MAX} s ahead: make one that expires sooner; if it should be valid, set the clock of the machine that made it"
    )]
    NotYet {
        /// Seconds until it becomes valid.
        seconds: u64,
    },
    #[error("the token was signed to {signed}, not to {wanted}: make one for that purpose")]
    WrongPurpose { signed: Purpose, wanted: Purpose },
    #[error("the token was signed for {signed}, not for {wanted}: make one for that host")]
    WrongHost { signed: Host, wanted: Host },
    /// Only the owner may decide this, and the domain does not contain the host.
    #[error(
        "{domain} can't decide to {purpose} for {host}, which is neither this domain nor below it: sign with a key of the host's own domain"
    )]
    NotTheOwner {
        purpose: Purpose,
        domain: Host,
        host: Host,
    },
    /// None of the domain's keys has signed it.
    #[error(transparent)]
    NotSigned(#[from] NotSigned),
}

impl OwnToken {
    /// Parses a header's value. `None` for an empty one, which counts as a missing header. Of
    /// several headers the first counts.
    pub fn parse(value: &[u8], test: TestDomain) -> Result<Option<Self>, OwnError> {
        if value.is_empty() {
            return Ok(None);
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(OwnError::TooLong);
        }
        let text = str::from_utf8(value).map_err(|_not_ascii| OwnError::Spelling)?;
        let (VERSION, rest) = text.split_once(' ').ok_or(OwnError::Version)? else {
            return Err(OwnError::Version);
        };
        let words: Vec<_> = rest.split(' ').collect();
        let [purpose, domain, host, expires, digits] = words[..] else {
            return Err(OwnError::Shape);
        };
        let token = Self {
            claim: Claim {
                purpose: Purpose::parse(purpose).ok_or(OwnError::Purpose)?,
                domain: domain::parse(domain.as_bytes(), Form::Own, test)?,
                host: Host::parse(host).map_err(OwnError::Host)?,
                expires: UnixSeconds(expires.parse().map_err(|_no_number| OwnError::Expires)?),
            },
            signature: Signature::from_hex(digits.as_bytes()).ok_or(OwnError::Signature)?,
        };
        // A token has only one spelling, so that nothing in it can be changed, not even without a
        // change of meaning.
        if token.to_string() == text {
            Ok(Some(token))
        } else {
            Err(OwnError::Spelling)
        }
    }

    pub fn sign(claim: Claim, key: &SecretKey) -> Self {
        let signature = key.sign(&claim.signed_bytes());
        Self { claim, signature }
    }

    /// The form, which determines the names for the keys.
    pub fn form(&self) -> Form {
        Form::Own
    }

    /// Verifies that the token matches the request and that one of the domain's keys has signed it.
    pub fn verify(&self, keys: &Candidates, wanted: Wanted<'_>) -> Result<Verified, Rejected> {
        self.claim.fits(wanted)?;
        let key_hash = keys.signer(&self.claim.signed_bytes(), &self.signature)?;
        let claim = self.claim.clone();
        Ok(Verified {
            submitter: Submitter {
                domain: claim.domain,
                key_hash,
            },
            purpose: claim.purpose,
            host: claim.host,
            expires: claim.expires,
        })
    }
}

impl Claim {
    /// Whether this content matches the request, without verifying the signature. Called before any
    /// DNS request.
    pub fn fits(&self, wanted: Wanted<'_>) -> Result<(), Rejected> {
        if self.purpose != wanted.purpose {
            return Err(Rejected::WrongPurpose {
                signed: self.purpose,
                wanted: wanted.purpose,
            });
        }
        if self.host != *wanted.host {
            return Err(Rejected::WrongHost {
                signed: self.host.clone(),
                wanted: wanted.host.clone(),
            });
        }
        if self.purpose.is_the_owners() && !self.host.is_within(self.domain.as_str()) {
            return Err(Rejected::NotTheOwner {
                purpose: self.purpose,
                domain: self.domain.clone(),
                host: self.host.clone(),
            });
        }
        self.is_good_at(wanted.now)
    }

    fn is_good_at(&self, now: UnixSeconds) -> Result<(), Rejected> {
        let Some(left) = self.expires.0.checked_sub(now.0).filter(|left| *left > 0) else {
            return Err(Rejected::Expired {
                seconds_ago: now.0.saturating_sub(self.expires.0),
            });
        };
        match left.saturating_sub(EXPIRES_IN_SECONDS_MAX + CLOCK_AHEAD_SECONDS_MAX) {
            0 => Ok(()),
            seconds => Err(Rejected::NotYet { seconds }),
        }
    }

    fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = NAMESPACE.to_vec();
        bytes.push(0);
        for field in [
            self.purpose.as_str(),
            self.domain.as_str(),
            self.host.as_str(),
        ] {
            // A name has at most 253 bytes.
            let length = u16::try_from(field.len()).unwrap_or(u16::MAX);
            bytes.extend(length.to_be_bytes());
            bytes.extend(field.bytes());
        }
        bytes.extend(self.expires.0.to_be_bytes());
        bytes
    }
}

impl Purpose {
    pub const ALL: [Self; 3] = [Self::Submit, Self::OptOut, Self::OptIn];

    /// The word in the token.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::OptOut => "opt-out",
            Self::OptIn => "opt-in",
        }
    }

    /// The purpose for this word. `None` if it is unknown.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.as_str() == word)
    }

    /// Whether only an owner may decide this. Anyone may submit a host; an owner's decision needs a
    /// domain that contains the host.
    pub fn is_the_owners(self) -> bool {
        match self {
            Self::Submit => false,
            Self::OptOut | Self::OptIn => true,
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for OwnToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claim = &self.claim;
        write!(
            f,
            "{VERSION} {} {} {} {} {}",
            claim.purpose, claim.domain, claim.host, claim.expires.0, self.signature
        )
    }
}

#[cfg(test)]
mod tests;
