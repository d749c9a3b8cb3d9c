//! Requests at the launcher's socket: one line with a check's id and a host, and nothing more.

use crate::input::{Trickle, is_canonical, pieces, run, survives_the_way};
use launcher::fuzzing::request;
use launcher::wire::{REQUEST_BYTES_MAX, Request};
use serde_json::Value;

pub fn check(data: &[u8]) {
    let whole = run(request(&mut Trickle::new(&[data])));
    let in_pieces = run(request(&mut Trickle::new(&pieces(data))));
    let Some(found) = whole else {
        return;
    };
    assert_eq!(in_pieces.as_ref(), Some(&found));
    assert!(data.len() <= REQUEST_BYTES_MAX && data.ends_with(b"\n"));
    survives_the_way(&found);
    // No member except the type's: no request can influence how a container is made.
    let value: Value = serde_json::from_slice(data).expect("it is JSON");
    let (kind, members) = value
        .as_object()
        .filter(|object| object.len() == 1)
        .and_then(|object| object.iter().next())
        .expect("an object of one member");
    let mut members: Vec<_> = members.as_object().expect("an object").keys().collect();
    members.sort();
    match &found {
        Request::Launch { check, host } => {
            assert_eq!(
                (kind.as_str(), &members[..]),
                ("launch", &[&"check".to_owned(), &"host".to_owned()][..])
            );
            is_safe_as_a_path(check);
            is_canonical(host);
        }
        Request::Kill { check } => {
            assert_eq!(
                (kind.as_str(), &members[..]),
                ("kill", &[&"check".to_owned()][..])
            );
            is_safe_as_a_path(check);
        }
        Request::List {} | Request::Status {} => assert!(members.is_empty()),
    }
}

fn is_safe_as_a_path(check: &protocol::CheckId) {
    let id = check.as_str();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
}
