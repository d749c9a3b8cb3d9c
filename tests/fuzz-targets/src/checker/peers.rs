//! A peers list of every software family as a stream. The cuts change nothing, names before a break
//! are kept, and only names are returned.

use crate::input::{OWN, is_canonical, pieces};
use checker::peers::fuzzing::{Reading, forms, read};
use checker::peers::peer_name;
use protocol::limits::LINE_BYTES_MAX;
use protocol::{Event, Host, PeersOutcome};

const PEERS_MAX: u64 = 40;

pub fn check(document: &[u8]) {
    for form in forms() {
        let whole = read(form, &[document], &OWN, PEERS_MAX).expect("stdout takes all");
        let names = names(&whole);
        assert_eq!(
            read(form, &pieces(document), &OWN, PEERS_MAX),
            Some(whole),
            "{form:?}: it matters how an answer is cut"
        );
        // A broken connection loses no earlier name and adds none.
        let half = read(form, &[&document[..document.len() / 2]], &OWN, PEERS_MAX);
        assert!(names.starts_with(&self::names(&half.expect("stdout takes all"))));
    }
    if let Ok(text) = std::str::from_utf8(document) {
        text.split('"').filter_map(peer_name).for_each(|name| {
            is_canonical(&name);
            assert_eq!(peer_name(name.as_str()), Some(name));
        });
    }
}

fn names(reading: &Reading) -> Vec<Host> {
    let mut names = Vec::new();
    let mut ended = None;
    for line in reading.printed.split_inclusive(|&byte| byte == b'\n') {
        assert!(line.len() <= LINE_BYTES_MAX + 1 && line.ends_with(b"\n"));
        assert!(ended.is_none(), "something follows the list's end");
        match serde_json::from_slice(line).expect("an event") {
            Event::Peers { hosts } => names.extend(hosts),
            Event::PeersEnd { outcome, .. } => ended = Some(outcome),
            other => panic!("a list makes it say {other:?}"),
        }
    }
    names.iter().for_each(is_canonical);
    assert!(!names.contains(&OWN));
    assert!(names.len() as u64 <= PEERS_MAX);
    assert!(ended.is_some());
    if let Some((is_list, items, next)) = &reading.page {
        // Every name was an element of a list.
        assert!(names.len() as u64 <= *items && (*is_list || *items == 0));
        assert_eq!(ended, Some(PeersOutcome::Complete));
        assert!(
            next.as_ref()
                .is_none_or(|next| (1..=512).contains(&next.len()))
        );
    }
    names
}
