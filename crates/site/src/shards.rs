//! The answers as 16, 256 or 4096 files by hash prefix, `why/abc.json`, and how many digits name them, `why/index.json`.
//!
//! In: answers in any order. Out: all shards, the empty ones too, so that an unknown name can be told from a server that fails. Memory: one bucket of
//! 64, each an unnamed file of its own until then; below 16384 answers up to four of them.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use dump::Moment;

use crate::answer::{Answer, PACKED_BYTES, SHARD_DIGITS_MAX};
use crate::error::SiteError;
use crate::staging::Staging;

/// The folder of the shards.
pub(crate) const FOLDER: &str = "why";

/// Answers that a shard holds on average, at least, before there are more shards: whoever asks for one tells the server no more than one of so many known
/// names, and of all that are not known; and a small census is not made of thousands of files.
const ANSWERS_A_SHARD_MIN: u64 = 64;

/// Values of the digits before an entry's.
const PREFIXES: u16 = 1 << (4 * SHARD_DIGITS_MAX);

/// Unnamed files that answers wait in. At ten million hosts one of them holds 4.5 MB.
const BUCKETS: u16 = 64;

const PREFIXES_A_BUCKET: u16 = PREFIXES / BUCKETS;

/// Bytes that are gathered for a bucket before the system is asked to write: 1 MiB for all of them.
const BUFFER_BYTES: usize = 16 * 1024;

/// Answers on their way to their shards.
#[derive(Debug)]
pub(crate) struct Shards {
    folder: PathBuf,
    buckets: Vec<BufWriter<File>>,
    pushed: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Answers.
    pub(crate) answers: u64,
    /// In which shards.
    pub(crate) shape: Shape,
}

/// How the answers are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Digits of a shard's name.
    pub(crate) digits: u8,
    /// Shards: one for each value of so many digits.
    pub(crate) shards: u16,
    /// Values of [`SHARD_DIGITS_MAX`] digits that begin with those of one shard.
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

    /// The one for so many answers.
    pub(crate) fn of(answers: u64) -> Self {
        let [.., smallest] = Self::ALL;
        let is_full =
            |shape: &Self| answers >= ANSWERS_A_SHARD_MIN.saturating_mul(shape.shards.into());
        Self::ALL.into_iter().find(is_full).unwrap_or(smallest)
    }
}

impl Shards {
    /// No answer yet. `folder` is where there is room.
    pub(crate) fn new(folder: &Path) -> Result<Self, SiteError> {
        let buckets = (0..BUCKETS)
            .map(|_bucket| {
                let file = tempfile::tempfile_in(folder)
                    .map_err(|error| SiteError::from_io(folder, "creating", error))?;
                Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
            })
            .collect::<Result<_, SiteError>>()?;
        Ok(Self {
            folder: folder.to_owned(),
            buckets,
            pushed: 0,
        })
    }

    /// Takes an answer.
    pub(crate) fn push(&mut self, answer: &Answer) -> Result<(), SiteError> {
        self.pushed = self.pushed.saturating_add(1);
        let bucket = usize::from(answer.key.prefix() / PREFIXES_A_BUCKET);
        self.buckets.get_mut(bucket).map_or(Ok(()), |file| {
            file.write_all(&answer.pack())
                .map_err(|error| SiteError::from_io(&self.folder, "writing answers", error))
        })
    }

    /// Writes all shards, made at `made`, and takes away those of a time when their names had another length.
    pub(crate) fn write(self, staging: &mut Staging, made: Moment) -> Result<Written, SiteError> {
        let failed = |error| SiteError::from_io(&self.folder, "reading answers back", error);
        staging.make_folder(FOLDER)?;
        let shape = Shape::of(self.pushed);
        let width = usize::from(shape.digits);
        let mut answers = 0_u64;
        let mut shards = 0..shape.shards;
        let mut end = shape.prefixes;
        let mut gathered: Vec<Answer> = Vec::new();
        for (bucket, file) in (1_u16..).zip(self.buckets) {
            let file = file
                .into_inner()
                .map_err(|error| failed(error.into_error()))?;
            gathered.extend(read_back(file).map_err(failed)?);
            let gathered_to = bucket.saturating_mul(PREFIXES_A_BUCKET);
            let mut rest = gathered.as_slice();
            while end <= gathered_to
                && let Some(shard) = shards.next()
            {
                let length = rest.partition_point(|answer| answer.key.prefix() < end);
                let (mine, others) = rest.split_at_checked(length).unwrap_or_default();
                rest = others;
                answers = answers.saturating_add(u64::try_from(mine.len()).unwrap_or(u64::MAX));
                staging.write(
                    &format!("{FOLDER}/{shard:0width$x}.json"),
                    &json(mine, made),
                )?;
                end = end.saturating_add(shape.prefixes);
            }
            gathered = rest.to_vec();
        }
        let digits = shape.digits;
        let index = format!("{{\"made\":{},\"digits\":{digits}}}\n", made.seconds());
        staging.write(&format!("{FOLDER}/index.json"), index.as_bytes())?;
        staging.retire_others(FOLDER)?;
        Ok(Written { answers, shape })
    }
}

/// The answers of a bucket by their keys, each key once: of two, which a name alone can't have, one is lost.
fn read_back(mut file: File) -> std::io::Result<Vec<Answer>> {
    file.rewind()?;
    let bytes = file.metadata()?.len();
    let count = usize::try_from(bytes).unwrap_or(0) / PACKED_BYTES;
    let mut answers = Vec::with_capacity(count);
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut packed = [0; PACKED_BYTES];
    for _ in 0..count {
        reader.read_exact(&mut packed)?;
        answers.extend(Answer::unpack(&packed));
    }
    answers.sort_unstable_by_key(|answer| answer.key);
    answers.dedup_by_key(|answer| answer.key);
    Ok(answers)
}

fn json(answers: &[Answer], made: Moment) -> Vec<u8> {
    let entries: Vec<String> = answers.iter().map(Answer::entry).collect();
    format!(
        "{{\"made\":{},\"hosts\":{{\n{}\n}}}}\n",
        made.seconds(),
        entries.join(",\n")
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use dump::Stop;
    use protocol::Host;

    use super::*;
    use crate::answer::Key;
    use crate::why::{Place, Why};

    fn answers(count: u32) -> Vec<Answer> {
        let answer = |number| Answer {
            key: Key::of(&Host::parse(&format!("h{number}.example")).unwrap()),
            place: Place::Waiting,
            why: Why::Waiting,
            found: None,
            last_checked: None,
            next_check: None,
        };
        (0..count).map(answer).collect()
    }

    /// All shards by their names, without the index.
    fn published(folder: &Path) -> BTreeMap<String, serde_json::Value> {
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.unwrap().path();
            let name = path
                .file_name()?
                .to_str()?
                .strip_suffix(".json")?
                .to_owned();
            let shard = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            (name != "index").then_some((name, shard))
        };
        let files = fs::read_dir(folder.join(FOLDER)).unwrap();
        files.filter_map(read).collect()
    }

    fn publish(folder: &Path, answers: &[Answer]) -> u8 {
        let mut shards = Shards::new(folder).unwrap();
        for answer in answers {
            shards.push(answer).unwrap();
        }
        let mut staging = Staging::new(folder, Stop::default());
        let made = Moment::from_milliseconds(1_700_000_000_000);
        let written = shards.write(&mut staging, made).unwrap();
        assert_eq!(written.answers, answers.len() as u64);
        staging.publish().unwrap();
        let index = fs::read_to_string(folder.join("why/index.json")).unwrap();
        let expect = format!(
            "{{\"made\":1700000000,\"digits\":{}}}\n",
            written.shape.digits
        );
        assert_eq!(index, expect);
        written.shape.digits
    }

    /// In turn as a census grows and shrinks, in one folder: no shard of another length stays.
    #[test]
    fn every_answer_lies_where_its_key_says_and_every_shard_is_there() {
        let folder = tempfile::tempdir().unwrap();
        for (count, digits) in [(0, 1), (16_383, 1), (16_384, 2), (5, 1)] {
            let answers = answers(count);
            assert_eq!(publish(folder.path(), &answers), digits, "{count}");
            let shards = published(folder.path());
            assert_eq!(shards.len(), 1 << (4 * digits));
            let mut found = 0;
            for (name, shard) in &shards {
                assert_eq!(shard["made"], 1_700_000_000, "{name}");
                found += shard["hosts"].as_object().unwrap().len();
            }
            assert_eq!(found, answers.len());
            for answer in answers {
                let name: String = answer.key.digits().chars().take(digits.into()).collect();
                assert_eq!(shards[&name]["hosts"][answer.key.entry()][0], "waiting");
            }
        }
    }

    #[test]
    fn shards_grow_in_number_and_never_hold_less_than_hides_a_name() {
        for (answers, expect) in [(0, 1), (262_143, 2), (262_144, 3), (u64::MAX, 3)] {
            assert_eq!(Shape::of(answers).digits, expect, "{answers}");
        }
    }
}
