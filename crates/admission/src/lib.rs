//! Which names may enter the census (design §8), and how many of them a day.
//!
//! [`names`] is about names as such. In: text that somebody wrote, or names that a host listed. Out: a [`protocol::Host`] that may be asked, or
//! a [`Refusal`] fit for people. Refused: whatever is no host name, bare public suffixes, names below no known suffix, and special-use names.
//!
//! [`rules`] is the language in which an operator says how many, [`counters`] count them, and
//! [`decision`] is what comes out. [`gate`] puts them together with the operator's lists ([`list`])
//! for names that nobody vouches for; whom it has no room for may wait in [`waiting`].
//!
//! Nothing here knows a clock, chance, a file or the network.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        reason = "tests reckon with numbers of their own"
    )
)]

pub mod domain;
pub mod rules;

pub mod counters;
pub mod decision;

pub mod gate;
pub mod list;
pub mod waiting;

pub mod names;
pub mod special;
pub mod suffixes;

pub use counters::{Counters, HashKey};
pub use decision::{Decision, Policy, TestDomain};
pub use domain::{DomainName, DomainNameError};
pub use gate::{Candidate, Limits, Pass, Room, SourceId, Subject, Terms};
pub use list::{DomainList, Listed};
pub use names::{Names, Refusal, Reserved};
pub use rules::{KeyHash, Limit, Rules, RulesError};
pub use suffixes::{NoRegisteredDomain, SuffixError, Suffixes};
pub use waiting::{NamedBy, Waiter, Waiting};
