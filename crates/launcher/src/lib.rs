//! The only process with access to the engine's socket. It runs each check in its own container and
//! passes the container's output on.
//!
//! A request names a check and its host. The answer is the container's output in frames, and how
//! the container ended. An engine's socket gives root on its machine. Therefore this process has no
//! network, never parses what a checker prints, and builds every container from one specification
//! that no request can change.
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

mod run;

mod service;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

#[cfg(test)]
mod tests;

pub use client::{ClientError, Container, Frame, LauncherClient};
pub use container::{seccomp, spec};
pub use engine::bollard::BollardEngine;
pub use engine::{Engine, EngineError};
pub use service::server::{Launcher, serve};
pub use settings::{EgressSource, Settings};
