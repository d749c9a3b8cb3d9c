//! All answers in one file, `why/SALT/all.bin`, for readers who look up thousands of names and want
//! to reveal none of them.
//!
//! A line of JSON, then an entry of ten bytes for each answer, ascending: eight bytes of the key's
//! hash, the index of a class in that line, and an age. The age is coarse, so that the file shows
//! nothing that would let others monitor a host.

use std::fmt;
use std::io::{BufWriter, Write as _};

use dump::Moment;
use publish::{File, Tree, TreeError};

use super::answer::{Answer, Key, Salt};
use super::why::{Found, Why};
use super::words;

const ENTRY_BYTES: usize = HASH_BYTES + 2;

/// Two of a million names share 64 bits with a chance of one in 10^7.
const HASH_BYTES: usize = 8;

/// Size of the file's write buffer.
const BUFFER_BYTES: usize = 64 * 1024;

/// How long a host has been the way it is: only what its class has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Age {
    /// Calendar months from the one in which it was last found up to that of the publication.
    MonthsDown(u8),
    /// Whole weeks since the census learned the name of a host that it never found up.
    WeeksKnown(u8),
}

impl Age {
    /// Both are 255 for more than that.
    pub fn of(last_up: Option<Moment>, learned: Moment, made: Moment) -> Self {
        let short = |span: i64| u8::try_from(span.max(0)).unwrap_or(u8::MAX);
        last_up.map_or_else(
            || {
                let known = made.seconds().saturating_sub(learned.seconds());
                Self::WeeksKnown(short(known.div_euclid(WEEK_SECONDS)))
            },
            |up| Self::MonthsDown(short(month(made).saturating_sub(month(up)))),
        )
    }

    fn months(self) -> u8 {
        match self {
            Self::MonthsDown(months) => months,
            Self::WeeksKnown(_) => u8::MAX,
        }
    }

    fn weeks(self) -> u8 {
        match self {
            Self::WeeksKnown(weeks) => weeks,
            // Unknown must not look long: commands that delete depend on it.
            Self::MonthsDown(_) => 0,
        }
    }
}

const WEEK_SECONDS: i64 = 7 * 24 * 60 * 60;

/// The number of a moment's month: equal within a month, and one more in the next.
fn month(at: Moment) -> i64 {
    let day = at.day();
    let mut numbers = day.split('-').map_while(|part| part.parse::<i64>().ok());
    let mut next = || numbers.next().unwrap_or(0);
    next().saturating_mul(12).saturating_add(next())
}

/// The class of a host in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Withheld,
    Up,
    Failing,
    Refuses,
    Waiting,
    Moved,
    MovedToListed,
    Gone(Option<Found>),
    Never(Option<Found>),
}

impl Class {
    fn of(answer: &Answer) -> Self {
        match answer.why {
            Why::Withheld => Self::Withheld,
            Why::Lives | Why::LivesRefusing | Why::NextList => Self::Up,
            // Without an age: that of a stale host could reveal that it had opted out.
            Why::Failing | Why::MovingToNobody | Why::LeavesNext | Why::Stale => Self::Failing,
            Why::RefusesSoFar => Self::Refuses,
            Why::TakenOver | Why::NeverJudged | Why::GroupHeld | Why::Waiting => Self::Waiting,
            Why::Moved => Self::Moved,
            Why::MovedToListed => Self::MovedToListed,
            Why::NeverAlive => Self::Never(answer.found),
            Why::Gone | Why::Dead => match answer.age {
                Some(Age::MonthsDown(_)) => Self::Gone(answer.found),
                Some(Age::WeeksKnown(_)) | None => Self::Never(answer.found),
            },
        }
    }

    /// In the order of their indices.
    fn all() -> impl Iterator<Item = Self> {
        let found = || words::FOUND.iter().copied().map(Some).chain([None]);
        [
            Self::Withheld,
            Self::Up,
            Self::Failing,
            Self::Refuses,
            Self::Waiting,
            Self::Moved,
            Self::MovedToListed,
        ]
        .into_iter()
        .chain(found().map(Self::Gone))
        .chain(found().map(Self::Never))
    }

    fn age(self, age: Option<Age>) -> u8 {
        match self {
            Self::Withheld | Self::Up | Self::Failing | Self::Waiting => 0,
            Self::Moved | Self::MovedToListed | Self::Gone(_) => age.map_or(u8::MAX, Age::months),
            Self::Refuses | Self::Never(_) => age.map_or(0, Age::weeks),
        }
    }
}

/// As in the file's first line.
impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, found) = match self {
            Self::Withheld => ("withheld", None),
            Self::Up => ("up", None),
            Self::Failing => ("failing", None),
            Self::Refuses => ("refuses", None),
            Self::Waiting => ("waiting", None),
            Self::Moved => ("moved", None),
            Self::MovedToListed => ("moved_to_listed", None),
            Self::Gone(found) => ("gone", *found),
            Self::Never(found) => ("never", *found),
        };
        formatter.write_str(word)?;
        match found {
            Some(found) => write!(formatter, " {}", words::found_word(found)),
            None => Ok(()),
        }
    }
}

/// The file while it is written.
pub(crate) struct All<'t> {
    tree: &'t Tree,
    place: String,
    file: BufWriter<File>,
    classes: Vec<Class>,
    bytes: u64,
}

impl<'t> All<'t> {
    pub(crate) fn new(
        tree: &'t Tree,
        folder: &str,
        salt: Salt,
        made: Moment,
    ) -> Result<Self, TreeError> {
        let place = format!("{folder}/{salt}/all.bin");
        let file = BufWriter::with_capacity(BUFFER_BYTES, tree.create(&place)?);
        let classes: Vec<_> = Class::all().collect();
        let mut all = Self {
            tree,
            place,
            file,
            bytes: 0,
            classes,
        };
        let words: Vec<_> = all.classes.iter().map(Class::to_string).collect();
        let head = serde_json::json!({
            "made": made.seconds(),
            "entry_bytes": ENTRY_BYTES,
            "classes": words,
        });
        all.write(format!("{head}\n").as_bytes())?;
        Ok(all)
    }

    /// Adds an answer, ascending by key.
    pub(crate) fn push(&mut self, key: Key, answer: &Answer) -> Result<(), TreeError> {
        let class = Class::of(answer);
        // `Class::all` has each class.
        let index = self.classes.iter().position(|one| *one == class);
        let index = index
            .and_then(|index| u8::try_from(index).ok())
            .unwrap_or(0);
        let mut entry = [0; ENTRY_BYTES];
        let bytes = key
            .hash()
            .take(HASH_BYTES)
            .chain([index, class.age(answer.age)]);
        for (to, from) in entry.iter_mut().zip(bytes) {
            *to = from;
        }
        self.write(&entry)
    }

    /// Returns the file's size in bytes.
    pub(crate) fn finish(mut self) -> Result<u64, TreeError> {
        self.file
            .flush()
            .map_err(|error| self.tree.failed(&self.place, "writing", error))?;
        Ok(self.bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), TreeError> {
        let more = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(more);
        self.file
            .write_all(bytes)
            .map_err(|error| self.tree.failed(&self.place, "writing", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::why::Place;
    use crate::write::tests::tree;

    fn at(day: &str) -> Moment {
        Moment::try_from(format!("{day}T12:00:00Z")).unwrap()
    }

    #[test]
    fn an_age_is_months_since_it_was_up_or_weeks_known() {
        let made = at("2026-12-01");
        let months = |day| Age::of(Some(at(day)), at("2020-01-01"), made);
        assert_eq!(months("2026-12-01"), Age::MonthsDown(0));
        assert_eq!(months("2026-11-30"), Age::MonthsDown(1));
        assert_eq!(months("2025-12-31"), Age::MonthsDown(12));
        assert_eq!(months("1999-01-01"), Age::MonthsDown(u8::MAX));
        assert_eq!(
            months("2027-01-01"),
            Age::MonthsDown(0),
            "a clock was ahead"
        );
        let weeks = |day| Age::of(None, at(day), made);
        assert_eq!(weeks("2026-11-25"), Age::WeeksKnown(0));
        assert_eq!(weeks("2026-11-24"), Age::WeeksKnown(1));
        assert_eq!(weeks("1999-01-01"), Age::WeeksKnown(u8::MAX));
    }

    #[test]
    fn each_class_fits_into_a_byte_once() {
        let words: Vec<_> = Class::all().map(|class| class.to_string()).collect();
        assert!(words.len() < 256, "{}", words.len());
        let mut unique = words.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), words.len());
    }

    /// The class and the age in the file for an answer.
    fn said(answer: Answer) -> (String, u8) {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree(folder.path());
        let salt = Salt::from_random(1);
        let mut all = All::new(&tree, "why", salt, at("2026-12-01")).unwrap();
        let key = Key::of_name(salt, "a.example");
        all.push(key, &answer).unwrap();
        let bytes = all.finish().unwrap();
        let file = std::fs::read(tree.path(&format!("why/{salt}/all.bin"))).unwrap();
        assert_eq!(file.len() as u64, bytes);
        let end = file.iter().position(|byte| *byte == b'\n').unwrap();
        let (head, entry) = (&file[..end], &file[end + 1..]);
        let head: serde_json::Value = serde_json::from_slice(head).unwrap();
        let digits: String = key.digits().chars().take(16).collect();
        assert_eq!(hex::encode(&entry[..8]), digits);
        let class = head["classes"][usize::from(entry[8])].as_str();
        (class.unwrap().to_owned(), entry[9])
    }

    #[test]
    fn a_host_that_may_have_opted_out_has_no_age() {
        let answer = |why, age| Answer {
            place: Place::ALL[1],
            why,
            age: Some(age),
            ..Answer::WITHHELD
        };
        let down = Age::MonthsDown(4);
        for (why, age, expect) in [
            (Why::Withheld, down, ("withheld", 0)),
            (Why::Stale, down, ("failing", 0)),
            (Why::Lives, down, ("up", 0)),
            (Why::Dead, down, ("gone", 4)),
            (Why::Dead, Age::WeeksKnown(9), ("never", 9)),
            (Why::MovedToListed, down, ("moved_to_listed", 4)),
            (Why::RefusesSoFar, Age::WeeksKnown(2), ("refuses", 2)),
            (Why::NeverAlive, down, ("never", 0)),
        ] {
            let (word, age) = said(answer(why, age));
            assert_eq!((word.as_str(), age), expect, "{why:?}");
        }
        let found = Answer {
            found: words::FOUND.last().copied(),
            ..answer(Why::NeverAlive, Age::WeeksKnown(13))
        };
        assert_eq!(said(found), ("never faulting".to_owned(), 13));
    }
}
