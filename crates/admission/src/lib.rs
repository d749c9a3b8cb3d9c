//! Which names may enter the census, and how many of them a day.
//!
//! [`names`] checks names as such. It takes text that a person wrote, or names that a host listed,
//! and returns a [`protocol::Host`] that may be checked, or a [`Refusal`] fit for people. It
//! refuses everything that is not a host name, bare public suffixes, names below unknown suffixes,
//! and special-use names.
//!
//! [`rules`] is the language of an operator's limits, [`counters`] count admissions, and
//! [`decision`] applies the rules. [`gate`] combines them with the operator's lists ([`list`]) for
//! names without a submitter. Names without room may wait in [`waiting`].
//!
//! No module here uses a clock, a random generator, a file or the network.
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
