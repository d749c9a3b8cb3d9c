//! Years of a census in minutes.
//!
//! In: a world as data, a number of hosts and days, a seed. Out: a table and plots of what the census was worth, or the invariant that was broken, with
//! the seed and the step. Refused: nothing.
//!
//! Real are the store, the choice of what is due, the door with its rules, groups, transitions, doubts and the watch over outages. Made up are the
//! engine, the gateway, the clock and the world. The loop around them stands in for the daemon's and keeps to its order: what is due is taken, checks
//! end, failures wait for witnesses, verdicts are settled, the list is read.

pub mod run;
pub mod world;

mod engine;
mod names;
mod network;
mod truth;

mod census;
mod course;
mod pick;
mod stage;

pub mod guard;
pub mod measure;
pub mod plots;
pub mod report;
