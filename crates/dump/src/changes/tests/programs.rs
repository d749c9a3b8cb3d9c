//! The mirror program of docs/changes.md, in another language.
//! Without Python the tests are skipped, or fail where `FEDICENSUS_E2E` is `required`.

use std::process::{Command, Output};

use super::*;

const DOCUMENT: &str = include_str!("../../../../../docs/changes.md");

fn program() -> &'static str {
    DOCUMENT
        .split_once("```python\n")
        .and_then(|(_, rest)| rest.split_once("```"))
        .map(|(program, _)| program)
        .expect("the document has the program")
}

/// Follows the census's files from `state`. `None` without Python.
fn follow_by_python(world: &World, state: &Path) -> Option<Output> {
    let days = world
        .files()
        .into_keys()
        .filter(|name| name.ends_with(".ndjson"));
    let mut python = Command::new("python3");
    python.args(["-c", program()]).arg(state).args(days);
    kit::output(python.current_dir(world.folder()))
}

fn write_whole(world: &World, state: &Path) {
    let mut lines = String::new();
    for instance in world.published.as_ref().unwrap() {
        lines += &serde_json::to_string(instance).unwrap();
        lines.push('\n');
    }
    std::fs::write(state, lines).unwrap();
}

fn rows_in(state: &Path) -> Vec<Row> {
    std::fs::read_to_string(state)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_mirror_of_the_documentation_follows_and_sees_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut world = World::new();
    let odd = "\u{0}\u{7f}\t\u{8}\u{1f}\"\\/\u{2028}\u{1f600}ü</";
    for host in ["a.example", "b.example", "leaves.example", "z.example"] {
        world.list(host, odd);
    }
    world.publish(MIDNIGHT);
    write_whole(&world, &state);
    world.list("b.example", "2");
    world.register("b.example", Some(true));
    world.list("n.example", odd);
    world.set("a.example", Standing::Died);
    world.publish(MIDNIGHT + HOUR);
    let to = Some("b.example".to_owned());
    world.set("z.example", Standing::Moved { to });
    world.set("leaves.example", Standing::Withdrawn);
    world.publish(MIDNIGHT + DAY);
    let Some(output) = follow_by_python(&world, &state) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(rows_in(&state), held(&world.mirror()));
    // Again from the state that it wrote, once without changes and once with one.
    assert!(follow_by_python(&world, &state).unwrap().status.success());
    world.register("b.example", Some(false));
    world.publish(MIDNIGHT + DAY + 60);
    assert!(follow_by_python(&world, &state).unwrap().status.success());
    assert_eq!(rows_in(&state), held(&world.mirror()));
    world.list("a.example", "3");
    world.publish(MIDNIGHT + DAY + HOUR);
    assert!(follow_by_python(&world, &state).unwrap().status.success());
    assert_eq!(rows_in(&state), held(&world.mirror()));
    // A dump in between was lost.
    world.list("c.example", "1");
    world.published = Some(world.rows());
    world.list("d.example", "1");
    world.publish(MIDNIGHT + 2 * DAY);
    let output = follow_by_python(&world, &state).unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("take the whole list"), "{said}");
}
