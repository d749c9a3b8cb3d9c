//! The language of checkers: host names, events, check ids, and their bounds.
//!
//! The trusted programs parse what the untrusted checker prints with this crate, so it
//! has no I/O, no clock and no async. Text becomes types that keep their own rules, and text
//! outside the language is rejected.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

pub mod check_id;
pub mod container;
pub mod egress;
pub mod escape;
pub mod event;
pub mod host;
pub mod limits;
pub mod line;
pub mod list;
pub mod order;
pub mod probe;

pub use check_id::CheckId;
pub use escape::{escaped, is_shown_safely};
pub use event::{DeadReason, Event, Instance, PeersOutcome, Private, WalkOutcome, Wall};
pub use host::{Host, HostError, canonical_name, pasted};
pub use line::parse_line;
pub use list::{ListFormat, ListOrder, ListOutcome, ListPath, UnlistedReason};
pub use order::delivery::{DeliveryOrder, Message, MessageOutcome, UnpostedReason};
pub use order::{CheckOrder, WalkOrder, user_agent};
pub use probe::ProbeReport;
