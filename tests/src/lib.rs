//! What the scenarios stand on: a whole census in a temporary directory, with the lab as its Fediverse.

pub mod process_engine;
pub mod world;

pub use process_engine::ProcessEngine;
pub use world::{Engine, Options, Role, World};
