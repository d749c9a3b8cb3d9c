//! What documents name is there: paths, and the tests that hold a promise.

use std::collections::BTreeSet;

use crate::tree::{none, read, root, rust_files};

/// Documents that make promises.
const DOCUMENTS: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
];

/// A test is named by a statement: that many words at least.
const WORDS_OF_A_TEST_MIN: usize = 4;

#[test]
fn paths_that_documents_name_exist() {
    let mut breaches = Vec::new();
    for document in DOCUMENTS {
        let Ok(text) = std::fs::read_to_string(root().join(document)) else {
            continue;
        };
        for path in paths_named(&text) {
            if !root().join(&path).exists() {
                breaches.push(format!("{document} names {path}"));
            }
        }
    }
    none("documents name what isn't there", &breaches);
}

#[test]
fn markdown_code_and_links_are_taken_for_paths_only_when_they_look_like_ours() {
    let text = "See `crates/store/src/writer.rs`, [settings](docs/settings.md#top), `lab/up --add FILE`, `a/b`, https://x/lab/y, `/data`.";
    let expect = ["crates/store/src/writer.rs", "docs/settings.md", "lab/up"].map(str::to_owned);
    assert_eq!(paths_named(text).into_iter().collect::<Vec<_>>(), expect);
}

/// A promise whose test was renamed or removed is a claim that nobody checks any more.
#[test]
fn tests_that_documents_name_exist() {
    let all: String = rust_files().iter().map(|path| read(path)).collect();
    let mut breaches = Vec::new();
    for document in DOCUMENTS {
        let Ok(text) = std::fs::read_to_string(root().join(document)) else {
            continue;
        };
        for test in tests_named(&text) {
            if !all.contains(&format!("fn {test}(")) {
                breaches.push(format!("{document} names {test}"));
            }
        }
    }
    none("documents name tests that aren't there", &breaches);
}

#[test]
fn a_statement_in_backticks_is_taken_for_a_test() {
    let text = "`no_test_has_such_a_name`, `crates/x.rs::another_that_is_not_there`, `nodes.json`, `peers_end`, a_b_c_d";
    let expect = ["another_that_is_not_there", "no_test_has_such_a_name"].map(str::to_owned);
    assert_eq!(tests_named(text).into_iter().collect::<Vec<_>>(), expect);
}

/// What stands in backticks, after a path and two colons or alone, and reads like a test's name.
fn tests_named(text: &str) -> BTreeSet<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|piece| piece.rsplit("::").next())
        .filter(|name| {
            name.bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
                && name.split('_').count() >= WORDS_OF_A_TEST_MIN
        })
        .map(str::to_owned)
        .collect()
}

/// What stands in backticks or in a link's parentheses and begins with one of our folders.
fn paths_named(text: &str) -> BTreeSet<String> {
    let folders: BTreeSet<String> = [
        "orchestrator",
        "checker",
        "crates",
        "lab",
        "tests",
        "xtask",
        "deploy",
        "docs",
        "migrations",
        "bench",
        "fuzz",
    ]
    .iter()
    .map(|folder| format!("{folder}/"))
    .collect();
    text.split(['`', '(', ')'])
        .filter_map(|piece| piece.split_whitespace().next())
        .map(|piece| {
            piece
                .split('#')
                .next()
                .unwrap_or(piece)
                .trim_end_matches([',', '.', ':', ';'])
        })
        .filter(|piece| {
            folders
                .iter()
                .any(|folder| piece.starts_with(folder.as_str()))
        })
        .filter(|piece| !piece.contains(['*', '<', '…', '{']))
        .map(str::to_owned)
        .collect()
}
