//! The newest changes as two feeds for feed readers: Atom (RFC 4287).
//!
//! Takes sections, oldest first, without the names of hosts that have left. Each dump that changed
//! the names in the list is one entry with its counts and some names, and in the weekly feed each
//! week that is over. A name links to this census's answer about it, never to the host, so that
//! spammers gain nothing from appearing in a feed. Characters that XML can't hold or that change
//! how a line reads are replaced, since software names are untrusted.

mod atom;
mod weeks;

use std::collections::VecDeque;

use sha2::{Digest as _, Sha256};

use crate::line::{Change, Counts, Section};
use crate::paths::ATOM_FILE;
use crate::row::{Moment, Row};
use crate::text::steers;
pub(crate) use weeks::Weeks;

/// Entries in a feed: ten days of four dumps, longer than most readers wait between two visits. It
/// is six hours if opt-outs bring a dump every ten minutes.
const ENTRIES_MAX: usize = 40;

/// Names in an entry: all of them on ordinary days, and a feed stays below 300 kB.
const NAMES_MAX: usize = 100;

/// Characters shown of a software name or version. The longest in use are below 60.
const WORD_CHARACTERS_MAX: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub title: String,
    /// Licence of the feed, an SPDX expression.
    pub licence: String,
    /// Identifies this census and never changes: the ids of feeds and entries are derived from it.
    /// Not secret.
    pub seed: String,
    /// URL of the census's pages, if it is known.
    pub home_url: Option<String>,
    /// URL of the folder of the feeds, with a trailing slash, if it is known.
    pub folder_url: Option<String>,
}

impl About {
    /// A permanent id: a UUID of version 8 (RFC 9562) of the seed and `of`.
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

#[derive(Debug)]
struct Entry {
    /// Its [`About::id`] is derived from this text.
    of: String,
    time: Moment,
    title: String,
    hosts: u64,
    /// Kinds of change, each with its hosts.
    groups: Vec<(&'static str, Vec<Named>)>,
    /// Hosts that are counted but not named.
    unnamed: u64,
}

/// A host, and the text after its name.
#[derive(Debug)]
struct Named {
    host: String,
    words: String,
}

/// The newest entries, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Entries(VecDeque<Entry>);

impl Entries {
    /// Adds a section, newer than all before it, if it changed the names in the list.
    pub(crate) fn add(&mut self, section: &Section) {
        if !is_news(section) {
            return;
        }
        let mut sum = Sum::default();
        sum.add(section);
        let time = section.header.time;
        self.0.push_back(sum.entry(time.to_string(), time, ""));
        if self.0.len() > ENTRIES_MAX {
            self.0.pop_front();
        }
    }

    /// Renders the feed. `time` is used if there is no entry yet.
    pub(crate) fn render(&self, about: &About, time: Moment) -> String {
        let updated = self.0.back().map_or(time, |entry| entry.time);
        let feed = ("feed", ATOM_FILE, about.title.as_str());
        atom::render(about, feed, updated, self.0.iter().rev())
    }
}

/// Whether a section changed the names in the list.
fn is_news(section: &Section) -> bool {
    section.header.since.is_some() && section.header.counts.of_names() > 0
}

/// Such as `3 new, 1 gone`. Changes of versions and states are not counted here.
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

/// Sections that share an entry.
#[derive(Debug, Default)]
struct Sum {
    /// In the last section's list.
    hosts: u64,
    counts: Counts,
    /// The first hosts of each kind of [`KINDS`].
    named: [Vec<Named>; KINDS.len()],
}

impl Sum {
    fn add(&mut self, section: &Section) {
        self.hosts = section.header.hosts;
        self.counts.add_all(&section.header.counts);
        for ((_, of_kind), named) in KINDS.iter().zip(&mut self.named) {
            let room = NAMES_MAX.saturating_sub(named.len());
            named.extend(section.changes.iter().filter_map(of_kind).take(room));
        }
    }

    /// `period` follows the counts in the title.
    fn entry(self, of: String, time: Moment, period: &str) -> Entry {
        let mut room = NAMES_MAX;
        let mut groups = Vec::new();
        for ((heading, _), mut hosts) in KINDS.into_iter().zip(self.named) {
            hosts.truncate(room);
            room = room.saturating_sub(hosts.len());
            if !hosts.is_empty() {
                groups.push((heading, hosts));
            }
        }
        let named = u64::try_from(NAMES_MAX.saturating_sub(room)).unwrap_or(u64::MAX);
        Entry {
            of,
            time,
            title: format!(
                "{}{period}: {} instances",
                counted(&self.counts),
                self.hosts
            ),
            hosts: self.hosts,
            groups,
            unnamed: self.counts.of_names().saturating_sub(named),
        }
    }
}

/// The host of a change, if the change is of this kind.
type OfKind = fn(&Change) -> Option<Named>;

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

/// Such as `a.example` and ` (mastodon 4.5.0)`.
fn shown(row: &Row) -> Named {
    let words: Vec<_> = [&row.instance.software, &row.instance.version]
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

/// Untrusted text on one line. Characters that XML 1.0 can't hold, and invisible characters that
/// change how text is displayed, become U+FFFD.
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
