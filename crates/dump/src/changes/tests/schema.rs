use serde_json::{Value, json};

use super::*;

fn validator() -> jsonschema::Validator {
    let schema = serde_json::from_str(CHANGE_SCHEMA).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// The lines of a census's newest file, which has every kind of line.
fn each_kind() -> Vec<Value> {
    let mut world = World::new();
    for host in ["changes", "dies", "leaves", "moves", "strays"] {
        world.list(&format!("{host}.example"), "1");
    }
    world.set("returns.example", Standing::Died);
    world.list("returns.example", "1");
    world.publish(MIDNIGHT);
    world.set("returns.example", Standing::Died);
    world.publish(MIDNIGHT + 1);
    world.list("returns.example", "1");
    world.list("changes.example", "2");
    world.list("appears.example", "2");
    world.set("dies.example", Standing::Died);
    world.set("leaves.example", Standing::Withdrawn);
    let to = Some("appears.example".to_owned());
    world.set("moves.example", Standing::Moved { to });
    world.set("strays.example", Standing::Moved { to: None });
    world.publish(MIDNIGHT + 2);
    String::from_utf8(world.files()["2026-11-22.ndjson"].clone())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_line_that_is_written_is_of_the_published_schema() {
    let validator = validator();
    let lines = each_kind();
    for line in &lines {
        assert!(validator.is_valid(line), "{line}");
    }
    for kind in [
        "dump", "appeared", "returned", "changed", "died", "moved", "left",
    ] {
        assert!(lines.iter().any(|line| line["change"] == kind), "{kind}");
    }
}

#[test]
fn a_line_that_lacks_or_adds_a_member_or_has_a_wrong_one_is_not_of_the_schema() {
    let validator = validator();
    for line in each_kind() {
        let members: Vec<_> = line.as_object().unwrap().keys().cloned().collect();
        for member in members {
            let mut lacking = line.clone();
            lacking.as_object_mut().unwrap().remove(&member);
            // A move may have no listed target.
            assert_eq!(validator.is_valid(&lacking), member == "to", "{lacking}");
            let mut wrong = line.clone();
            wrong[&member] = json!(["wrong"]);
            assert!(!validator.is_valid(&wrong), "{wrong}");
        }
        let mut more = line.clone();
        more["users"] = json!(7);
        assert!(!validator.is_valid(&more), "{more}");
    }
    let named = json!({"change": "left", "time": "2026-11-22T00:00:00Z", "host": "a.example"});
    assert!(!validator.is_valid(&named), "{named}");
}
