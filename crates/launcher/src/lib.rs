//! Alone holds the engine's socket (design §1, §4): runs each check in a container of its own and passes its bytes on.
//!
//! In, over the door: a check's id and host. Out: the container's bytes, framed, and how it ended. Whoever holds an engine's socket is root on
//! its machine, so this process has no network, parses nothing that a checker prints, and builds every container from one specification that no
//! request can change.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

pub mod wire;

pub mod settings;

pub mod spec;

pub mod seccomp;

pub mod engine;

pub mod bollard_engine;

mod attach;
mod docker;
mod podman;
mod transport;

mod frames;
#[cfg(fuzzing)]
pub mod fuzzing;
mod keeper;
mod probe;
mod reap;
mod run;
mod table;

pub mod door;

pub mod client;

#[cfg(test)]
mod tests;

pub use bollard_engine::BollardEngine;
pub use client::{ClientError, Container, Frame, LauncherClient};
pub use door::{Launcher, LauncherError, serve};
pub use engine::{Engine, EngineError};
pub use settings::{EgressSource, Settings};
