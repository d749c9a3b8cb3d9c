//! Years of a census in minutes, and its first day.
//!
//! It takes a world as data, a number of hosts and days, and a seed. It returns a table
//! of the census's quality, or the broken invariant with the seed and the step.
//!
//! The scheduler, the paces, the store, and the intake gate with its rules, groups and transitions
//! are the product's. The engine, the network, the clock and the world are simulated. A small shell
//! in place of the daemon's carries out the scheduler's commands.

pub mod firstday;
pub mod plan;
pub mod world;
pub mod year;

mod shell;
mod stage;

pub mod guard;
pub mod measure;
pub mod report;
