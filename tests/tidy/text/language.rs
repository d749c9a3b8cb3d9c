//! Comments and documents are in plain English: a short list of words that the old text was full
//! of, the width of comments, and what they may cite.

use crate::tree::{files, none, read, rust_files};

/// Words that have a plainer one: next to, anyone who, again, so that it does not.
const BANNED_WORDS: [&str; 6] = ["anew", "beside", "lest", "tells of", "whoever", "whom"];

/// Columns of a line of comment, as of code.
const COLUMNS_MAX: usize = 100;

/// The sign before a section's number, escaped so that this file cites none.
const SECTION: &str = "\u{a7}";

const FOLDERS_OF_DOCUMENTS: [&str; 4] = ["docs", "deploy", "bench", "tests"];

const DOCUMENTS: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
];

#[test]
fn comments_and_documents_have_plain_words() {
    let mut breaches = Vec::new();
    for path in rust_files() {
        for (number, comment) in comments(&read(&path)) {
            breaches.extend(banned(comment).map(|word| format!("{path}:{number}: {word}")));
        }
    }
    for path in documents() {
        for (number, line) in read(&path).lines().enumerate() {
            let number = number + 1;
            breaches.extend(banned(&prose(line)).map(|word| format!("{path}:{number}: {word}")));
        }
    }
    none("words that have a plainer one", &breaches);
}

#[test]
fn comments_are_no_wider_than_code() {
    let mut breaches = Vec::new();
    for path in rust_files() {
        let text = read(&path);
        let wide = text.lines().enumerate().filter(|(_, line)| {
            let is_comment = line.trim_start().starts_with("//");
            is_comment && line.chars().count() > COLUMNS_MAX
        });
        breaches.extend(wide.map(|(number, _)| format!("{path}:{}", number + 1)));
    }
    none("comments of more than 100 columns", &breaches);
}

#[test]
fn no_section_of_a_design_is_cited() {
    let mut breaches = Vec::new();
    for path in rust_files().into_iter().chain(documents()) {
        let text = read(&path);
        let cites = |line: &&str| line.contains(SECTION) && line.to_lowercase().contains("design");
        breaches.extend(
            text.lines()
                .filter(cites)
                .map(|line| format!("{path}: {line}")),
        );
    }
    none("cite an invariant or a decision instead", &breaches);
}

#[test]
fn a_word_counts_alone_and_in_any_case() {
    let found: Vec<_> = banned("Whoever sits Beside it; a `besides` and anewspaper").collect();
    assert_eq!(found, ["beside", "whoever"]);
    assert_eq!(prose("see `whoever` and [x](beside.md)"), "see  and [x]");
    let source = "let x = 1; // not this\n// beside\n/// whom\n";
    let lines: Vec<_> = comments(source).collect();
    assert_eq!(lines, [(2, "// beside"), (3, "/// whom")]);
}

/// Lines that are comments, with their numbers from 1.
fn comments(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = source.lines().enumerate();
    lines
        .map(|(number, line)| (number + 1, line.trim_start()))
        .filter(|(_, line)| line.starts_with("//"))
}

/// A line of Markdown without code and the targets of links.
fn prose(line: &str) -> String {
    let without_code: String = line.split('`').step_by(2).collect();
    let mut parts = without_code.split("](");
    let mut prose = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        prose.push(']');
        prose.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    prose
}

fn banned(text: &str) -> impl Iterator<Item = &'static str> {
    let spaced: String = text
        .to_lowercase()
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter
            } else {
                ' '
            }
        })
        .collect();
    let words = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = format!(" {words} ");
    let is_there = move |word: &&str| words.contains(&format!(" {word} "));
    BANNED_WORDS.into_iter().filter(is_there)
}

fn documents() -> Vec<String> {
    let mut found: Vec<_> = DOCUMENTS.map(str::to_owned).into();
    for folder in FOLDERS_OF_DOCUMENTS {
        found.extend(files(folder, ".md"));
    }
    found
}
