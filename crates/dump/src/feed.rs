//! The newest changes as a feed for people's readers: Atom (RFC 4287).
//!
//! In: sections, oldest first, without the names of who has left. Out: one entry a dump that changed who is in the list, with its counts and some
//! names. Entries are plain text and hold no links: a feed must not be worth getting into. Refused: characters that XML can't hold or that could
//! make a line read otherwise than it is; software names are whatever a server says.

mod atom;

use std::collections::VecDeque;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::changes::line::{Change, Counts, Row, Section};
use crate::instance::Moment;
use crate::text::steers;

/// The Atom feed.
pub const ATOM_FILE: &str = "feed.atom";

/// Entries in a feed: ten days at four dumps a day, longer than most readers let pass between two looks.
const ENTRIES_MAX: usize = 40;

/// Names in an entry: on ordinary days all of them, and a feed stays below 300 kB.
const NAMES_MAX: usize = 100;

/// Characters of a software name or version that are shown. The longest in use are below 60.
const WORD_CHARACTERS_MAX: usize = 60;

/// What a feed says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its title, one line.
    pub title: String,
    /// What tells this census from all others and never changes: the ids of feeds and entries are made from it. Not secret.
    pub seed: String,
    /// The address of the census's pages, if it is known.
    pub home_url: Option<String>,
    /// The address of the folder in which the feeds lie, with a slash at its end, if it is known.
    pub folder_url: Option<String>,
}

impl About {
    /// An id that is the same for ever: a UUID of version 8 (RFC 9562) of the seed and what it is of.
    fn id(&self, of: &str) -> String {
        let mut digest = Sha256::new_with_prefix(b"fedicensus/v1/feed\0");
        digest.update(self.seed.as_bytes());
        digest.update(b"\0");
        digest.update(of.as_bytes());
        let bytes = digest.finalize();
        let mut number = bytes
            .iter()
            .take(16)
            .fold(0, |number: u128, byte| (number << 8) | u128::from(*byte));
        number &= !(0xf << 76) & !(0b11 << 62);
        number |= (8 << 76) | (0b10 << 62);
        let digits = format!("{number:032x}");
        let mut id = String::from("urn:uuid:");
        for (place, digit) in digits.chars().enumerate() {
            if matches!(place, 8 | 12 | 16 | 20) {
                id.push('-');
            }
            id.push(digit);
        }
        id
    }
}

/// A dump in a feed.
#[derive(Debug)]
struct Entry {
    time: Moment,
    title: String,
    text: String,
}

/// The newest entries, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Entries(VecDeque<Entry>);

impl Entries {
    /// Adds a section, newer than all before it, if it changed who is in the list.
    pub(crate) fn add(&mut self, section: &Section) {
        let header = &section.header;
        if header.since.is_none() || header.counts.of_names() == 0 {
            return;
        }
        self.0.push_back(Entry {
            time: header.time,
            title: counted(&header.counts),
            text: text(section),
        });
        if self.0.len() > ENTRIES_MAX {
            self.0.pop_front();
        }
    }

    /// The feed. `time` stands in one that has no entry yet.
    pub(crate) fn render(&self, about: &About, time: Moment) -> String {
        let updated = self.0.back().map_or(time, |entry| entry.time);
        atom::render(about, updated, self.0.iter().rev())
    }
}

/// `3 appeared, 1 died`; versions and states are not counted here.
fn counted(counts: &Counts) -> String {
    let words = [
        (counts.appeared, "appeared"),
        (counts.returned, "returned"),
        (counts.moved, "moved"),
        (counts.died, "died"),
        (counts.left, "left"),
    ];
    let parts: Vec<_> = words
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

fn text(section: &Section) -> String {
    let mut text = format!("{} hosts in the list.", section.header.hosts);
    let mut room = NAMES_MAX;
    let mut named: u64 = 0;
    for (heading, line) in KINDS {
        let lines: Vec<_> = section.changes.iter().filter_map(line).take(room).collect();
        if !lines.is_empty() {
            room = room.saturating_sub(lines.len());
            named = named.saturating_add(u64::try_from(lines.len()).unwrap_or(u64::MAX));
            // Writing to text can't fail.
            write!(text, "\n{heading}: {}", lines.join(", ")).ok();
        }
    }
    let unnamed = section.header.counts.of_names().saturating_sub(named);
    if unnamed > 0 {
        write!(text, "\nNot named here: {unnamed}.").ok();
    }
    text
}

/// How an entry names a host, if it is of this kind.
type OfKind = fn(&Change) -> Option<String>;

/// In the order in which an entry has them.
const KINDS: [(&str, OfKind); 4] = [
    ("Appeared", |change| match change {
        Change::Appeared(row) => Some(shown(row)),
        Change::Returned(_)
        | Change::Changed(_)
        | Change::Died { .. }
        | Change::Moved { .. }
        | Change::Left { .. } => None,
    }),
    ("Returned", |change| match change {
        Change::Returned(row) => Some(shown(row)),
        Change::Appeared(_)
        | Change::Changed(_)
        | Change::Died { .. }
        | Change::Moved { .. }
        | Change::Left { .. } => None,
    }),
    ("Moved", |change| match change {
        Change::Moved { host, to: Some(to) } => Some(format!("{} to {}", plain(host), plain(to))),
        Change::Moved { host, to: None } => Some(plain(host)),
        Change::Appeared(_)
        | Change::Returned(_)
        | Change::Changed(_)
        | Change::Died { .. }
        | Change::Left { .. } => None,
    }),
    ("Died", |change| match change {
        Change::Died { host } => Some(plain(host)),
        Change::Appeared(_)
        | Change::Returned(_)
        | Change::Changed(_)
        | Change::Moved { .. }
        | Change::Left { .. } => None,
    }),
];

/// `a.example (mastodon 4.5.0)`
fn shown(row: &Row) -> String {
    let words: Vec<_> = [&row.software, &row.version]
        .into_iter()
        .flatten()
        .map(|word| {
            plain(word)
                .chars()
                .take(WORD_CHARACTERS_MAX)
                .collect::<String>()
        })
        .collect();
    if words.is_empty() {
        plain(&row.host)
    } else {
        format!("{} ({})", plain(&row.host), words.join(" "))
    }
}

/// Text of strangers on one line: what XML 1.0 can't hold, and what steers instead of being seen, becomes U+FFFD.
fn plain(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
            _ if steers(character) => char::REPLACEMENT_CHARACTER,
            _ => character,
        })
        .collect()
}

#[cfg(test)]
mod tests;
