//! The lab's names file: the last line that matches wins, and a bad line changes nothing.

use crate::input::OWN;
use gateway::fuzzing::look_up;
use protocol::Host;

pub fn check(file: &[u8]) {
    let text = String::from_utf8_lossy(file);
    let named = text.split_ascii_whitespace().filter_map(|word| {
        let name = word.strip_prefix("*.").map(|parent| format!("x.{parent}"));
        Host::parse(name.as_deref().unwrap_or(word)).ok()
    });
    for host in named.take(8).chain([OWN.clone()]) {
        let last = file
            .split(|&byte| byte == b'\n')
            .rev()
            .find_map(|line| look_up(line, &host));
        assert_eq!(look_up(file, &host), last, "{host}");
    }
}
