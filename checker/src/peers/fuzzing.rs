//! Entry point for the fuzz target `peers`: reads one answer in pieces and returns what was
//! printed. Compiled only for fuzzing.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use protocol::limits::STDOUT_BYTES_MAX;
use protocol::{Host, PeersOutcome};
use tokio::sync::mpsc;

use super::feed::Pieces;
use super::page::{Shape, read_page};
use super::sink::Sink;
use super::software::{ENDPOINTS, lemmy, mastodon, misskey};
use crate::emit::Emitter;

#[derive(Debug, Clone, Copy)]
pub struct Form(&'static Shape);

/// All of them. `PieFed` has Lemmy's.
pub fn forms() -> impl Iterator<Item = Form> {
    let of_modules = [
        &mastodon::SHAPE,
        &misskey::SHAPE,
        &lemmy::SHAPE,
        &lemmy::SITE_SHAPE,
    ];
    let of_rows = ENDPOINTS.iter().map(|endpoint| &endpoint.shape);
    of_modules.into_iter().chain(of_rows).map(Form)
}

/// The result of reading an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Lines as they go to stdout.
    pub printed: Vec<u8>,
    /// Whether it was such a list, its number of elements, and the next page's cursor; `None` if it
    /// was malformed.
    pub page: Option<(bool, u64, Option<String>)>,
}

/// Reads an answer that comes in `pieces` with the check's own reader, and takes at most
/// `peers_max` names. `None` if stdout fails.
pub fn read(form: Form, pieces: &[&[u8]], own: &Host, peers_max: u64) -> Option<Reading> {
    let (sender, queue) = mpsc::channel(pieces.len().max(1));
    for piece in pieces {
        sender.try_send(Ok(Bytes::copy_from_slice(piece))).ok()?;
    }
    drop(sender);
    let kept = Kept::default();
    let emitter = Emitter::new(Box::new(kept.clone()), STDOUT_BYTES_MAX);
    let mut sink = Sink::new(emitter, Some(own.clone()), peers_max);
    let page = read_page(Pieces::guarded(queue), form.0, &mut sink).ok();
    sink.finish(PeersOutcome::Complete).ok()?;
    Some(Reading {
        printed: kept.take(),
        page: page.map(|page| (page.is_list, page.items, page.next)),
    })
}

/// Captures printed bytes in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
