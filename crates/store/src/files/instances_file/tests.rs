use std::collections::BTreeSet;
use std::fs::File;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::db::migrate;
use crate::queries::listed::LISTED;

fn row<'r>(host: &'r str, instance: &'r Instance) -> InstanceRow<'r> {
    InstanceRow {
        host,
        state: "alive",
        first_seen: "2026-11-22T07:30:00Z",
        last_alive: "2026-11-22T07:30:00Z",
        instance,
    }
}

type Said = Option<&'static str>;

/// Hosts with software, version and variant.
const ROWS: [(&str, Said, Said, Said); 6] = [
    ("a.example", Some("mastodon"), Some("4.4.0"), None),
    ("b.example", Some("mastodon"), None, None),
    ("c.example", None, None, None),
    ("d.example", Some("akkoma"), Some("3"), None),
    ("e.example", Some("mastodon"), Some("4.4.0"), None),
    ("f.example", Some("mastodon"), Some("4.4.0"), Some("glitch")),
];

/// The file's bytes, and the counts.
fn written(dir: &TempDir, name: &str) -> (Vec<u8>, Vec<String>) {
    let path = dir.path().join(name);
    File::create(&path).unwrap();
    let mut file = InstancesFile::begin(&path).unwrap();
    for (host, software, version, variant) in ROWS {
        let instance = Instance {
            software: software.map(str::to_owned),
            version: version.map(str::to_owned),
            variant: variant.map(str::to_owned),
            ..Instance::default()
        };
        file.push(row(host, &instance)).unwrap();
    }
    let mut counts = Vec::new();
    file.finish(&mut |count| {
        counts.push(format!(
            "{:?} {:?} {:?} {}",
            count.software, count.version, count.variant, count.instances
        ))
    })
    .unwrap();
    (std::fs::read(path).unwrap(), counts)
}

#[test]
fn equal_rows_give_equal_bytes_in_one_file_that_opens_for_reading_alone() {
    let dir = TempDir::new().unwrap();
    let (bytes, counts) = written(&dir, "one");
    assert_eq!(
        counts,
        [
            "None None None 1",
            "Some(\"akkoma\") Some(\"3\") None 1",
            "Some(\"mastodon\") None None 1",
            "Some(\"mastodon\") Some(\"4.4.0\") None 2",
            "Some(\"mastodon\") Some(\"4.4.0\") Some(\"glitch\") 1",
        ]
    );
    assert!(bytes == written(&dir, "other").0);
    // Neither a journal nor a log exists or is required: both format versions are 1.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(bytes[18..20], [1, 1]);
    let path = format!("file:{}?immutable=1", dir.path().join("one").display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(path, flags).unwrap();
    let check: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    assert_eq!(migrate::look(&connection), Ok(migrate::Found::Foreign));
}

#[test]
fn what_is_counted_is_read_off_the_index() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(TABLE).unwrap();
    let plan: String = connection
        .query_row(&format!("EXPLAIN QUERY PLAN {COUNT}"), [], |row| {
            row.get("detail")
        })
        .unwrap();
    assert_eq!(
        plan,
        "SCAN instances USING COVERING INDEX instances_software"
    );
}

#[test]
fn a_host_that_comes_twice_is_an_error() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("twice");
    File::create(&path).unwrap();
    let mut file = InstancesFile::begin(&path).unwrap();
    file.push(row("a.example", &kit::instance())).unwrap();
    file.push(row("a.example", &kit::instance())).unwrap_err();
    let missing = InstancesFile::begin(&dir.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::PermissionDenied);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_a_host_says_comes_back_equal(said in proptest::collection::vec((any_text(), any_text(), any_registrations()), 0..40)) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("any");
        File::create(&path).unwrap();
        let mut file = InstancesFile::begin(&path).unwrap();
        let hosts: Vec<String> = (0..said.len()).map(|n| format!("n{n:03}.example")).collect();
        for (host, (software, version, open_registrations)) in hosts.iter().zip(&said) {
            let instance = Instance {
                software: software.clone(),
                version: version.clone(),
                open_registrations: *open_registrations,
                ..Instance::default()
            };
            file.push(row(host, &instance)).unwrap();
        }
        let mut instances = 0;
        file.finish(&mut |count| instances += count.instances).unwrap();
        prop_assert_eq!(usize::try_from(instances).unwrap(), said.len());
        let connection = Connection::open(&path).unwrap();
        let mut statement = connection.prepare("SELECT host, software, version, open_registrations FROM instances ORDER BY host").unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            found.push((row.get(0).unwrap(), (row.get(1).unwrap(), row.get(2).unwrap(), row.get(3).unwrap())));
        }
        let expect: Vec<(String, _)> = hosts.into_iter().zip(said).collect();
        prop_assert_eq!(found, expect);
    }
}

fn any_registrations() -> impl Strategy<Value = Option<bool>> {
    proptest::option::of(any::<bool>())
}

fn any_text() -> impl Strategy<Value = Option<String>> {
    let text = prop_oneof![
        "[a-z]{1,12}",
        "\\PC{0,30}",
        proptest::collection::vec(any::<char>(), 0..3000).prop_map(String::from_iter),
    ];
    proptest::option::of(text)
}

/// How each column of each table is declared: `public` with its name in the files, `asked`,
/// `plotted` or `private`.
const COLUMNS: &str = include_str!("../../../../dump/columns.toml");

/// `table.column` for all columns, and the public ones with their names in the files.
fn declared() -> (BTreeSet<String>, Vec<(String, String)>) {
    let tables: toml::Table = COLUMNS.parse().unwrap();
    let mut all = BTreeSet::new();
    let mut public = Vec::new();
    for (table, columns) in &tables {
        for (column, said) in columns.as_table().unwrap() {
            let name = format!("{table}.{column}");
            let said = said.as_table().unwrap();
            let text = |key: &str| said.get(key).map(|text| text.as_str().unwrap());
            if let Some(name_there) = text("as") {
                public.push((name.clone(), name_there.to_owned()));
            }
            let kinds = ["public", "asked", "plotted", "private"];
            let reasons: Vec<_> = kinds.into_iter().filter_map(text).collect();
            let is_said = matches!(reasons.as_slice(), [reason] if !reason.is_empty());
            let has_name = text("as").is_some() == text("public").is_some();
            assert!(
                is_said && has_name && said.len() == 1 + usize::from(text("as").is_some()),
                "{name} is not one of `public` with a name, `asked`, `plotted` and `private`, with a reason"
            );
            all.insert(name);
        }
    }
    (all, public)
}

/// Nothing is published by accident: a new column must be declared.
#[test]
fn every_column_of_the_census_is_declared_and_every_declared_one_is_there() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::SCHEMA.to_latest(&mut connection).unwrap();
    let sql = "SELECT tables.name || '.' || columns.name FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS columns \
        WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = connection.prepare(sql).unwrap();
    let found: rusqlite::Result<BTreeSet<String>> =
        statement.query_map([], |row| row.get(0)).unwrap().collect();
    assert_eq!(found.unwrap(), declared().0);
}

#[test]
fn what_is_read_for_the_files_and_written_into_the_table_are_the_public_columns() {
    let (_, public) = declared();
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::SCHEMA.to_latest(&mut connection).unwrap();
    let statement = connection.prepare(LISTED).unwrap();
    let read: BTreeSet<_> = statement
        .column_names()
        .iter()
        .map(|name| format!("hosts.{name}"))
        .collect();
    let expect: BTreeSet<_> = public.iter().map(|(column, _)| column.clone()).collect();
    assert_eq!(read, expect);
    assert_eq!(statement.column_count(), expect.len());

    let file = Connection::open_in_memory().unwrap();
    file.execute_batch(TABLE).unwrap();
    let statement = file.prepare("SELECT * FROM instances").unwrap();
    let written: BTreeSet<_> = statement
        .column_names()
        .iter()
        .map(ToString::to_string)
        .collect();
    let expect: BTreeSet<_> = public.into_iter().map(|(_, name)| name).collect();
    assert_eq!(written, expect);
}
