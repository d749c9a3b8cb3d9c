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

/// All files below a folder.
pub fn files_below(folder: &std::path::Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    Ok(files)
}
