//! Years of a census in minutes.
//!
//! In: a world as data, a number of hosts and days, a seed. Out: a table and plots of what the census was worth, or the invariant that was broken, with
//! the seed and the step. Refused: nothing.
//!
//! Real are the scheduler, the store, the intake gate with its rules, groups and transitions. Made
//! up are the engine, the gateway, the clock and the world; a small shell in place of the daemon's
//! carries the scheduler's commands out over them.

pub mod plan;
pub mod run;
pub mod world;

mod census;
mod course;
mod engine;
mod stage;

pub mod guard;
pub mod measure;
pub mod report;
