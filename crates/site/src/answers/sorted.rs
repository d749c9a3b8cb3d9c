//! Sorts answers by key in bounded memory, for any keys.
//!
//! Accepts packed answers in any order. Sorts runs of them in memory, writes each run to an unnamed
//! file, and merges the runs at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::answer::{PACKED_BYTES, Packed};

/// Answers sorted in memory at once: 2.6 MB.
const RUN_ANSWERS: usize = 65_536;

/// Answers read from a run at once. A run's buffer takes 5 kB during the merge; at ten million
/// answers, all buffers take 0.6 MB.
const READ_ANSWERS: usize = 128;

#[derive(Debug)]
pub(crate) struct Sorter {
    file: File,
    run: Vec<Packed>,
    /// End of each run in the file. Each run begins at the end of the one before it.
    ends: Vec<u64>,
}

impl Sorter {
    /// No answers yet. The temporary file goes to `folder`.
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile_in(folder)?,
            run: Vec::new(),
            ends: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, answer: Packed) -> io::Result<()> {
        self.run.push(answer);
        if self.run.len() < RUN_ANSWERS {
            return Ok(());
        }
        self.spill()
    }

    fn spill(&mut self) -> io::Result<()> {
        self.run.sort_unstable();
        self.file.write_all(self.run.as_flattened())?;
        let bytes = u64::try_from(self.run.as_flattened().len()).unwrap_or(u64::MAX);
        let begin = self.ends.last().copied().unwrap_or(0);
        self.ends.push(begin.saturating_add(bytes));
        self.run.clear();
        Ok(())
    }

    /// All answers in ascending order.
    pub(crate) fn sorted(mut self) -> io::Result<Sorted> {
        if !self.run.is_empty() {
            self.spill()?;
        }
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        let mut sorted = Sorted {
            runs: begins
                .zip(self.ends.iter().copied())
                .map(|(at, end)| Run {
                    at,
                    end,
                    read: Vec::new(),
                })
                .collect(),
            file: self.file,
            heads: BinaryHeap::new(),
        };
        for run in 0..sorted.runs.len() {
            sorted.refill(run)?;
        }
        Ok(sorted)
    }
}

#[derive(Debug)]
pub(crate) struct Sorted {
    file: File,
    runs: Vec<Run>,
    /// The next answer of each unfinished run, and the run's index.
    heads: BinaryHeap<Reverse<(Packed, usize)>>,
}

/// A part of the file, read in pieces.
#[derive(Debug)]
struct Run {
    at: u64,
    end: u64,
    /// The next answers in reverse order.
    read: Vec<Packed>,
}

impl Sorted {
    pub(crate) fn next(&mut self) -> io::Result<Option<Packed>> {
        let Some(Reverse((answer, run))) = self.heads.pop() else {
            return Ok(None);
        };
        self.refill(run)?;
        Ok(Some(answer))
    }

    fn refill(&mut self, run: usize) -> io::Result<()> {
        if let Some(from) = self.runs.get_mut(run)
            && let Some(answer) = from.next(&self.file)?
        {
            self.heads.push(Reverse((answer, run)));
        }
        Ok(())
    }
}

impl Run {
    fn next(&mut self, file: &File) -> io::Result<Option<Packed>> {
        if self.read.is_empty() && self.at < self.end {
            let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
            self.read
                .resize((left / PACKED_BYTES).min(READ_ANSWERS), [0; PACKED_BYTES]);
            let bytes = self.read.as_flattened_mut();
            file.read_exact_at(bytes, self.at)?;
            let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            self.at = self.at.saturating_add(bytes);
            self.read.reverse();
        }
        Ok(self.read.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_ascending_whatever_their_number_and_order() {
        let folder = tempfile::tempdir().unwrap();
        for count in [0, 1, RUN_ANSWERS, 2 * RUN_ANSWERS + 129] {
            let mut sorter = Sorter::new(folder.path()).unwrap();
            let mut expect: Vec<Packed> = (0..count as u64)
                .map(|number| {
                    let mut answer = [0; PACKED_BYTES];
                    let bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    answer[..8].copy_from_slice(&bits.to_be_bytes());
                    answer
                })
                .collect();
            for answer in &expect {
                sorter.push(*answer).unwrap();
            }
            expect.sort_unstable();
            let mut sorted = sorter.sorted().unwrap();
            for answer in expect {
                assert_eq!(sorted.next().unwrap(), Some(answer), "{count}");
            }
            assert_eq!(sorted.next().unwrap(), None, "{count}");
        }
    }
}
