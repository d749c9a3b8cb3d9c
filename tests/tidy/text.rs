//! Lengths, and words that belong in one crate only.

mod language;

use sha2::{Digest as _, Sha256};

use crate::tree::{files, none, read, rust_files};

/// Longest source file, in lines: no one reads a longer one completely.
const LINES_MAX: usize = 600;

/// Words that begin SQL statements in source code.
const SQL: [&str; 6] = [
    "INSERT INTO ",
    "DELETE FROM ",
    "CREATE TABLE ",
    "SELECT ",
    "UPDATE ",
    "PRAGMA ",
];

#[test]
fn no_source_file_is_longer_than_can_be_read() {
    let breaches: Vec<_> = rust_files()
        .into_iter()
        .map(|path| (read(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines, at most {LINES_MAX}"))
        .collect();
    none("split these files", &breaches);
}

#[test]
fn every_module_says_what_it_is_for() {
    let breaches: Vec<_> = rust_files()
        .into_iter()
        .filter(|path| !is_test(path) && !read(path).starts_with("//!"))
        .collect();
    none("a module opens with `//!`", &breaches);
}

#[test]
fn sql_stands_in_the_store_and_what_measures_it_only() {
    // The files of the console and the push service.
    let other_databases = ["services/accounts/", "services/push/src/storage/"];
    let measures = ["bench/src/shared/making.rs", "bench/src/soak/history.rs"];
    let breaches = found_outside("crates/store/", |line| {
        SQL.iter().any(|word| line.contains(&format!("\"{word}")))
    })
    .into_iter()
    .filter(|breach| {
        !other_databases
            .iter()
            .any(|folder| breach.starts_with(folder))
    })
    .filter(|breach| !measures.iter().any(|file| breach.starts_with(file)))
    .collect::<Vec<_>>();
    none(
        "SQL text outside crates/store and the files of other parts",
        &breaches,
    );
}

/// Databases in use have been through these files.
#[test]
fn migrations_are_added_and_never_edited() {
    let written: Vec<_> = files("migrations", ".sql")
        .into_iter()
        .chain(files("services", ".sql"))
        .map(|path| {
            let hash = hex::encode(Sha256::digest(read(&path)));
            format!("{hash}  {path}")
        })
        .collect();
    let recorded = read("migrations/SHA256SUMS");
    let recorded: Vec<_> = recorded.lines().collect();
    let unknown = |line: &&String| !recorded.contains(&line.as_str());
    let breaches: Vec<_> = written.iter().filter(unknown).cloned().collect();
    none(
        "undo the edit, or add the line of a new file to migrations/SHA256SUMS",
        &breaches,
    );
    assert_eq!(recorded.len(), written.len(), "a migration is missing");
}

/// Lines of the product's source outside `home` for which `is` holds; unit tests are exempt.
fn found_outside(home: &str, is: impl Fn(&str) -> bool) -> Vec<String> {
    let mut breaches = Vec::new();
    for path in rust_files()
        .into_iter()
        .filter(|path| !path.starts_with(home) && !path.starts_with("tests/") && !is_test(path))
    {
        let text = read(&path);
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in product.lines().enumerate() {
            if is(line) && !line.trim_start().starts_with("//") {
                breaches.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    breaches
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

#[test]
fn the_search_for_files_finds_this_one() {
    assert!(files("tests", ".rs").contains(&"tests/tidy/text.rs".to_owned()));
}
