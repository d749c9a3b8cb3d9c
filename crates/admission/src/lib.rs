//! Which names may enter the census (design §8).
//!
//! In: text that somebody wrote, or names that a host listed. Out: a [`protocol::Host`] that may be asked, or a [`Refusal`] fit for people.
//! Refused: whatever is no host name, bare public suffixes, names below no known suffix, and special-use names.
//! Nothing here knows a clock, chance or the network; one file is read, when the operator replaces the list of public suffixes.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

pub mod names;
pub mod special;
pub mod suffixes;

pub use names::{Names, Refusal, Reserved};
pub use suffixes::{SuffixError, Suffixes};
