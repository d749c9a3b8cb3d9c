//! The gateway's control connection in both directions: lines of bounded length, the same wherever
//! they are cut.

use crate::input::{Trickle, is_canonical, pieces, run, survives_the_way};
use gateway::control::{Answer, REQUEST_LINE_BYTES_MAX, Request};
use gateway::fuzzing;
use local_socket::{Ask as _, WireError};
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
    let lines = data.split(|&byte| byte == b'\n');
    for answer in lines.flat_map(Request::parse::<Answer>) {
        survives_the_way(&answer);
    }
}

fn requests(pieces: &[&[u8]]) -> (Vec<Request>, String) {
    let mut reader = BufReader::with_capacity(64, Trickle::new(pieces));
    let mut found = Vec::new();
    loop {
        match run(fuzzing::request(&mut reader)) {
            Ok(request) => found.push(request),
            Err(WireError::NotUnderstood(error)) => return (found, error.to_string()),
            Err(error) => {
                let is_long = pieces.concat().len() > REQUEST_LINE_BYTES_MAX;
                assert!(is_long || matches!(error, WireError::Ended));
                return (found, error.to_string());
            }
        }
    }
}
