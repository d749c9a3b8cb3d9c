//! The files have exactly the columns that are declared public. `crates/store` tests the same for
//! the query and for the published table.

use std::collections::BTreeSet;

use super::*;

/// The public columns of `columns.toml`, with their names in the files.
fn public() -> BTreeSet<String> {
    let tables: toml::Table = include_str!("../../columns.toml").parse().unwrap();
    let columns = tables
        .values()
        .flat_map(|table| table.as_table().unwrap().values());
    columns
        .filter_map(|said| said.get("as"))
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_files_of_rows_and_their_schema_have_exactly_the_public_columns() {
    let files = written(&[listed("a.example")]);
    let line: serde_json::Value = serde_json::from_slice(&files["data/instances.ndjson"]).unwrap();
    let members: BTreeSet<_> = line.as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, public());

    let mut reader = csv::Reader::from_reader(files["data/instances.csv"].as_slice());
    let head: BTreeSet<_> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    assert_eq!(head, public());

    let schema: serde_json::Value =
        serde_json::from_slice(&files["data/schema/instance.json"]).unwrap();
    let described: BTreeSet<_> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(described, public());
    let required = schema["required"].as_array().unwrap();
    let required: BTreeSet<_> = required
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(required, public());
}
