//! The census's own form: a domain says what is to become of one host, and until when it says so.
//!
//! In: the value of the header `Fedicensus-Token`; what is asked for, of which host, and the moment. Out: who vouches, and for what. Refused: all
//! that is not exactly of the form, in its one spelling; what has expired, or is good for longer than [`EXPIRES_IN_SECONDS_MAX`]; another purpose;
//! another host; an owner's decision by a domain that the host does not lie in.
//!
//! The value is six words with one space between each two, in ASCII:
//!
//! ```text
//! v1 PURPOSE DOMAIN HOST EXPIRES SIGNATURE
//! ```
//!
//! PURPOSE is `submit`, `opt-out` or `opt-in`. DOMAIN, whose TXT records at `_fedicensus.DOMAIN` hold the key, and HOST are names in canonical form:
//! A-labels in lower case, no trailing dot. EXPIRES is the first second since 1970 in UTC at which the token is good no longer, a decimal number
//! below 2⁶⁴ without leading zeros. SIGNATURE is 128 hex digits in lower case: pure Ed25519 (RFC 8032) over these bytes:
//!
//! | bytes | content |
//! |---|---|
//! | 19 | `fedicensus/v1/token`, so that it is good for nothing else |
//! | 1 | zero |
//! | 2 | length of PURPOSE, big-endian |
//! | as many | PURPOSE |
//! | 2 | length of DOMAIN, big-endian |
//! | as many | DOMAIN |
//! | 2 | length of HOST, big-endian |
//! | as many | HOST |
//! | 8 | EXPIRES, big-endian |
//!
//! Nothing in them names a census: who is handed a token may hand it on to another census while it is good.

use std::fmt;

use protocol::{Host, HostError};
use thiserror::Error;

use crate::domain::{self, DomainError, Submitter, TestDomain};
use crate::key::{SIGNATURE_BYTES, SecretKey, Signature};
use crate::lookup::Form;
use crate::record::{Candidates, NotSigned};

/// The header that carries it.
pub const HEADER: &str = "Fedicensus-Token";

/// Furthest that a token may expire ahead, in seconds. It is made for one request; a day lets it be made on another machine and carried over, and
/// bounds how long whoever saw it can repeat it.
pub const EXPIRES_IN_SECONDS_MAX: u64 = 24 * 60 * 60;

/// How far a maker's clock may be ahead of ours, in seconds, before a token that it made for the longest time is taken for one of the future.
pub const CLOCK_AHEAD_SECONDS_MAX: u64 = 5 * 60;

/// Longest value in bytes: the version, the longest purpose, two names, the largest number, a signature and five spaces.
pub const VALUE_BYTES_MAX: usize = 2 + 7 + 253 + 253 + 20 + 2 * SIGNATURE_BYTES + 5;

/// The version of the form.
const VERSION: &str = "v1";

/// What the signed bytes begin with: no other signature of the same key is one of these.
const NAMESPACE: &[u8; 19] = b"fedicensus/v1/token";

/// Seconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixSeconds(pub u64);

/// What is to become of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The census is to look at it.
    Submit,
    /// Its owner wants it left alone.
    OptOut,
    /// Its owner takes that back.
    OptIn,
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What is to become of the host.
    pub purpose: Purpose,
    /// The domain that vouches.
    pub domain: Host,
    /// The host.
    pub host: Host,
    /// From then on it is good no longer.
    pub expires: UnixSeconds,
}

/// A token of the census's own form. Nothing of it is known to be true before [`OwnToken::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnToken {
    /// What it says.
    pub claim: Claim,
    /// What is said to be the domain's signature of it.
    pub signature: Signature,
}

/// What somebody wants, and when.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'host> {
    /// What is to become of the host.
    pub purpose: Purpose,
    /// The host.
    pub host: &'host Host,
    /// The moment.
    pub now: UnixSeconds,
}

/// A token that is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Who vouches.
    pub submitter: Submitter,
    /// What is to become of the host.
    pub purpose: Purpose,
    /// The host.
    pub host: Host,
    /// From then on the token is good no longer.
    pub expires: UnixSeconds,
}

/// Why a header's value is no token of the census's own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OwnError {
    /// Over [`VALUE_BYTES_MAX`].
    #[error("the token is longer than {VALUE_BYTES_MAX} bytes, and can't be one")]
    TooLong,
    /// Another version, or another form.
    #[error(
        "the token does not begin with `{VERSION} `: it is of another version, or of Sigsum's form, which has a header of its own"
    )]
    Version,
    /// Not six words.
    #[error("the token is not six words with exactly one space between each two")]
    Shape,
    /// No purpose that is known.
    #[error("the token's purpose is not `submit`, `opt-out` or `opt-in`")]
    Purpose,
    /// The domain can't vouch.
    #[error("the token's domain {0}")]
    Domain(#[from] DomainError),
    /// The host is no name.
    #[error("the token's host can't be used: {0}")]
    Host(HostError),
    /// No number of seconds.
    #[error("the token's expiry is not a number of seconds since 1970")]
    Expires,
    /// Not 128 hex digits.
    #[error("the token's signature is not 128 hex digits")]
    Signature,
    /// It could be read, but is not as it would be written.
    #[error(
        "the token is spelled otherwise than it is made: names are A-labels in lower case, hex digits are in lower case, numbers have no leading zeros"
    )]
    Spelling,
}

/// Why a token is not good for what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejected {
    /// Its time is over.
    #[error("the token expired {seconds_ago} s ago: make a new one")]
    Expired {
        /// Since when.
        seconds_ago: u64,
    },
    /// It expires further ahead than any token may.
    #[error(
        "the token is not valid for another {seconds} s, since none may expire more than {EXPIRES_IN_SECONDS_MAX} s ahead: make one that expires sooner; if it should be valid, set the clock of the machine that made it"
    )]
    NotYet {
        /// Until it is.
        seconds: u64,
    },
    /// It was signed for something else.
    #[error("the token was signed to {signed}, not to {wanted}: make one for that purpose")]
    WrongPurpose {
        /// What it says.
        signed: Purpose,
        /// What is wanted.
        wanted: Purpose,
    },
    /// It was signed for another host.
    #[error("the token was signed for {signed}, not for {wanted}: make one for that host")]
    WrongHost {
        /// What it says.
        signed: Host,
        /// What is wanted.
        wanted: Host,
    },
    /// Only an owner decides that, and the domain's is not the host's.
    #[error(
        "{domain} can't decide to {purpose} for {host}, which is neither this domain nor below it: sign with a key of the host's own domain"
    )]
    NotTheOwner {
        /// What is wanted.
        purpose: Purpose,
        /// The domain that vouches.
        domain: Host,
        /// The host.
        host: Host,
    },
    /// None of the domain's keys has signed it.
    #[error(transparent)]
    NotSigned(#[from] NotSigned),
}

impl OwnToken {
    /// Reads a header's value. An empty one is no token, as if the header were not there; of several headers the first counts.
    ///
    /// # Errors
    /// How it is malformed.
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
        // One token, one text: nothing of it can be changed, not even in ways that mean the same.
        if token.to_string() == text {
            Ok(Some(token))
        } else {
            Err(OwnError::Spelling)
        }
    }

    /// Makes the token that says this.
    pub fn sign(claim: Claim, key: &SecretKey) -> Self {
        let signature = key.sign(&claim.signed_bytes());
        Self { claim, signature }
    }

    /// The form, by which the keys are looked up.
    pub fn form(&self) -> Form {
        Form::Own
    }

    /// Who vouches for what, when it is what is wanted and one of the domain's keys has signed it.
    ///
    /// # Errors
    /// As [`Claim::fits`], and when none of the keys has signed it.
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
    /// Whether this would be good for what is wanted, if it is true: worth knowing before DNS is asked.
    ///
    /// # Errors
    /// Why it is not. Never [`Rejected::NotSigned`].
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Submit, Self::OptOut, Self::OptIn];

    /// The word in the token.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::OptOut => "opt-out",
            Self::OptIn => "opt-in",
        }
    }

    /// The purpose of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.as_str() == word)
    }

    /// Anybody may submit a host. What an owner decides is decided by a domain that the host lies in.
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

/// The header's value.
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
