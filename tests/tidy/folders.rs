//! A folder of sources has at most a dozen names: with more, it holds more than one subject.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use crate::tree::{files, none, root};

const NAMES_MAX: usize = 12;

/// Endings of source files. A script without an ending begins with [`SHEBANG`].
const SOURCES: [&str; 5] = [".rs", ".sh", ".js", ".mjs", ".py"];

const SHEBANG: [u8; 2] = *b"#!";

#[test]
fn no_folder_of_sources_has_more_than_a_dozen_names() {
    let sources: Vec<_> = files("", "")
        .into_iter()
        .filter(|path| is_source(path))
        .collect();
    assert!(sources.len() > 100, "the search found only {sources:?}");
    none("sort these folders by subject", &crowded(&sources));
}

fn is_source(path: &str) -> bool {
    let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
    SOURCES.iter().any(|end| name.ends_with(end)) || (!name.contains('.') && is_script(path))
}

fn is_script(path: &str) -> bool {
    let mut begin = [0; SHEBANG.len()];
    std::fs::File::open(root().join(path))
        .is_ok_and(|mut file| file.read_exact(&mut begin).is_ok() && begin == SHEBANG)
}

/// Folders with a source file and more than [`NAMES_MAX`] names of sources and folders of sources.
/// `name.rs` and the folder `name` are one name. A crate's `lib.rs` and `main.rs` are its root, and
/// no subject.
fn crowded(sources: &[String]) -> Vec<String> {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut with_sources = BTreeSet::new();
    for path in sources {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        with_sources.insert(folder);
        if ["lib.rs", "main.rs"].contains(&name) {
            continue;
        }
        names
            .entry(folder)
            .or_default()
            .insert(name.strip_suffix(".rs").unwrap_or(name));
        let mut inner = folder;
        while let Some((outer, name)) = inner.rsplit_once('/') {
            names.entry(outer).or_default().insert(name);
            inner = outer;
        }
    }
    names
        .into_iter()
        .filter(|(folder, names)| with_sources.contains(folder) && names.len() > NAMES_MAX)
        .map(|(folder, names)| {
            let list = names.iter().copied().collect::<Vec<_>>().join(", ");
            format!(
                "{folder}: {} names, at most {NAMES_MAX}: {list}",
                names.len()
            )
        })
        .collect()
}

#[test]
fn a_thirteenth_name_is_found_and_a_module_counts_once_with_its_folder() {
    let mut sources: Vec<_> = ('a'..='l').map(|name| format!("src/{name}.rs")).collect();
    sources.push("src/a/tests.rs".to_owned());
    assert_eq!(crowded(&sources), [""; 0]);
    sources.push("src/m/deep/n.rs".to_owned());
    assert_eq!(
        crowded(&sources),
        ["src: 13 names, at most 12: a, b, c, d, e, f, g, h, i, j, k, l, m"]
    );
    // Thirteen crates next to each other are not a folder of sources.
    let crates: Vec<_> = ('a'..='m')
        .map(|name| format!("crates/{name}/lib.rs"))
        .collect();
    assert_eq!(crowded(&crates), [""; 0]);
}
