//! Finding and reading the repository's files.

use std::path::{Path, PathBuf};

/// Folders without files of ours, by name, at any depth.
const NOT_OURS: [&str; 3] = ["target", ".git", "build"];

/// The folders at the top that hold Rust.
pub(crate) const RUST_FOLDERS: [&str; 8] = [
    "orchestrator",
    "checker",
    "crates",
    "services",
    "lab",
    "tests",
    "xtask",
    "bench",
];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies below the root")
        .to_owned()
}

/// One of our files, as text; panics with its name if it can't be read.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files below `folder` whose names end with `end`, relative to the root, sorted. Empty if
/// there is no such folder.
pub(crate) fn files(folder: &str, end: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry.expect("a directory entry");
            let name = entry.file_name().into_string();
            let name = name.expect("our names are UTF-8");
            if entry.file_type().expect("its type").is_dir() {
                if !NOT_OURS.contains(&name.as_str()) {
                    folders.push(entry.path());
                }
            } else if name.ends_with(end) {
                let path = entry.path();
                let path = path.strip_prefix(root()).expect("below the root");
                found.push(path.to_str().expect("UTF-8").to_owned());
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn rust_files() -> Vec<String> {
    let found = RUST_FOLDERS.iter().flat_map(|folder| files(folder, ".rs"));
    let found: Vec<_> = found.collect();
    assert!(found.len() > 20, "the search found only {found:?}");
    found
}

/// Folder and content of every member's manifest, without the root's.
pub(crate) fn manifests() -> Vec<(String, toml::Table)> {
    let found: Vec<_> = RUST_FOLDERS
        .iter()
        .flat_map(|folder| files(folder, "Cargo.toml"))
        // No member: it has a workspace of its own.
        .filter(|path| path != "tests/fuzz/Cargo.toml")
        .map(|path| {
            let table = read(&path).parse();
            let table = table.unwrap_or_else(|error| panic!("{path}: {error}"));
            (path.trim_end_matches("/Cargo.toml").to_owned(), table)
        })
        .collect();
    let count = found.len();
    assert!(count > 10, "the search found only {count} manifests");
    found
}

#[track_caller]
pub(crate) fn none(rule: &str, breaches: &[String]) {
    assert!(breaches.is_empty(), "{rule}:\n  {}", breaches.join("\n  "));
}
