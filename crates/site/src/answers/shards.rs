//! Writes the answers as 16, 256 or 4096 files by hash prefix, `why/SALT/abc.json`, as one file of
//! all, and their index, `why/index.json`.
//!
//! Accepts answers in any order. Writes all shards, including empty ones, so that an unknown name
//! differs from a failing server. Writes a shard entry by entry, so that its size takes no memory.

use std::io::{self, BufWriter, Write};

use dump::Moment;
use publish::{File, GZIP_END, Gzip, Tree, TreeError, gzip};

use super::all::All;
use super::answer::{Answer, Key, Packed, SHARD_DIGITS_MAX, Salt, pack_line, unpack_line};
use super::sorted::{Sorted, Sorter};
use crate::error::SiteError;
use crate::list::{self, Listed};

/// The folder of the index. It contains a folder of shards named by the salt, so that an index
/// never leads to another publication's shards.
pub(crate) const FOLDER: &str = "why";

/// Smallest average number of answers in a shard before there are more shards. A request reveals
/// only that the name is one of this many known names or any unknown one. A small census gets few
/// files. With this average, a shard holds at least twice as many with a chance of one in 10^10,
/// since nobody knows the salt before it is published.
const ANSWERS_A_SHARD_MIN: u64 = 64;

const PREFIXES: u16 = 1 << (4 * SHARD_DIGITS_MAX);

/// Size of a file's write buffer.
const BUFFER_BYTES: usize = 16 * 1024;

/// Answers collected for their shards.
#[derive(Debug)]
pub(crate) struct Shards<'t> {
    tree: &'t Tree,
    answers: Sorter,
    pushed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) answers: u64,
    /// How they are divided into shards.
    pub(crate) shape: Shape,
}

/// How the answers are divided into shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Digits of a shard's name.
    pub(crate) digits: u8,
    /// Number of shards: one for each value of the digits.
    pub(crate) shards: u16,
    /// Values of [`SHARD_DIGITS_MAX`] digits that belong to one shard.
    prefixes: u16,
}

impl Shape {
    const ALL: [Self; 3] = [Self::new(3), Self::new(2), Self::new(1)];

    #[expect(clippy::arithmetic_side_effects, reason = "before it runs")]
    const fn new(digits: u8) -> Self {
        let shards = 1 << (4 * digits);
        Self {
            digits,
            shards,
            prefixes: PREFIXES / shards,
        }
    }

    /// The shape for this number of answers.
    pub(crate) fn of(answers: u64) -> Self {
        let [.., smallest] = Self::ALL;
        let is_full =
            |shape: &Self| answers >= ANSWERS_A_SHARD_MIN.saturating_mul(shape.shards.into());
        Self::ALL.into_iter().find(is_full).unwrap_or(smallest)
    }
}

impl<'t> Shards<'t> {
    /// No answers yet. Temporary files have no names.
    pub(crate) fn new(tree: &'t Tree) -> Result<Self, SiteError> {
        let answers = Sorter::new(tree.folder());
        Ok(Self {
            answers: answers.map_err(|error| tree.failed(FOLDER, "creating", error))?,
            tree,
            pushed: 0,
        })
    }

    pub(crate) fn push(&mut self, key: Key, answer: &Answer) -> Result<(), SiteError> {
        self.pushed = self.pushed.saturating_add(1);
        self.answers
            .push(answer.pack(key))
            .map_err(|error| self.tree.failed(FOLDER, "writing answers", error).into())
    }

    /// Adds where a listed host's line is, parts of which its answer shows.
    pub(crate) fn listed(&mut self, key: Key, span: list::Span) -> Result<(), SiteError> {
        self.answers
            .push(pack_line(key, span))
            .map_err(|error| self.tree.failed(FOLDER, "writing answers", error).into())
    }

    /// Writes all shards, made at `made`, with the lines of `listed`.
    pub(crate) fn write(
        self,
        made: Moment,
        salt: Salt,
        listed: &Listed<'_>,
    ) -> Result<Written, SiteError> {
        let tree = self.tree;
        let failed = |error| tree.failed(FOLDER, "reading answers back", error);
        let shape = Shape::of(self.pushed);
        let width = usize::from(shape.digits);
        let mut entries = Entries::new(self.answers.sorted().map_err(failed)?).map_err(failed)?;
        let mut all = All::new(tree, FOLDER, salt, made)?;
        for number in 0..shape.shards {
            let place = format!("{FOLDER}/{salt}/{number:0width$x}.json");
            let mut shard = Shard::new(tree, place, made)?;
            let end = number.saturating_add(1).saturating_mul(shape.prefixes);
            while let Some((key, answer, span)) = entries.next_before(end).map_err(failed)? {
                let line = span.map(|span| listed.line(span)).transpose();
                let line = line.map_err(failed)?;
                let row = line.as_deref().and_then(list::Row::parse);
                shard.entry(&answer.entry(key, row))?;
                all.push(key, &answer)?;
            }
            shard.finish()?;
        }
        let digits = shape.digits;
        let index = format!(
            "{{\"made\":{},\"salt\":\"{salt}\",\"digits\":{digits},\"all_bytes\":{}}}\n",
            made.seconds(),
            all.finish()?
        );
        tree.write(&format!("{FOLDER}/index.json"), index.as_bytes())?;
        Ok(Written {
            answers: entries.given,
            shape,
        })
    }
}

/// An answer, and where its host's line is if it is listed.
type Entry = (Key, Answer, Option<list::Span>);

/// Answers by key, each key once. If two answers have the same key, one is lost; two names share
/// one only by chance.
struct Entries {
    sorted: Sorted,
    /// The first of those that follow `next`.
    head: Option<Packed>,
    next: Option<Entry>,
    given: u64,
}

impl Entries {
    fn new(mut sorted: Sorted) -> io::Result<Self> {
        let mut entries = Self {
            head: sorted.next()?,
            sorted,
            next: None,
            given: 0,
        };
        entries.step()?;
        Ok(entries)
    }

    /// The next answer, if its key's prefix is less than `end`.
    fn next_before(&mut self, end: u16) -> io::Result<Option<Entry>> {
        let Some(entry) = self.next.take_if(|(key, ..)| key.prefix() < end) else {
            return Ok(None);
        };
        self.given = self.given.saturating_add(1);
        self.step()?;
        Ok(Some(entry))
    }

    fn step(&mut self) -> io::Result<()> {
        // Ends after the last answer.
        while let Some(first) = self.head.take() {
            let key = Key::of_packed(&first);
            let mut span = unpack_line(&first);
            let is_answer = span.is_none();
            self.head = self.sorted.next()?;
            while let Some(same) = self.head.take_if(|next| Key::of_packed(next) == key) {
                span = span.or(unpack_line(&same));
                self.head = self.sorted.next()?;
            }
            if is_answer {
                let (_, answer) = Answer::unpack(&first).ok_or(io::ErrorKind::InvalidData)?;
                self.next = Some((key, answer, span));
                break;
            }
        }
        Ok(())
    }
}

/// A shard during writing, plain and gzipped.
struct Shard<'t> {
    tree: &'t Tree,
    place: String,
    plain: BufWriter<File>,
    /// The encoder is slow with small writes, so a buffer is in front of it.
    zipped: BufWriter<Gzip<File>>,
    entries: u64,
}

impl<'t> Shard<'t> {
    fn new(tree: &'t Tree, place: String, made: Moment) -> Result<Self, TreeError> {
        let plain = tree.create(&place)?;
        let zipped = gzip(tree.create(&format!("{place}{GZIP_END}"))?);
        let mut shard = Self {
            plain: BufWriter::with_capacity(BUFFER_BYTES, plain),
            zipped: BufWriter::with_capacity(BUFFER_BYTES, zipped),
            tree,
            place,
            entries: 0,
        };
        shard.write(&format!("{{\"made\":{},\"hosts\":{{\n", made.seconds()))?;
        Ok(shard)
    }

    fn entry(&mut self, entry: &str) -> Result<(), TreeError> {
        if self.entries > 0 {
            self.write(",\n")?;
        }
        self.entries = self.entries.saturating_add(1);
        self.write(entry)
    }

    fn finish(mut self) -> Result<(), TreeError> {
        self.write("\n}}\n")?;
        let Self {
            tree,
            place,
            mut plain,
            zipped,
            ..
        } = self;
        plain
            .flush()
            .and_then(|()| {
                let zipped = zipped
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)?;
                zipped.finish()?;
                Ok(())
            })
            .map_err(|error| tree.failed(&place, "writing", error))
    }

    fn write(&mut self, text: &str) -> Result<(), TreeError> {
        self.plain
            .write_all(text.as_bytes())
            .and_then(|()| self.zipped.write_all(text.as_bytes()))
            .map_err(|error| self.tree.failed(&self.place, "writing", error))
    }
}

#[cfg(test)]
mod tests;
