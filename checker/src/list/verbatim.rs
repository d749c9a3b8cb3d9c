//! Passes on the lines of a text unchanged: the list of public suffixes, or a host's proof.
//!
//! Turns the pieces of a body into `suffix_lines` events. Rejects bytes that are not UTF-8, control
//! characters, a line over its bound, and more text than such a document has. The meaning of the
//! text is judged elsewhere, because this is the untrusted side.

use protocol::Event;
use protocol::event::is_suffix_line;
use protocol::limits::{PEERS_LINE_BYTES_MAX, SUFFIX_LINE_BYTES_MAX, SUFFIX_LINES_PER_LINE_MAX};
use tokio::sync::mpsc::Receiver;

use super::not_a_list::NotAList;
use super::text::{Line, each_line};
use crate::emit::{EmitError, Emitter, Fault};
use crate::peers::feed::{Piece, Pieces};
use crate::peers::sink::{Closed, Full};

/// Bytes of an empty `suffix_lines` line.
const FRAME_BYTES: usize = r#"{"suffix_lines":{"lines":[]}}"#.len();

#[derive(Debug)]
pub(super) struct TextSink {
    emitter: Emitter,
    batch: Vec<String>,
    batch_bytes: usize,
    text_bytes: usize,
    text_bytes_max: usize,
    failed: Option<EmitError>,
    full: bool,
}

impl TextSink {
    /// Takes at most `text_bytes_max` bytes of lines, their ends included.
    pub(super) fn new(emitter: Emitter, text_bytes_max: usize) -> Self {
        Self {
            emitter,
            batch: Vec::new(),
            batch_bytes: FRAME_BYTES,
            text_bytes: 0,
            text_bytes_max,
            failed: None,
            full: false,
        }
    }

    fn take(&mut self, line: &str) -> Result<(), Full> {
        let with_end = line.len().saturating_add(1);
        self.text_bytes = self.text_bytes.saturating_add(with_end);
        if self.text_bytes > self.text_bytes_max {
            return self.stop();
        }
        // At most twice its length on the wire, because it has no control characters, plus quotes
        // and a comma.
        let bytes = line.len().saturating_mul(2).saturating_add(3);
        let full_line = self.batch_bytes.saturating_add(bytes) > PEERS_LINE_BYTES_MAX;
        if full_line || self.batch.len() >= SUFFIX_LINES_PER_LINE_MAX {
            self.flush()?;
        }
        self.batch_bytes = self.batch_bytes.saturating_add(bytes);
        self.batch.push(line.to_owned());
        Ok(())
    }

    pub(super) fn close(mut self) -> Result<Closed, Fault> {
        let flushed = self.flush();
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        Ok(Closed {
            emitter: self.emitter,
            dropped: 0,
            full: self.full || flushed == Err(Full),
        })
    }

    fn flush(&mut self) -> Result<(), Full> {
        let lines = std::mem::take(&mut self.batch);
        let bytes = std::mem::replace(&mut self.batch_bytes, FRAME_BYTES);
        if lines.is_empty() {
            return Ok(());
        }
        if self.failed.is_some() || !self.emitter.has_room(bytes) {
            return self.stop();
        }
        if let Err(error) = self.emitter.emit(&Event::SuffixLines { lines }) {
            self.failed = Some(error);
            return self.stop();
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Full> {
        self.full = true;
        Err(Full)
    }
}

/// Reads a body to its end, to a line that such a text can't have, or until the sink is full.
pub(super) fn read_text(queue: Receiver<Piece>, sink: &mut TextSink) -> Result<(), NotAList> {
    let mut is_list = true;
    each_line(Pieces::plain(queue), SUFFIX_LINE_BYTES_MAX, |line| {
        let text = match line {
            Line::Whole(line) => str::from_utf8(line).ok(),
            Line::TooLong => None,
        };
        if let Some(line) = text.filter(|line| is_suffix_line(line)) {
            sink.take(line)
        } else {
            is_list = false;
            Err(Full)
        }
    });
    if is_list { Ok(()) } else { Err(NotAList) }
}
