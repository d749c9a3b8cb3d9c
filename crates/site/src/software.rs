//! Which software is counted and which gets a page, and the content of that page.
//!
//! Takes the software of each listed host, then reads the list back twice. Memory is bounded,
//! whatever names instances use for their software. The counts on the pages are still exact.

pub(crate) mod files;
mod versions;

use std::cmp::Reverse;
use std::collections::HashMap;

use dump::slugs::{Hash, Slugs};

use crate::error::SiteError;
use crate::list::{Least, Listed, Row};
use versions::Counted;
pub(crate) use versions::Versions;

/// Kinds of software that get a page. No list of the Fediverse distinguishes more.
pub(crate) const PAGES_MAX: usize = 200;

/// Names that are counted. Software on more than one in this many listed hosts is certainly
/// counted, however many names are invented.
const COUNTED_MAX: usize = 4096;

/// Names on the page of all software, including those with a page.
pub(crate) const NAMES_SHOWN_MAX: usize = 1000;

/// Hosts on a page in each table: the newest, and those that have been known longest.
pub(crate) const ROWS_SHOWN_MAX: usize = 15;

/// Possibly frequent names, by the algorithm of Misra and Gries: if the table is full, a new name
/// lowers every count by one instead of being added.
#[derive(Debug, Default)]
pub(crate) struct Candidates(HashMap<String, u64>);

impl Candidates {
    pub(crate) fn add(&mut self, software: String) {
        if let Some(count) = self.0.get_mut(&software) {
            *count = count.saturating_add(1);
        } else if self.0.len() < COUNTED_MAX {
            self.0.insert(software, 1);
        } else {
            self.0.retain(|_, count| {
                *count = count.saturating_sub(1);
                *count > 0
            });
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Software {
    pub(crate) name: String,
    /// The file name of its page, without folder and extension.
    pub(crate) slug: String,
    pub(crate) count: u64,
    pub(crate) versions: Versions,
    /// The newest hosts, as lines of the list.
    pub(crate) newest: Vec<String>,
    /// The hosts that have been known longest, as lines of the list.
    pub(crate) oldest: Vec<String>,
}

impl Software {
    pub(crate) fn path(&self) -> String {
        format!("/software/{}.html", self.slug)
    }

    /// Address of the list with only its hosts.
    pub(crate) fn query(&self) -> String {
        format!("/?software={}", encoded(&self.name))
    }

    /// Address of the list with only its hosts of a minor version.
    pub(crate) fn query_of(&self, minor: &str) -> String {
        format!("{}&version={}", self.query(), encoded(minor))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ranking {
    /// Software with pages, the most frequent first.
    pub(crate) pages: Vec<Software>,
    /// The next most frequent names and their counts.
    pub(crate) rest: Vec<(String, u64)>,
    /// Listed hosts of all other software.
    pub(crate) others: u64,
}

impl Ranking {
    /// Number of software names in the ranking.
    pub(crate) fn named(&self) -> u64 {
        let names = self.pages.len().saturating_add(self.rest.len());
        u64::try_from(names).unwrap_or(u64::MAX)
    }
}

/// Ranks the candidates by their exact counts in the list.
pub(crate) fn rank(
    candidates: Candidates,
    listed: &mut Listed<'_>,
    hash: Hash,
) -> Result<Ranking, SiteError> {
    let mut counts = candidates.0;
    counts.values_mut().for_each(|count| *count = 0);
    listed.read(|_, row, _| {
        if let Some(count) = counts.get_mut(row.software) {
            *count = count.saturating_add(1);
        }
    })?;
    let mut ranked: Vec<_> = counts.into_iter().collect();
    ranked.sort_unstable_by(by_count);
    ranked.truncate(NAMES_SHOWN_MAX);
    let rest = ranked.split_off(ranked.len().min(PAGES_MAX));
    let named = ranked
        .iter()
        .chain(&rest)
        .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    Ok(Ranking {
        pages: pages(ranked, listed, hash)?,
        rest,
        others: listed.rows.saturating_sub(named),
    })
}

/// Data for a page, collected while the list is read.
struct Gathered {
    versions: Counted,
    newest: Least<Reverse<String>>,
    oldest: Least<String>,
}

fn pages(
    ranked: Vec<(String, u64)>,
    listed: &mut Listed<'_>,
    hash: Hash,
) -> Result<Vec<Software>, SiteError> {
    let mut slugs = Slugs::new(hash);
    let mut gathered: HashMap<&str, Gathered> = ranked
        .iter()
        .map(|(name, _)| (name.as_str(), Gathered::new()))
        .collect();
    listed.read(|line, row, _| {
        if let Some(page) = gathered.get_mut(row.software) {
            page.take(line, row);
        }
    })?;
    Ok(ranked
        .iter()
        .map(|(name, count)| {
            let page = gathered.remove(name.as_str()).unwrap_or_else(Gathered::new);
            Software {
                name: name.clone(),
                slug: slugs.take(name),
                count: *count,
                versions: page.versions.finish(*count),
                newest: page.newest.into_lines(),
                oldest: page.oldest.into_lines(),
            }
        })
        .collect())
}

impl Gathered {
    fn new() -> Self {
        Self {
            versions: Counted::default(),
            newest: Least::new(ROWS_SHOWN_MAX),
            oldest: Least::new(ROWS_SHOWN_MAX),
        }
    }

    fn take(&mut self, line: &str, row: Row<'_>) {
        let first_seen = row.first_seen.to_owned();
        self.newest.push(Reverse(first_seen.clone()), line);
        self.oldest.push(first_seen, line);
        self.versions.add(row.version);
    }
}

/// A text as a value in an address's query (RFC 3986): all but unreserved characters are escaped.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex::encode_upper([byte]));
        }
    }
    out
}

/// The most frequent first; equal counts sort by name.
fn by_count(one: &(String, u64), other: &(String, u64)) -> std::cmp::Ordering {
    other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0))
}

#[cfg(test)]
mod tests {
    use dump::{ListedRow, ListedState, Moment};

    use super::*;
    use crate::list::List;
    use crate::write::tests::tree;

    fn ranked(rows: impl Iterator<Item = (String, String)>) -> Ranking {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree(folder.path());
        let mut list = List::new(&tree).unwrap();
        let mut candidates = Candidates::default();
        for (number, (software, version)) in rows.enumerate() {
            let instance = ListedRow {
                host: format!("h{number:07}.example"),
                state: ListedState::Alive,
                instance: kit::software(&software, &version),
                first_seen: Moment::from_milliseconds(0),
                last_alive: Moment::from_milliseconds(0),
            };
            if let (Some(software), _) = list.push(&instance).unwrap() {
                candidates.add(software);
            }
        }
        rank(candidates, &mut list.finish().unwrap(), dump::slugs::sha256).unwrap()
    }

    #[test]
    fn made_up_names_neither_displace_the_frequent_nor_falsify_their_counts() {
        let made_up = (0..20_000).map(|number| (format!("x{number}"), "1".to_owned()));
        let real = (0..600).map(|number| ("mastodon".to_owned(), format!("4.{}", number % 40)));
        let ranking = ranked(made_up.chain(real));
        assert_eq!(ranking.pages.len(), PAGES_MAX);
        assert_eq!(ranking.pages[0].name, "mastodon");
        assert_eq!(ranking.pages[0].count, 600);
        assert_eq!(ranking.pages[0].newest.len(), ROWS_SHOWN_MAX);
        assert_eq!(ranking.pages[0].oldest.len(), ROWS_SHOWN_MAX);
        let versions = &ranking.pages[0].versions;
        assert_eq!(versions.newest, Some(("4.39".to_owned(), 15)));
        let shown: u64 = versions.minors.iter().map(|(_, count)| count).sum();
        assert_eq!(versions.others, 600 - shown);
        let named = PAGES_MAX + ranking.rest.len();
        assert!(named <= NAMES_SHOWN_MAX, "{named}");
        assert_eq!(ranking.others, 20_600 - 600 - (named as u64 - 1));
    }

    #[test]
    fn a_name_in_an_address_is_escaped() {
        assert_eq!(encoded("lemmy"), "lemmy");
        assert_eq!(encoded("a b&c=#ü"), "a%20b%26c%3D%23%C3%BC");
    }

    #[test]
    fn no_host_is_lost_between_the_counts() {
        let names = ["a", "b", "", "b", "c", "a", "b"];
        let ranking = ranked(
            names
                .into_iter()
                .map(|name| (name.to_owned(), String::new())),
        );
        let counts: Vec<_> = ranking
            .pages
            .iter()
            .map(|page| (page.name.as_str(), page.count, page.versions.others))
            .collect();
        assert_eq!(counts, [("b", 3, 3), ("a", 2, 2), ("c", 1, 1)]);
        assert_eq!(ranking.others, 1);
    }
}
