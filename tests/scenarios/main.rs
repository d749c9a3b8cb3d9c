//! Scenarios over the whole census in the lab, one module per subject.
//!
//! They need no engine: checks are plain processes, unless `FEDICENSUS_LAB_ENGINE` names an
//! engine's socket. What only containers guarantee is in `confinement::containers`, which runs if
//! `FEDICENSUS_LAB_ENGINE` is set and otherwise prints that it is skipped.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a story that can't go on fails"
)]
#![allow(clippy::too_many_lines, reason = "a story is told in one piece")]

mod commands;
mod confinement;
mod failures;
mod metrics;
mod moderators;
mod names;
mod owners;
mod personas;
mod published;
mod time;
