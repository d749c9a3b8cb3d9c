//! Submit tokens: a domain vouches for the submitter of a host, with a key that it publishes in
//! DNS.
//!
//! There are two forms. The census's own form ([`own`]) signs the purpose, the host and the expiry.
//! Sigsum's form ([`sigsum`]) signs none of these. It allows the use of Sigsum's own tools, and is
//! valid for submissions only.
//!
//! The crate takes a header's value, the time, and the TXT records of the name that [`lookup`]
//! requests. It returns the domain that vouches, the hash of its key, and the signed content.
//! Before any DNS request, it rejects everything that is not exactly of its form. With the records,
//! it rejects tokens that none of their keys has signed. It uses no clock, random generator, file
//! or network.
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
