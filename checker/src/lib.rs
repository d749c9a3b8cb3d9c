//! The checker: takes one host and prints events.
//!
//! It runs in a container that can reach one host and nothing else. It is our only program that
//! parses what a host sends: TLS, HTTP, robots.txt, NodeInfo, peers lists and, instead of a check,
//! public lists, public conversations or a push service's answers.
//!
//! It takes a host's name and an order, and prints events on stdout, one finding among them. It
//! rejects everything over the bounds of [`limits::Limits`]. A host can't make it print a name
//! other than as a peer or a target.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

pub mod check;
pub mod documents;
pub mod emit;
pub mod fetch;
pub mod limits;
pub mod list;
pub mod order;
pub mod peers;
pub mod sandbox;
pub mod walk;

pub use documents::{nodeinfo, optout, robots};
