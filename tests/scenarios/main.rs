//! Stories of the whole census in the lab, one module a subject.
//!
//! They need no engine: checks are plain processes, unless `FEDICENSUS_LAB_ENGINE` names an engine's socket. What only containers promise
//! stands in `containers`, which runs when `FEDICENSUS_LAB_ENGINE` is set and says so when it is not.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a story that can't go on fails"
)]
#![allow(clippy::too_many_lines, reason = "a story is told in one piece")]

mod admission;
mod adversary;
mod commands;
mod containers;
mod crashes;
mod files;
mod firewall;
mod groups;
mod kills;
mod metrics;
mod optout;
mod outages;
mod own_outages;
mod pace;
mod parked;
mod personas;
mod proofs;
mod site;
mod sources;
mod stories_in_time;
mod time_passes;
mod visitors;
