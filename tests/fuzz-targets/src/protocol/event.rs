//! One line of a checker: an object with exactly one known key, or no event.

use crate::input::survives_the_way;
use protocol::{Event, parse_line};

pub fn check(line: &[u8]) {
    let Ok(event) = parse_line::<Event>(line) else {
        return;
    };
    survives_the_way(&event);
    let value: serde_json::Value = serde_json::from_slice(line).expect("it is JSON");
    let members = value.as_object().expect("an object");
    assert_eq!(members.len(), 1);
    assert!(members.values().all(serde_json::Value::is_object));
    if event.is_within_bounds()
        && let Event::Peers { hosts } = &event
    {
        hosts.iter().for_each(crate::input::is_canonical);
    }
}
