//! The gateway's control connection in both directions: lines of bounded length, the same wherever
//! they are cut.

use crate::input::{Trickle, is_canonical, pieces, run, survives_the_way};
use gateway::control::{REQUEST_LINE_BYTES_MAX, Request};
use gateway::{LineError, fuzzing};
use tokio::io::BufReader;

pub fn check(data: &[u8]) {
    let whole = requests(&[data]);
    assert_eq!(whole, requests(&pieces(data)));
    for request in &whole.0 {
        survives_the_way(request);
        if let Request::Open { check, host, .. } = request {
            is_canonical(host);
            let id = check.as_str();
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
    if let Ok(answer) = run(fuzzing::answer(&mut BufReader::new(data))) {
        survives_the_way(&answer);
    }
}

/// All requests, and why there are no more.
fn requests(pieces: &[&[u8]]) -> (Vec<Request>, String) {
    let mut reader = BufReader::with_capacity(64, Trickle::new(pieces));
    let mut found = Vec::new();
    loop {
        match run(fuzzing::request(&mut reader)) {
            Ok(request) => found.push(request),
            Err(LineError::NotUnderstood(error)) => return (found, error.to_string()),
            Err(error) => {
                let is_long = pieces.concat().len() > REQUEST_LINE_BYTES_MAX;
                assert!(is_long || error.is_end());
                return (found, error.to_string());
            }
        }
    }
}
