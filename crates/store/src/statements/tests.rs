//! Compares the plans, and finds statements that are missing from the list.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::*;
use crate::db::migrate;

/// A statement's entry in the list.
pub(super) struct Expected {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    pub(super) plan: &'static [&'static str],
    /// At most one.
    pub(super) reasons: &'static [&'static str],
}

/// Plan steps that need a reason: reading all rows, or sorting with a temporary B-tree.
const COSTLY: [&str; 2] = ["SCAN ", "TEMP B-TREE"];

/// Files whose SQL reads no table of the census: the published file, and the code that identifies a
/// file.
const OTHERS: [&str; 2] = ["files/instances_file.rs", "db/migrate.rs"];

const VERBS: [&str; 5] = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "];

fn census() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::SCHEMA.to_latest(&mut connection).unwrap();
    connection
        .pragma_update(None, "foreign_keys", true)
        .unwrap();
    // Includes the work of triggers in a statement's plan.
    let of_triggers = DbConfig::SQLITE_DBCONFIG_TRIGGER_EQP;
    connection.set_db_config(of_triggers, true).unwrap();
    connection
}

/// Steps of the plan without repetitions: triggers look up the same rows repeatedly.
fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap();
    let nulls = vec![rusqlite::types::Null; statement.parameter_count()];
    let lines = statement
        .query_map(rusqlite::params_from_iter(nulls), |row| {
            row.get::<_, Option<String>>("detail")
        })
        .unwrap();
    // A trigger's program begins with a line without text.
    let lines = lines.collect::<Result<Vec<_>, _>>().unwrap();
    let mut plan: Vec<String> = Vec::new();
    for line in lines.into_iter().flatten() {
        let looks = ["SEARCH ", "SCAN ", "USE TEMP "];
        let is_look = looks.iter().any(|word| line.starts_with(word));
        if is_look && line != "SCAN CONSTANT ROW" && !plan.contains(&line) {
            plan.push(line);
        }
    }
    plan
}

fn written(connection: &Connection, sql: &str) -> BTreeSet<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN {sql}")).unwrap();
    let nulls = vec![rusqlite::types::Null; statement.parameter_count()];
    let opened = statement
        .query_map(rusqlite::params_from_iter(nulls), |row| {
            Ok((row.get("opcode")?, row.get("p2")?))
        })
        .unwrap();
    let opened = opened.collect::<Result<Vec<(String, i64)>, _>>().unwrap();
    let name = "SELECT name FROM sqlite_schema WHERE rootpage = ?1";
    let opened = opened
        .into_iter()
        .filter(|(opcode, _)| opcode == "OpenWrite");
    let read = |(_, root)| connection.query_row(name, [root], |row| row.get(0));
    opened.map(|opened| read(opened).unwrap()).collect()
}

/// Most verdicts repeat the last one, and each index that is written to is another page of a large
/// census.
#[test]
fn a_verdict_that_changes_no_state_writes_to_few_indexes() {
    let connection = census();
    let due = ["hosts", "hosts_due_in_class", "hosts_in_flight"].map(str::to_owned);
    let mut expected = BTreeSet::from(due);
    assert_eq!(written(&connection, row::STILL), expected);
    expected.insert("hosts_listable".to_owned());
    assert_eq!(written(&connection, row::STILL_ALIVE), expected);
}

#[test]
fn every_statement_finds_its_rows_as_the_list_says() {
    let connection = census();
    let mut wrong = Vec::new();
    for expected in EXPECTED {
        let found = plan(&connection, expected.sql);
        if found != expected.plan {
            wrong.push(format!("    {} => {found:?},", expected.name));
        }
    }
    let text = wrong.join("\n");
    assert!(wrong.is_empty(), "these are found otherwise now:\n{text}");
}

#[test]
fn nothing_reads_a_whole_table_or_sorts_without_a_reason() {
    for expected in EXPECTED {
        let Expected {
            name,
            plan,
            reasons,
            ..
        } = expected;
        let costs = |line: &&str| COSTLY.iter().any(|costly| line.contains(costly));
        let is_costly = plan.iter().any(costs);
        assert_eq!(
            is_costly,
            !reasons.is_empty(),
            "{name}: {plan:?} {reasons:?}"
        );
    }
}

#[test]
fn no_statement_is_missing_from_the_list() {
    let listed = EXPECTED.iter().map(|one| one.name.replace(' ', ""));
    let listed: BTreeSet<String> = listed.collect();
    let mut missing = Vec::new();
    let mut found = 0;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (file, text) in rust_files(&source, "") {
        if OTHERS.contains(&file.as_str()) {
            continue;
        }
        let module = module(&file);
        for item in items(&text) {
            let places = VERBS
                .iter()
                .filter_map(|verb| item.find(&format!("\"{verb}")));
            let Some(begin) = places.min() else {
                continue;
            };
            found += 1;
            match constant(item, begin) {
                Some(name) if listed.contains(&format!("{module}{name}")) => {}
                Some(name) => missing.push(format!("{module}{name} is not in the list")),
                None => missing.push(format!("{file} holds SQL outside of a constant: {item}")),
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    // Otherwise the search misses statements.
    assert_eq!(found, ALL.len());
}

/// Rust files below `folder` except tests, with their paths below `src`.
fn rust_files(folder: &Path, below: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{below}{name}");
        if entry.file_type().unwrap().is_dir() {
            if name != "tests" {
                files.extend(rust_files(&entry.path(), &format!("{path}/")));
            }
        } else if name != "tests.rs" {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let product = text.split("#[cfg(test)]\nmod tests").next();
            files.push((path, product.unwrap().to_owned()));
        }
    }
    files
}

/// The module as the list writes it: without the folders `db/`, `hosts/` and the like.
fn module(file: &str) -> String {
    let mut module = file.strip_suffix(".rs").unwrap();
    for folder in ["db/", "files/", "queries/", "tables/", "hosts/"] {
        module = module.strip_prefix(folder).unwrap_or(module);
    }
    format!("{}::", module.replace('/', "::"))
}

/// Splits the text where Rust items end: at a semicolon at the end of a line.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(";\n")
}

/// Name of the constant that an item declares, if all of its SQL begins at `begin` or later.
fn constant(item: &str, begin: usize) -> Option<&str> {
    let (before, value) = item.rsplit_once(": &str =")?;
    let is_value = item.len() - value.len() < begin;
    let (_, name) = before.rsplit_once("const ")?;
    is_value.then_some(name)
}
