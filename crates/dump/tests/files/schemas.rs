//! Written files match their JSON Schemas, and wrong files do not.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::*;

fn validator(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Validator {
    let schema: Value = serde_json::from_slice(&files[&format!("data/schema/{name}")]).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn fits(validator: &Validator, value: &Value) {
    if let Err(error) = validator.validate(value) {
        panic!("{error} at {}: {value}", error.instance_path());
    }
}

/// Whether a copy with a changed value still matches.
fn fits_with(validator: &Validator, value: &Value, at: &str, instead: Value) -> bool {
    let mut changed = value.clone();
    *changed.pointer_mut(at).unwrap() = instead;
    validator.is_valid(&changed)
}

fn rows() -> Vec<ListedRow> {
    let other = ListedRow {
        state: ListedState::Moving,
        instance: Instance::default(),
        ..listed("xn--bcher-kva.example")
    };
    vec![listed("a.example"), other]
}

#[test]
fn every_json_file_is_as_its_schema_says() {
    for rows in [rows(), Vec::new()] {
        let files = written(&rows);
        for name in ["index.json", "nodes.json", "software.json"] {
            let value = serde_json::from_slice(&files[&format!("data/{name}")]).unwrap();
            fits(&validator(&files, name), &value);
        }
        let of_a_line = validator(&files, "instance.json");
        let lines = String::from_utf8(files["data/instances.ndjson"].clone()).unwrap();
        for line in lines.lines() {
            fits(&of_a_line, &serde_json::from_str(line).unwrap());
        }
    }
}

#[test]
fn a_wrong_file_is_not_as_its_schema_says() {
    let files = written(&rows());
    let value = |place: &str| serde_json::from_slice::<Value>(&files[place]).unwrap();
    let check = |name: &str, value: &Value, wrong: &[(&str, Value)]| {
        let validator = validator(&files, name);
        fits(&validator, value);
        for (at, instead) in wrong {
            assert!(
                !fits_with(&validator, value, at, instead.clone()),
                "{name}: {at} = {instead}"
            );
        }
        for (key, _) in value.as_object().into_iter().flatten() {
            let mut less = value.clone();
            less.as_object_mut().unwrap().remove(key);
            assert!(!validator.is_valid(&less), "{name} without {key}");
        }
    };
    check(
        "index.json",
        &value("data/index.json"),
        &[
            ("/made", json!("yesterday")),
            ("/instances", json!(-1)),
            ("/schema_version", json!("1")),
            ("/files/0/sha256", json!("abc")),
            ("/files/0/bytes", json!(null)),
            ("/files/0/name", json!("../nodes.json")),
            ("/files/0/media_type", json!("")),
        ],
    );
    let line = String::from_utf8(files["data/instances.ndjson"].clone()).unwrap();
    check(
        "instance.json",
        &serde_json::from_str(line.lines().next().unwrap()).unwrap(),
        &[
            ("/host", json!("A.example")),
            ("/host", json!("nodots")),
            ("/state", json!("dead")),
            ("/version", json!(4)),
            ("/last_alive", json!(null)),
            ("/first_seen", json!("2026-11-22")),
            ("/open_registrations", json!("yes")),
            ("/open_registrations", json!(1)),
        ],
    );
    check(
        "nodes.json",
        &value("data/nodes.json"),
        &[("/0", json!("https://a.example")), ("/0", json!(1))],
    );
    check(
        "software.json",
        &value("data/software.json"),
        &[
            ("/software/0/instances", json!(0)),
            ("/software/0/software", json!(1)),
            ("/software/0/versions/0/version", json!(4.4)),
            ("/other_software", json!(0)),
        ],
    );
}
