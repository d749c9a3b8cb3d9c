//! What the scenarios use: a whole census in a temporary directory, with the lab as its Fediverse.

pub mod disks;
pub mod engine_api;
pub mod faults;
pub mod namespace;
pub mod patience;
pub mod process_engine;
pub mod tables;
pub mod web;
pub mod world;

pub use engine_api::{EngineApi, Listed};
pub use faults::{Row, Watch};
pub use kit::{Need, are_there, skip};
pub use namespace::Namespace;
pub use patience::{PATIENCE, patient, unhurried};
pub use process_engine::ProcessEngine;
pub use tables::Table;
pub use web::{Web, memory_limit_kib};
pub use world::{Engine, Heard, Options, Role, Usage, World, program, write_lab_file};
