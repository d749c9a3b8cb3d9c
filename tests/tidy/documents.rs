//! Everything that documents name exists: paths, commands, variables, and the marks of the tests
//! that prove a promise.

use std::collections::BTreeSet;

use crate::tree::{RUST_FOLDERS, files, none, read, root, rust_files};

/// Documents at the root that make promises, as do all below [`FOLDERS_OF_DOCUMENTS`].
const DOCUMENTS: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
];

const FOLDERS_OF_DOCUMENTS: [&str; 4] = ["docs", "deploy", "migrations", "tests"];

/// Where one of our variables is read or passed on, apart from the documents that name it.
const FOLDERS_OF_VARIABLES: [&str; 5] = ["orchestrator", "deploy", "lab", "tests", "xtask"];

#[test]
fn paths_that_documents_name_exist() {
    let mut breaches = Vec::new();
    for document in documents() {
        let text = read(&document);
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
    let text = "See `crates/store/src/writer.rs`, [settings](docs/settings.md#top), `lab/up --add FILE`, `a/b`, https://x/lab/y, `/data`.\n\n    ENGINE=x deploy/build lab/z\n";
    let expect = [
        "crates/store/src/writer.rs",
        "deploy/build",
        "docs/settings.md",
        "lab/up",
    ]
    .map(str::to_owned);
    assert_eq!(paths_named(text).into_iter().collect::<Vec<_>>(), expect);
}

/// A promise whose tests were removed is no longer checked, and a mark without a promise is left
/// over from one.
#[test]
fn marks_of_documents_are_those_of_tests() {
    let mut promised = BTreeSet::new();
    for document in documents() {
        let text = read(&document);
        promised.extend(text.split('`').skip(1).step_by(2).filter_map(mark));
    }
    let mut marked = BTreeSet::new();
    for path in rust_files() {
        for line in read(&path).lines() {
            let comment = line.split_once("// ").map_or("", |(_, comment)| comment);
            let marks: Option<Vec<_>> = comment.split(' ').map(mark).collect();
            marked.extend(marks.into_iter().flatten());
        }
    }
    assert!(marked.len() > 50, "{marked:?}");
    let breaches: Vec<_> = promised.symmetric_difference(&marked).cloned().collect();
    none("marks in documents or tests only", &breaches);
}

/// `S4` for a claim of SECURITY.md or docs/console-asvs.md, `I1` for an invariant.
fn mark(word: &str) -> Option<String> {
    let number = word.strip_prefix(['S', 'I'])?;
    number.parse::<u8>().ok().map(|_| word.to_owned())
}

/// A command in a document must not be rejected by the program as unknown.
#[test]
fn commands_and_variables_that_documents_name_exist() {
    let commands = commands(&read("orchestrator/src/cli.rs"));
    assert!(commands.contains("opt-out"), "{commands:?}");
    let mut places = vec![read("compose.yaml"), read("docs/settings.md")];
    for folder in FOLDERS_OF_VARIABLES {
        for path in files(folder, "") {
            if !path.ends_with(".md") {
                places.extend(std::fs::read_to_string(root().join(path)));
            }
        }
    }
    let mut breaches = Vec::new();
    for document in documents() {
        let text = read(&document);
        for command in commands_named(&text).difference(&commands) {
            breaches.push(format!("{document} names fedicensus {command}"));
        }
        for variable in variables_named(&text) {
            if !places.iter().any(|place| place.contains(&variable)) {
                breaches.push(format!("{document} names {variable}"));
            }
        }
    }
    none("documents name what the programs don't know", &breaches);
}

#[test]
fn words_after_the_programs_name_are_taken_for_commands_and_capitals_for_variables() {
    let text = "`fedicensus opt-out HOST`\n\n    podman exec -it fedicensus-web /fedicensus no-such-one\n    podman run localhost/fedicensus-orchestrator:latest nor-such\n\n`fedicensus --help`, the\n`fedicensus` label; FEDICENSUS_NO_SUCH, `FEDICENSUS_LAB_…`";
    let expect = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let named: BTreeSet<String> = expect(&["opt-out", "no-such-one", "nor-such"]);
    assert_eq!(commands_named(text), named);
    let named: BTreeSet<String> = expect(&["FEDICENSUS_NO_SUCH", "FEDICENSUS_LAB_"]);
    assert_eq!(variables_named(text), named);
    let cli = "enum Other {\n    Not,\n}\nenum Command {\n    /// Run\n    Run,\n    /// Leave\n    OptOut {\n        host: Host,\n    },\n}\n";
    let commands_there: BTreeSet<String> = expect(&["run", "opt-out"]);
    assert_eq!(commands(cli), commands_there);
}

fn documents() -> Vec<String> {
    let mut found: Vec<_> = DOCUMENTS.map(str::to_owned).into();
    for folder in FOLDERS_OF_DOCUMENTS {
        found.extend(files(folder, ".md"));
    }
    found
}

/// The commands of the command line: the variants of its enum, in the form in which they are typed.
fn commands(cli: &str) -> BTreeSet<String> {
    let variants = cli
        .split_once("enum Command {\n")
        .and_then(|(_, rest)| rest.split_once("\n}"))
        .map_or("", |(variants, _)| variants);
    variants
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .map(|line| {
            let name: String = line
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            let mut typed = String::new();
            for letter in name.chars() {
                if letter.is_ascii_uppercase() && !typed.is_empty() {
                    typed.push('-');
                }
                typed.push(letter.to_ascii_lowercase());
            }
            typed
        })
        .collect()
}

/// The words after the name of the program or its image, in code and on the same line, that look
/// like a command.
fn commands_named(text: &str) -> BTreeSet<String> {
    let blocks = text.lines().filter_map(|line| line.strip_prefix("    "));
    let spans = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    blocks
        .chain(spans)
        .flat_map(|code| {
            let words: Vec<_> = code.split_whitespace().collect();
            words
                .windows(2)
                .filter_map(|pair| match pair {
                    [program, word]
                        if *program == "fedicensus"
                            || *program == "/fedicensus"
                            || program.starts_with("localhost/fedicensus-orchestrator") =>
                    {
                        Some((*word).to_owned())
                    }
                    _ => None,
                })
                .collect::<Vec<_>>()
        })
        .filter(|word| {
            word.bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_lowercase())
                && !word.starts_with('-')
        })
        .collect()
}

fn variables_named(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !(letter == '_' || letter.is_ascii_uppercase()))
        .filter(|word| word.starts_with("FEDICENSUS_"))
        .map(str::to_owned)
        .collect()
}

/// The texts in backticks, in a link's parentheses or as the program in a block of code that begin
/// with one of our folders.
fn paths_named(text: &str) -> BTreeSet<String> {
    let others = ["deploy", "docs", "migrations"];
    let folders = RUST_FOLDERS.into_iter().chain(others);
    let folders: BTreeSet<String> = folders.map(|folder| format!("{folder}/")).collect();
    let programs = text
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter_map(|code| code.split_whitespace().find(|word| !word.contains('=')));
    text.split(['`', '(', ')'])
        .filter_map(|piece| piece.split_whitespace().next())
        .chain(programs)
        .map(|piece| {
            let path = piece.split('#').next().unwrap_or(piece);
            path.trim_end_matches([',', '.', ':', ';'])
        })
        .filter(|piece| folders.iter().any(|folder| piece.starts_with(&**folder)))
        .filter(|piece| !piece.contains(['*', '<', '…', '{']))
        .map(str::to_owned)
        .collect()
}
