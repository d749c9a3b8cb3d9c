//! The launcher's frames as the orchestrator reads them: bounded, the same wherever they are cut,
//! and nothing after the last one.

use crate::input::{Trickle, pieces, run};
use launcher::fuzzing::{container, frames};
use launcher::wire::FRAME_BYTES_MAX;
use launcher::{ClientError, Frame};
use protocol::container::{FaultKind, LaunchFault};

pub fn check(data: &[u8]) {
    assert_eq!(read(&[data]), read(&pieces(data)));
    // The answer to all other requests.
    if let Ok(answer) = serde_json::from_slice::<launcher::wire::Answer>(data) {
        crate::input::survives_the_way(&answer);
    }

    // A frame from a launcher is read with the same meaning.
    let fault = LaunchFault {
        kind: FaultKind::EngineError,
        message: String::from_utf8_lossy(data).into_owned(),
    };
    let written = run(frames(data, &fault));
    let (found, _) = read(&pieces(&written));
    let stdout: Vec<u8> = found
        .iter()
        .filter_map(|frame| match frame {
            Frame::Stdout(bytes) => Some(&bytes[..]),
            _ => None,
        })
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(stdout, data);
    assert_eq!(found.last(), Some(&Frame::Fault(fault)));
}

fn read(pieces: &[&[u8]]) -> (Vec<Frame>, String) {
    let mut container = container(Trickle::new(pieces));
    let mut found: Vec<Frame> = Vec::new();
    loop {
        match run(container.next()) {
            Ok(frame) => {
                if let Frame::Stdout(bytes) | Frame::Stderr(bytes) = &frame {
                    assert!(bytes.len() <= FRAME_BYTES_MAX);
                }
                let is_after_last = matches!(found.last(), Some(Frame::End(_) | Frame::Fault(_)));
                assert!(!is_after_last, "{frame:?} after the last frame");
                found.push(frame);
            }
            Err(error) => {
                let ended = matches!(found.last(), Some(Frame::End(_) | Frame::Fault(_)));
                assert_eq!(matches!(error, ClientError::Over), ended);
                return (found, error.to_string());
            }
        }
    }
}
