//! The published files, read by other people's programs: each finds exactly what was listed.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use dump::{DumpError, ListedRow, ListedState, Moment};
use protocol::Instance;
use publish::{Cancel, Disk, Tree};
use serde_json::Value;

/// Hostile software names, as readers of the files may meet them.
const TEXTS: [&str; 14] = [
    "mastodon",
    "",
    "'",
    "'quoted'",
    "=HYPERLINK(\"https://evil.example\")",
    "-1+1",
    "@SUM(A1:A9)",
    "a,b;c\td",
    "\"two\"\"three\"",
    "line\r\nline\nline\rline",
    "<script>alert(1)</script>",
    "Bücher 書籍 \u{202e}evil\u{200f} 🦣",
    " blank ",
    "\\N null NULL \\u0041",
];

fn rows() -> Vec<ListedRow> {
    let long = "v".repeat(128);
    let mut texts: Vec<Option<&str>> = TEXTS.map(Some).to_vec();
    texts.extend([None, Some(long.as_str())]);
    let states = [ListedState::Alive, ListedState::Dying, ListedState::Moving];
    let pairs = texts
        .iter()
        .flat_map(|software| texts.iter().map(move |version| (software, version)));
    pairs
        .zip(states.iter().cycle())
        .enumerate()
        .map(|(number, ((software, version), state))| ListedRow {
            host: format!("n{number:04}.example"),
            state: *state,
            first_seen: Moment::from_milliseconds(1_700_000_000_000),
            last_alive: Moment::from_milliseconds(
                1_700_000_000_000 + 1000 * i64::try_from(number).unwrap_or(0),
            ),
            instance: Instance {
                software: software.map(str::to_owned),
                version: version.map(str::to_owned),
                open_registrations: match number % 3 {
                    0 => None,
                    rest => Some(rest == 1),
                },
                variant: version.map(str::to_owned),
                ..Instance::default()
            },
        })
        .collect()
}

/// A folder with a published set; `None` if a program to read it is missing.
fn published(programs: &[&str]) -> anyhow::Result<Option<tempfile::TempDir>> {
    if !tests::are_there(programs) {
        return Ok(None);
    }
    let folder = tempfile::tempdir()?;
    let tree = Tree::begin(Disk::SYSTEM, folder.path(), &Cancel::default())?;
    let draft = dump::write(&tree, Moment::from_milliseconds(1_795_000_000_000), |row| {
        rows().iter().try_for_each(row)
    });
    draft.map_err(|error: DumpError| error)?.seal()?;
    tree.publish()?;
    Ok(Some(folder))
}

fn said(folder: &Path, program: &str, arguments: &[&str], input: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder.join("current/data"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| program.to_owned())?;
    child.stdin.take().context("a pipe")?.write_all(input)?;
    let output = child.wait_with_output()?;
    let status = output.status;
    ensure!(status.success(), "{program} {arguments:?}: {status}");
    Ok(output.stdout)
}

fn expected() -> Vec<Value> {
    rows()
        .iter()
        .map(|row| serde_json::to_value(row).expect("a row is JSON"))
        .collect()
}

fn parsed(json: &[u8]) -> anyhow::Result<Vec<Value>> {
    serde_json::from_slice(json).with_context(|| String::from_utf8_lossy(json).into_owned())
}

#[test]
fn jq_reads_every_json_file() -> anyhow::Result<()> {
    let Some(folder) = published(&["jq"])? else {
        return Ok(());
    };
    let jq = |arguments: &[&str]| said(folder.path(), "jq", arguments, b"");
    assert_eq!(parsed(&jq(&["-s", ".", "instances.ndjson"])?)?, expected());
    let names: Vec<_> = expected().iter().map(|row| row["host"].clone()).collect();
    assert_eq!(parsed(&jq(&[".", "nodes.json"])?)?, names);
    assert_eq!(parsed(&jq(&[".", "../nodes.json"])?)?, names);
    let sum = "([.software[].instances] | add) + .other_software.instances";
    let counted = jq(&[sum, "software.json"])?;
    assert_eq!(String::from_utf8(counted)?.trim(), names.len().to_string());
    Ok(())
}

/// With the index alone, `sha256sum` verifies that a mirror has all files completely.
#[test]
fn sha256sum_finds_every_file_as_the_index_says() -> anyhow::Result<()> {
    let Some(folder) = published(&["jq", "sha256sum"])? else {
        return Ok(());
    };
    let lines = ["-r", ".files[] | \"\\(.sha256)  \\(.name)\"", "index.json"];
    let sums = said(folder.path(), "jq", &lines, b"")?;
    let checked = said(folder.path(), "sha256sum", &["--check", "--strict"], &sums)?;
    let by_software = std::fs::read_dir(folder.path().join("current/data/software"))?.count();
    let count = String::from_utf8(checked)?.lines().count();
    assert_eq!(count, 6 * 2 + 6 + by_software);
    Ok(())
}

#[test]
fn gzip_unpacks_what_lies_beside_it() -> anyhow::Result<()> {
    let Some(folder) = published(&["gzip"])? else {
        return Ok(());
    };
    for name in [
        "nodes.json",
        "instances.ndjson",
        "instances.csv",
        "instances.sqlite",
        "software.json",
        "index.json",
    ] {
        let plain = std::fs::read(folder.path().join("current/data").join(name))?;
        let packed = format!("{name}.gz");
        let unpacked = said(folder.path(), "gzip", &["-dc", &packed], b"")?;
        assert!(unpacked == plain, "{packed}");
        said(folder.path(), "gzip", &["-tq", &packed], b"")?;
    }
    Ok(())
}

#[test]
fn sqlite3_reads_the_table_and_finds_nothing_wrong_with_it() -> anyhow::Result<()> {
    let Some(folder) = published(&["sqlite3"])? else {
        return Ok(());
    };
    let ask = |sql: &str| {
        let arguments = ["-readonly", "instances.sqlite", sql];
        said(folder.path(), "sqlite3", &arguments, b"")
    };
    let truth =
        "json(CASE open_registrations WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END)";
    let columns = format!(
        "json_object('host', host, 'software', software, 'version', version, 'state', state, 'first_seen', first_seen, \
         'last_alive', last_alive, 'open_registrations', {truth}, 'variant', variant)"
    );
    let found = ask(&format!(
        "SELECT json_group_array(json({columns})) FROM (SELECT * FROM instances ORDER BY host)"
    ))?;
    assert_eq!(parsed(&found)?, expected());
    let integrity = ask("PRAGMA integrity_check")?;
    assert_eq!(String::from_utf8(integrity)?.trim(), "ok");
    let tables = ask("SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table'")?;
    assert_eq!(String::from_utf8(tables)?.trim(), "instances");
    let plan = ask("EXPLAIN QUERY PLAN SELECT host FROM instances WHERE software = 'mastodon'")?;
    assert!(String::from_utf8(plan)?.contains("instances_software"));
    for entry in std::fs::read_dir(folder.path().join("current/data"))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(!name.contains("sqlite-"), "{name}");
    }
    Ok(())
}

/// The rule from docs/data.md, in its words.
const PYTHON_CSV: &str = "
import csv, io, json, re, sys
with open('instances.csv', 'rb') as file:
    rows = []
    for row in csv.DictReader(io.TextIOWrapper(file, 'utf-8', newline='')):
        row = {name: re.sub(r\"(^|[;\\t\\r\\n])'\", r\"\\1\", field) if field else None for name, field in row.items()}
        row['open_registrations'] = {'true': True, 'false': False, None: None}[row['open_registrations']]
        rows.append(row)
json.dump(rows, sys.stdout)
";

const PYTHON_SQLITE: &str = "
import json, sqlite3, sys
census = sqlite3.connect('file:instances.sqlite?immutable=1', uri=True)
census.row_factory = sqlite3.Row
rows = [dict(row) for row in census.execute('SELECT * FROM instances ORDER BY host')]
for row in rows:
    row['open_registrations'] = {1: True, 0: False, None: None}[row['open_registrations']]
json.dump(rows, sys.stdout)
";

const PYTHON_NDJSON: &str = "
import gzip, json, sys
with open('instances.ndjson.gz', 'rb') as answer:
    json.dump([json.loads(line) for line in gzip.open(answer, 'rt', encoding='utf-8')], sys.stdout)
";

#[test]
fn python_reads_rows_from_every_format() -> anyhow::Result<()> {
    let Some(folder) = published(&["python3"])? else {
        return Ok(());
    };
    for script in [PYTHON_CSV, PYTHON_SQLITE, PYTHON_NDJSON] {
        let found = said(folder.path(), "python3", &["-c", script], b"")?;
        assert_eq!(parsed(&found)?, expected(), "{script}");
    }
    Ok(())
}
