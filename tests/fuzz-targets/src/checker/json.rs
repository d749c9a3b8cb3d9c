//! The bounded JSON reader compared with a plain one: it rejects invalid or too deep JSON, and
//! accepts everything within its bounds.

use crate::input::pieces;
use checker::documents::json::{BYTE_ORDER_MARK, Guard, Scalar, parse_document};
use protocol::limits::JSON_DEPTH_MAX;
use serde_json::Value;

pub fn check(document: &[u8]) {
    let text = document.strip_prefix(BYTE_ORDER_MARK).unwrap_or(document);
    let mut guard = Guard::default();
    let (mut seen, mut held) = (0, true);
    for piece in pieces(text) {
        let (more, guarded) = guard.feed(piece);
        (seen, held) = (seen + more, guarded.is_ok());
        if !held {
            break;
        }
    }
    let (seen_at_once, guarded) = Guard::default().feed(text);
    assert_eq!((seen, held), (seen_at_once, guarded.is_ok()));

    let found = parse_document::<Scalar>(document);
    match serde_json::from_slice::<Value>(text) {
        Ok(value) => {
            let is_deep = depth(text) > JSON_DEPTH_MAX;
            let Ok(found) = found else {
                assert!(is_deep, "refused for nothing");
                return;
            };
            assert!(!is_deep, "deeper than it may be");
            let expected = match value {
                Value::String(text) => Scalar::Text(text),
                Value::Bool(truth) => Scalar::Truth(truth),
                Value::Number(number) => number.as_i64().map_or(Scalar::Other, Scalar::Integer),
                Value::Null => Scalar::Null,
                Value::Array(_) | Value::Object(_) => Scalar::Other,
            };
            assert_eq!(found, expected);
        }
        // In skipped parts, a number out of range or half of a surrogate pair does no harm.
        Err(_) => assert!(found.is_err() || found.ok() == Some(Scalar::Other)),
    }
}

/// Depth of a text known to be JSON. The parsed value does not suffice: it lacks the first value of
/// a duplicate key.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
