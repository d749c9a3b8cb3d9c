//! Step 3 of 7: splits the bytes of a container's stdout into bounded lines.
//!
//! Takes chunks as the engine cuts them and gives lines without their newline, each within
//! [`LINE_BYTES_MAX`]. Rejects a longer line, more than [`STDOUT_BYTES_MAX`] in all, and bytes
//! after the last newline. Lines before the breach stay valid. Their content is not examined here.

use protocol::limits::{LINE_BYTES_MAX, STDOUT_BYTES_MAX};
use thiserror::Error;

/// Cuts a stream of bytes into lines. It holds at most one line.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
    bytes_total: u64,
}

/// A breach of the stream's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LineBreach {
    #[error("a line is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    #[error("stdout is longer than {STDOUT_BYTES_MAX} bytes")]
    StreamTooLong,
    #[error("the last line has no newline")]
    Unfinished,
}

impl Lines {
    /// Takes the next chunk and passes each line that it completes to `each`, until the chunk is
    /// used up or `each` fails.
    ///
    /// # Errors
    /// The first breach of a bound, or what `each` returned. Lines before it were passed on.
    pub fn push<E: From<LineBreach>>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        while let Some(newline) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = rest.split_at(newline);
            rest = after.get(1..).unwrap_or_default();
            self.count(line.len().saturating_add(1))?;
            self.extend(line)?;
            let outcome = each(&self.partial);
            self.partial.clear();
            outcome?;
        }
        self.count(rest.len())?;
        self.extend(rest)?;
        Ok(())
    }

    pub fn finish(&self) -> Result<(), LineBreach> {
        if self.partial.is_empty() {
            Ok(())
        } else {
            Err(LineBreach::Unfinished)
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), LineBreach> {
        self.bytes_total = self
            .bytes_total
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.bytes_total > STDOUT_BYTES_MAX {
            Err(LineBreach::StreamTooLong)
        } else {
            Ok(())
        }
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), LineBreach> {
        if self.partial.len().saturating_add(bytes.len()) > LINE_BYTES_MAX {
            return Err(LineBreach::LineTooLong);
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), LineBreach>) {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for chunk in chunks {
            let outcome = lines.push(chunk, |line| {
                found.push(line.to_vec());
                Ok::<(), LineBreach>(())
            });
            if outcome.is_err() {
                return (found, outcome);
            }
        }
        let end = lines.finish();
        (found, end)
    }

    #[test]
    fn a_line_may_come_in_pieces() {
        let (found, end) = cut(&[b"a", b"b\nc", b"\n\n"]);
        assert_eq!(found, [b"ab".to_vec(), b"c".to_vec(), b"".to_vec()]);
        assert_eq!(end, Ok(()));
    }

    #[test]
    fn half_a_line_at_the_end_is_a_breach() {
        assert_eq!(
            cut(&[b"a\nb"]),
            (vec![b"a".to_vec()], Err(LineBreach::Unfinished))
        );
    }

    #[test]
    fn a_line_ends_at_its_bound_however_it_is_cut() {
        let full = [vec![b'x'; LINE_BYTES_MAX], b"\n".to_vec()].concat();
        assert_eq!(cut(&[&full]).1, Ok(()));
        let over = vec![b'x'; LINE_BYTES_MAX + 1];
        assert_eq!(cut(&[&over]).1, Err(LineBreach::LineTooLong));
        let (first, second) = over.split_at(1000);
        assert_eq!(cut(&[first, second]).1, Err(LineBreach::LineTooLong));
    }

    #[test]
    fn a_stream_of_good_lines_ends_at_its_bound() {
        let mut lines = Lines::default();
        let chunk = [vec![b'x'; 1023], b"\n".to_vec()].concat();
        let mut pushed = 0u64;
        while lines.push(&chunk, |_| Ok::<(), LineBreach>(())).is_ok() {
            pushed += 1;
            assert!(pushed <= STDOUT_BYTES_MAX / 1024, "unbounded");
        }
        assert_eq!(pushed, STDOUT_BYTES_MAX / 1024);
    }

    proptest! {
        #[test]
        fn how_it_is_cut_changes_nothing(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..400), at in prop::collection::vec(0usize..400, 0..6)) {
            let whole = cut(&[&bytes]);
            let mut at: Vec<_> = at.into_iter().map(|at| at.min(bytes.len())).collect();
            at.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for end in at {
                pieces.push(&bytes[start..end]);
                start = end;
            }
            pieces.push(&bytes[start..]);
            prop_assert_eq!(cut(&pieces), whole);
        }
    }
}
