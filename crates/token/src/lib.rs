//! Submit tokens: a domain vouches for who submits a host, by a key that it publishes in DNS.
//!
//! There are two forms. The census's own ([`own`]) signs for what, for which host and until when it is good. Sigsum's ([`sigsum`]) signs none of
//! these; it is here so that Sigsum's own tools can be used, and is good for submissions alone.
//!
//! In: a header's value, the moment, and the TXT records that DNS has for the name that [`lookup`] asks for. Out: the domain that vouches, the hash
//! of its key, and what was signed. Refused: everything that is not exactly of its form, before anybody asks DNS; and, once the records are there,
//! what none of their keys has signed. Nothing here knows a clock, chance, a file or the network.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

pub mod domain;
pub mod key;
pub mod key_file;
pub mod lookup;
pub mod own;
pub mod record;
pub mod sigsum;

pub use domain::{DomainError, Submitter, TestDomain};
pub use key::{KeyError, KeyHash, LogKey, PublicKey, SecretKey, Signature};
pub use key_file::KeyFileError;
pub use lookup::{Failure, Form, Lookup, LookupError, NotFound, Step, TxtAnswer};
pub use own::{Claim, OwnError, OwnToken, Purpose, Rejected, UnixSeconds, Verified, Wanted};
pub use record::{Candidates, NotSigned, TxtRecord};
pub use sigsum::{SigsumError, SigsumToken};

#[cfg(test)]
mod tests;
