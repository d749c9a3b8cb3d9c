//! Writes names as `peers` lines. A full line is printed at once, so that memory does not grow with
//! the list.
//!
//! Takes elements as they were sent and prints lines within the wire's bounds. Stops at the names
//! or bytes that a check may print. Elements that are no name are counted, and a host's own name is
//! left out of its peers.

use protocol::limits::{PEERS_LINE_BYTES_MAX, PEERS_PER_LINE_MAX};
use protocol::{Event, Host, PeersOutcome};

use super::name::peer_name;
use crate::emit::{EmitError, Emitter, Fault};

/// Bytes of an empty `peers` line.
const FRAME_BYTES: usize = r#"{"peers":{"hosts":[]}}"#.len();

/// Bytes that a name takes beyond itself: quotes and a comma.
const NAME_FRAME_BYTES: usize = 3;

#[derive(Debug)]
pub(crate) struct Sink {
    emitter: Emitter,
    own: Option<Host>,
    batch: Vec<Host>,
    batch_bytes: usize,
    given: u64,
    peers_max: u64,
    dropped: u64,
    failed: Option<EmitError>,
    full: bool,
}

/// The sink takes no more: a bound was reached or stdout failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// The result of a sink after all its names were printed.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) emitter: Emitter,
    /// Elements that were no name.
    pub(crate) dropped: u64,
    /// Whether a bound was reached.
    pub(crate) full: bool,
}

impl Sink {
    /// A sink for `peers_max` names. The name `own` is skipped.
    pub(crate) fn new(emitter: Emitter, own: Option<Host>, peers_max: u64) -> Self {
        Self {
            emitter,
            own,
            batch: Vec::new(),
            batch_bytes: FRAME_BYTES,
            given: 0,
            peers_max,
            dropped: 0,
            failed: None,
            full: false,
        }
    }

    /// Takes an element that is a string.
    pub(crate) fn offer(&mut self, element: &str) -> Result<(), Full> {
        let Some(host) = peer_name(element) else {
            self.drop_one();
            return Ok(());
        };
        if self.own.as_ref() == Some(&host) {
            return Ok(());
        }
        if self.given >= self.peers_max {
            return self.stop();
        }
        let bytes = host.as_str().len().saturating_add(NAME_FRAME_BYTES);
        let line = self.batch_bytes.saturating_add(bytes);
        if self.batch.len() >= PEERS_PER_LINE_MAX || line > PEERS_LINE_BYTES_MAX {
            self.flush()?;
        }
        self.batch_bytes = self.batch_bytes.saturating_add(bytes);
        self.batch.push(host);
        self.given = self.given.saturating_add(1);
        Ok(())
    }

    /// Counts an element that is no string.
    pub(crate) fn drop_one(&mut self) {
        self.dropped = self.dropped.saturating_add(1);
    }

    /// Whether a bound was reached.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Names and dropped elements so far.
    pub(crate) fn taken(&self) -> u64 {
        self.given.saturating_add(self.dropped)
    }

    /// Prints the buffered names and how the list ended.
    pub(crate) fn finish(self, outcome: PeersOutcome) -> Result<Emitter, Fault> {
        let mut closed = self.close()?;
        let outcome = if closed.full {
            PeersOutcome::Truncated
        } else {
            outcome
        };
        closed.emitter.emit(&Event::PeersEnd {
            outcome,
            dropped: closed.dropped,
        })?;
        Ok(closed.emitter)
    }

    pub(crate) fn close(mut self) -> Result<Closed, Fault> {
        let flushed = self.flush();
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        Ok(Closed {
            emitter: self.emitter,
            dropped: self.dropped,
            full: self.full || flushed == Err(Full),
        })
    }

    fn flush(&mut self) -> Result<(), Full> {
        let hosts = std::mem::take(&mut self.batch);
        let bytes = std::mem::replace(&mut self.batch_bytes, FRAME_BYTES);
        if hosts.is_empty() {
            return Ok(());
        }
        if self.failed.is_some() || !self.emitter.has_room(bytes) {
            return self.stop();
        }
        if let Err(error) = self.emitter.emit(&Event::Peers { hosts }) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::tests::Kept;

    fn sink(kept: &Kept, bytes_max: u64, peers_max: u64) -> Sink {
        let emitter = Emitter::new(Box::new(kept.clone()), bytes_max);
        let own = Host::parse("own.example").unwrap();
        Sink::new(emitter, Some(own), peers_max)
    }

    fn lines(kept: &Kept) -> Vec<usize> {
        let events = kept.events();
        let lines = events.iter().map(|event| {
            if let Event::Peers { hosts } = event {
                hosts.len()
            } else {
                0
            }
        });
        lines.filter(|&hosts| hosts > 0).collect()
    }

    fn end(outcome: PeersOutcome, dropped: u64) -> Option<Event> {
        Some(Event::PeersEnd { outcome, dropped })
    }

    #[test]
    fn lines_hold_500_names() {
        let kept = Kept::default();
        let mut sink = sink(&kept, 1 << 20, 10_000);
        for number in 0..1001 {
            sink.offer(&format!("h{number}.example")).unwrap();
        }
        sink.offer("OWN.example.").unwrap();
        sink.offer("no name").unwrap();
        sink.finish(PeersOutcome::Complete).unwrap();
        assert_eq!(lines(&kept), [500, 500, 1]);
        assert_eq!(kept.events().pop(), end(PeersOutcome::Complete, 1));
    }

    #[test]
    fn lines_of_long_names_stay_within_their_bytes() {
        let kept = Kept::default();
        let mut sink = sink(&kept, 1 << 20, 10_000);
        let long = format!("{0}.{0}.{0}.example", "a".repeat(63));
        for _ in 0..600 {
            sink.offer(&long).unwrap();
        }
        let _emitter = sink.finish(PeersOutcome::Complete).unwrap();
        let per_line = (PEERS_LINE_BYTES_MAX - FRAME_BYTES) / (long.len() + NAME_FRAME_BYTES);
        assert_eq!(lines(&kept).first(), Some(&per_line));
        assert_eq!(lines(&kept).iter().sum::<usize>(), 600);
    }

    #[test]
    fn the_name_over_the_bound_ends_the_list() {
        let kept = Kept::default();
        let mut sink = sink(&kept, 1 << 20, 2);
        sink.offer("a.example").unwrap();
        sink.offer("b.example").unwrap();
        assert_eq!(sink.offer("c.example"), Err(Full));
        assert!(sink.is_full());
        sink.finish(PeersOutcome::Truncated).unwrap();
        // What was taken before the bound is still printed.
        assert_eq!(lines(&kept), [2]);
    }

    #[test]
    fn stdout_never_goes_over_its_bound() {
        let kept = Kept::default();
        let mut sink = sink(&kept, 20_000, 100_000);
        let ended = (0..100_000).find(|number| sink.offer(&format!("h{number}.example")).is_err());
        assert!(ended.is_some());
        let _emitter = sink.finish(PeersOutcome::Complete).unwrap();
        assert!(kept.len() <= 20_000);
        assert_eq!(kept.events().pop(), end(PeersOutcome::Truncated, 0));
    }
}
