//! The newest changes as a feed for people's readers: Atom (RFC 4287).
//!
//! Takes sections, oldest first, without the names of hosts that have left. Each dump that changed
//! the names in the list is one entry with its counts and some names. A name links to this census's
//! answer about it, never to the host: a feed must not be worth getting into. Characters that XML
//! can't hold or that change how a line reads are replaced; software names are whatever a server
//! says.

mod atom;

use std::collections::VecDeque;

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
    /// Licence of the feed, an SPDX expression.
    pub licence: String,
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
    /// Hosts in the list.
    hosts: u64,
    /// What happened, and to which hosts.
    groups: Vec<(&'static str, Vec<Named>)>,
    /// Hosts that are counted and not named.
    unnamed: u64,
}

/// A host, and what is said of it.
#[derive(Debug)]
struct Named {
    host: String,
    words: String,
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
        self.0.push_back(entry(section));
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

/// `3 new, 1 gone`; versions and states are not counted here.
fn counted(counts: &Counts) -> String {
    let words = [
        (counts.appeared, "new"),
        (counts.returned, "back"),
        (counts.moved, "moved"),
        (counts.died, "gone"),
        (counts.left, "removed"),
    ];
    let parts: Vec<_> = words
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

fn entry(section: &Section) -> Entry {
    let mut room = NAMES_MAX;
    let mut named: u64 = 0;
    let mut groups = Vec::new();
    for (heading, of_kind) in KINDS {
        let hosts: Vec<_> = section
            .changes
            .iter()
            .filter_map(of_kind)
            .take(room)
            .collect();
        room = room.saturating_sub(hosts.len());
        named = named.saturating_add(u64::try_from(hosts.len()).unwrap_or(u64::MAX));
        if !hosts.is_empty() {
            groups.push((heading, hosts));
        }
    }
    Entry {
        time: section.header.time,
        title: counted(&section.header.counts),
        hosts: section.header.hosts,
        groups,
        unnamed: section.header.counts.of_names().saturating_sub(named),
    }
}

/// How an entry names a host, if it is of this kind.
type OfKind = fn(&Change) -> Option<Named>;

/// In the order in which an entry has them.
const KINDS: [(&str, OfKind); 4] = [
    ("New", |change| match change {
        Change::Appeared(row) => Some(shown(row)),
        Change::Returned(_)
        | Change::Changed(_)
        | Change::Died { .. }
        | Change::Moved { .. }
        | Change::Left { .. } => None,
    }),
    ("Back", |change| match change {
        Change::Returned(row) => Some(shown(row)),
        Change::Appeared(_)
        | Change::Changed(_)
        | Change::Died { .. }
        | Change::Moved { .. }
        | Change::Left { .. } => None,
    }),
    ("Moved", |change| match change {
        Change::Moved { host, to } => Some(Named {
            host: plain(host),
            words: to
                .as_deref()
                .map_or_else(String::new, |to| format!(" to {}", plain(to))),
        }),
        Change::Appeared(_)
        | Change::Returned(_)
        | Change::Changed(_)
        | Change::Died { .. }
        | Change::Left { .. } => None,
    }),
    ("Gone", |change| match change {
        Change::Died { host } => Some(Named {
            host: plain(host),
            words: String::new(),
        }),
        Change::Appeared(_)
        | Change::Returned(_)
        | Change::Changed(_)
        | Change::Moved { .. }
        | Change::Left { .. } => None,
    }),
];

/// `a.example` and ` (mastodon 4.5.0)`
fn shown(row: &Row) -> Named {
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
    Named {
        host: plain(&row.host),
        words: match words.as_slice() {
            [] => String::new(),
            words => format!(" ({})", words.join(" ")),
        },
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
