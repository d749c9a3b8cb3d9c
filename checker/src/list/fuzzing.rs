//! Entry point for the fuzz target `lists`: reads a body in pieces and returns what was printed.
//! Compiled only for fuzzing.

use bytes::Bytes;
use protocol::ListFormat;
use protocol::limits::STDOUT_BYTES_MAX;
use tokio::sync::mpsc::{Receiver, channel};

use super::format::read_names;
use super::text_bytes_max;
use super::verbatim::{TextSink, read_text};
use crate::emit::Emitter;
use crate::peers::feed::{Cut, Piece};
use crate::peers::fuzzing::Kept;
use crate::peers::sink::Sink;

/// The result of reading a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Lines as they go to stdout, without the last ones.
    pub printed: Vec<u8>,
    /// Whether the body was a list of that format.
    pub is_list: bool,
    /// Elements that were no name.
    pub dropped: u64,
    /// Whether a bound was reached.
    pub full: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    Cut,
}

/// Reads a body that comes in `pieces` with list mode's own reader, and takes at most `names_max`
/// names. `None` if stdout fails.
pub fn read(format: ListFormat, pieces: &[&[u8]], end: End, names_max: u64) -> Option<Reading> {
    let queue = queued(pieces, end)?;
    let kept = Kept::default();
    let emitter = Emitter::new(Box::new(kept.clone()), STDOUT_BYTES_MAX);
    let (is_list, closed) = if let Some(bytes_max) = text_bytes_max(format) {
        let mut sink = TextSink::new(emitter, bytes_max);
        (read_text(queue, &mut sink).is_ok(), sink.close().ok()?)
    } else {
        let mut sink = Sink::new(emitter, None, names_max);
        let is_list = read_names(format, queue, &mut sink).is_ok();
        (is_list, sink.close().ok()?)
    };
    Some(Reading {
        printed: kept.take(),
        is_list,
        dropped: closed.dropped,
        full: closed.full,
    })
}

fn queued(pieces: &[&[u8]], end: End) -> Option<Receiver<Piece>> {
    let (sender, queue) = channel(pieces.len().saturating_add(1));
    for piece in pieces {
        sender.try_send(Ok(Bytes::copy_from_slice(piece))).ok()?;
    }
    if end == End::Cut {
        sender.try_send(Err(Cut)).ok()?;
    }
    Some(queue)
}
