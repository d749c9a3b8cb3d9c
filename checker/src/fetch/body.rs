//! Streams a body: decodes and counts it, and stops at its bound.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use flate2::write::GzDecoder;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::failure::Failure;
use super::progress::Progress;

/// Encoded bytes decoded in one step. One byte inflates to at most 1032, so one step holds at most
/// half a MiB.
const GZIP_STEP_BYTES: usize = 512;

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Gzip,
}

/// A body that is read piece by piece.
#[derive(Debug)]
pub struct Body {
    response: Response,
    gunzip: Option<Gunzip>,
    left: u64,
    over: bool,
    deadline: Instant,
    progress: Progress,
    counted: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Gunzip {
    decoder: GzDecoder<Vec<u8>>,
    encoded: Bytes,
    ended: bool,
}

impl Body {
    pub(super) fn new(
        response: Response,
        coding: Coding,
        bytes_max: u64,
        deadline: Instant,
        progress: Progress,
        counted: Arc<AtomicU64>,
    ) -> Self {
        let gunzip = match coding {
            Coding::Plain => None,
            Coding::Gzip => Some(Gunzip {
                decoder: GzDecoder::new(Vec::new()),
                encoded: Bytes::new(),
                ended: false,
            }),
        };
        Self {
            response,
            gunzip,
            left: bytes_max,
            over: false,
            deadline,
            progress,
            counted,
        }
    }

    /// The next decoded bytes; `None` at the end.
    ///
    /// # Errors
    /// - [`Failure::TooLarge`] when the bound is passed, after the bytes within it were returned
    /// - [`Failure::BrokenOff`] when the body ends early or is badly encoded
    /// - [`Failure::TooSlow`] when the body arrives below the least rate
    /// - [`Failure::Deadline`] when the check's time has ended
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.over {
            return Err(Failure::TooLarge);
        }
        let Some(mut piece) = self.decoded().await? else {
            return Ok(None);
        };
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        if piece.len() > left {
            self.over = true;
            piece.truncate(left);
        }
        let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(bytes);
        self.counted.fetch_add(bytes, Ordering::Relaxed);
        Ok(Some(piece))
    }

    pub async fn whole(&mut self) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    async fn received(&mut self) -> Result<Option<Bytes>, Failure> {
        let start = Instant::now();
        let due = start.checked_add(self.progress.patience());
        let until = due.map_or(self.deadline, |due| due.min(self.deadline));
        let mut outcome = timeout_at(until, self.response.chunk()).await;
        if outcome.is_err() {
            // If this process was suspended, data may have arrived that the connection's task has
            // not read yet. Let that task run, then look once more.
            tokio::task::yield_now().await;
            outcome = timeout_at(until, self.response.chunk()).await;
        }
        match outcome {
            Ok(Ok(piece)) => {
                let bytes = piece.as_ref().map_or(0, Bytes::len);
                self.progress.advance(start.elapsed(), bytes);
                Ok(piece)
            }
            Ok(Err(_broken)) => Err(Failure::BrokenOff),
            Err(_elapsed) if Instant::now() >= self.deadline => Err(Failure::Deadline),
            Err(_elapsed) => Err(Failure::TooSlow),
        }
    }

    async fn decoded(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.gunzip.is_none() {
            return self.received().await;
        }
        loop {
            let empty = self.gunzip.as_ref().is_none_or(Gunzip::wants_more);
            let received = if empty { self.received().await? } else { None };
            let Some(gunzip) = &mut self.gunzip else {
                return Ok(received);
            };
            match received {
                Some(encoded) => gunzip.encoded = encoded,
                None if empty => gunzip.finish()?,
                None => {}
            }
            gunzip.step()?;
            let piece = std::mem::take(gunzip.decoder.get_mut());
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
            if gunzip.ended {
                return Ok(None);
            }
            // Decompression that never waits for the network must not starve the deadline.
            tokio::task::consume_budget().await;
        }
    }
}

impl Gunzip {
    fn wants_more(&self) -> bool {
        self.encoded.is_empty() && !self.ended
    }

    fn step(&mut self) -> Result<(), Failure> {
        let encoded = self
            .encoded
            .split_to(self.encoded.len().min(GZIP_STEP_BYTES));
        let mut rest = &encoded[..];
        while !rest.is_empty() && !self.ended {
            let taken = self
                .decoder
                .write(rest)
                .map_err(|_corrupt| Failure::BrokenOff)?;
            if taken == 0 {
                // The end of the compressed stream. Bytes after it are ignored.
                self.finish()?;
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.ended = true;
        self.encoded.clear();
        // An empty body is valid in every encoding.
        if self.decoder.header().is_none() {
            return Ok(());
        }
        self.decoder
            .try_finish()
            .map_err(|_corrupt| Failure::BrokenOff)
    }
}
