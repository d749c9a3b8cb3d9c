//! The only process that holds the engine's socket (design §1, §4): runs each check in a container
//! of its own and passes its bytes on.
//!
//! A request names a check and its host; the answer is the container's bytes, framed, and how it
//! ended. An engine's socket gives root on its machine, so this process has no network, parses
//! nothing that a checker prints, and builds every container from one specification that no request
//! can change.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

pub mod client;
pub mod settings;
pub mod wire;

pub mod engine;

pub mod container;

mod service;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

#[cfg(test)]
mod tests;

pub use client::{ClientError, Container, Frame, LauncherClient};
pub use container::{seccomp, spec};
pub use engine::bollard::BollardEngine;
pub use engine::{Engine, EngineError};
pub use service::server::{Launcher, LauncherError, serve};
pub use settings::{EgressSource, Settings, SlotMode};
