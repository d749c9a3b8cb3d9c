//! Writes events to stdout, and is the only writer of lines.
//!
//! Prints each event as one line and flushes it at once, so that findings survive a crash. Rejects
//! lines over the wire's bounds, alone or together, and anything after `done`, because the reader
//! would treat either as a breach.

use std::fmt;
use std::io::{self, Write};

use protocol::Event;
use protocol::limits;

use crate::fetch::Fetcher;

/// Bytes kept free for the two last lines, `peers_end` and `done`, whatever the peers take.
const RESERVE_BYTES: u64 = 1024;

/// The writer of a check's events.
pub struct Emitter {
    out: Box<dyn Write + Send>,
    written: u64,
    bytes_max: u64,
    ended: bool,
}

/// Version of this checker, as `hello` announces it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why an event was not printed.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    #[error("stdout could not be written")]
    Stdout(#[source] io::Error),
    #[error("the event could not be serialised")]
    Form(#[source] serde_json::Error),
    /// The event breaches a bound of the wire. This is our own mistake; nothing is printed.
    #[error("the event is over a bound of the wire")]
    OverBounds,
    #[error("nothing may follow the last line")]
    Ended,
}

/// Why a check could not report its events. The fault is ours, never the host's.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("an event could not be printed")]
    Emit(#[from] EmitError),
    /// The reader of a peers list ended without giving back what it was given.
    #[error("the reader of a peers list was lost")]
    ReaderLost,
}

impl Emitter {
    /// A writer that prints at most `bytes_max` bytes to `out`.
    pub fn new(out: Box<dyn Write + Send>, bytes_max: u64) -> Self {
        Self {
            out,
            written: 0,
            bytes_max,
            ended: false,
        }
    }

    /// Whether a line of `line_bytes` still fits, with room left for the last two lines.
    pub fn has_room(&self, line_bytes: usize) -> bool {
        let line = u64::try_from(line_bytes).unwrap_or(u64::MAX);
        self.written
            .saturating_add(line)
            .saturating_add(RESERVE_BYTES)
            <= self.bytes_max
    }

    /// Prints the first event.
    pub(crate) fn hello(&mut self) -> Result<(), EmitError> {
        self.emit(&Event::Hello {
            protocol: limits::PROTOCOL_VERSION,
            checker: VERSION.to_owned(),
        })
    }

    /// Prints the last event.
    pub(crate) fn done(&mut self, fetcher: &Fetcher) -> Result<(), EmitError> {
        self.emit(&Event::Done {
            requests: fetcher.requests(),
            bytes: fetcher.bytes(),
            millis: fetcher.millis(),
        })
    }

    /// Prints one event and flushes it.
    /// When a bound would be breached (nothing is printed then), or stdout fails.
    pub fn emit(&mut self, event: &Event) -> Result<(), EmitError> {
        if self.ended {
            return Err(EmitError::Ended);
        }
        let mut line = serde_json::to_vec(event).map_err(EmitError::Form)?;
        let bytes = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let sum = self.written.saturating_add(bytes).saturating_add(1);
        if line.len() > limits::LINE_BYTES_MAX || sum > self.bytes_max || !event.is_within_bounds()
        {
            return Err(EmitError::OverBounds);
        }
        line.push(b'\n');
        self.out
            .write_all(&line)
            .and_then(|()| self.out.flush())
            .map_err(EmitError::Stdout)?;
        self.written = sum;
        self.ended = matches!(event, Event::Done { .. });
        Ok(())
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter")
            .field("written", &self.written)
            .field("bytes_max", &self.bytes_max)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use protocol::{DeadReason, Host};
    use std::sync::{Arc, Mutex};

    /// A writer that keeps its bytes for tests to read.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        pub(crate) fn events(&self) -> Vec<Event> {
            let bytes = self.0.lock().unwrap();
            let lines = bytes.split_inclusive(|&byte| byte == b'\n');
            lines
                .map(|line| serde_json::from_slice(line).unwrap())
                .collect()
        }

        pub(crate) fn len(&self) -> usize {
            self.0.lock().unwrap().len()
        }
    }

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn done() -> Event {
        Event::Done {
            requests: 1,
            bytes: 2,
            millis: 3,
        }
    }

    #[test]
    fn nothing_follows_done() {
        let kept = Kept::default();
        let mut emitter = Emitter::new(Box::new(kept.clone()), 1000);
        emitter.emit(&Event::Gone {}).unwrap();
        emitter.emit(&done()).unwrap();
        assert!(matches!(emitter.emit(&done()), Err(EmitError::Ended)));
        assert_eq!(kept.events(), [Event::Gone {}, done()]);
    }

    #[test]
    fn a_line_over_a_bound_is_not_printed() {
        let kept = Kept::default();
        let mut emitter = Emitter::new(Box::new(kept.clone()), 100);
        let long = Event::Peers {
            hosts: vec![Host::parse("a.example").unwrap(); 20],
        };
        assert!(matches!(emitter.emit(&long), Err(EmitError::OverBounds)));
        let not_ours = Event::Dead {
            reason: DeadReason::Memory,
            status: None,
            to: None,
        };
        assert!(matches!(
            emitter.emit(&not_ours),
            Err(EmitError::OverBounds)
        ));
        assert_eq!(kept.len(), 0);
        emitter.emit(&Event::Gone {}).unwrap();
    }

    #[test]
    fn room_is_kept_for_the_last_lines() {
        let emitter = Emitter::new(Box::new(io::sink()), RESERVE_BYTES + 100);
        assert!(emitter.has_room(100));
        assert!(!emitter.has_room(101));
    }
}
