//! The rules of a public suffix list, and the suffix of a name by them.
//!
//! Format and algorithm are those of <https://github.com/publicsuffix/list/wiki/Format>, with one
//! exception: no `*` is added to a list without one, so a top-level domain without a rule stays
//! unknown.

use std::collections::BTreeMap;

use crate::domain::{DomainName, tails};

/// Longest rule in bytes: the longest host name.
pub const RULE_BYTES_MAX: usize = 253;

/// Most rules. The list of 2026 has ten thousand, so it may grow tenfold.
pub const RULES_MAX: usize = 100_000;

/// The rules, each under its name without `!` and `*.`. A single `*` is under the empty name.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Table(BTreeMap<Box<str>, Marks>);

/// The kinds of rules for a name.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    /// A rule for the name itself.
    is_suffix: bool,
    /// A rule with `*.` before the name.
    has_wildcard: bool,
    /// A rule with `!` before the name.
    is_exception: bool,
}

/// Why a text is not a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    RuleTooLong { line: usize },
    BadRule { line: usize, rule: String },
    TooMany,
    Empty,
}

impl Table {
    /// Parses the rules in `text`, one per line, each up to the first white space, both ICANN's and
    /// private ones. Comments begin with `//`.
    pub(super) fn parse(text: &str) -> Result<Self, Flaw> {
        let mut table = Self::default();
        for (line, rule) in rules(text) {
            if rule.len() > RULE_BYTES_MAX {
                return Err(Flaw::RuleTooLong { line });
            }
            if table.add(rule).is_none() {
                let rule = rule.to_owned();
                return Err(Flaw::BadRule { line, rule });
            }
            if table.0.len() > RULES_MAX {
                return Err(Flaw::TooMany);
            }
        }
        if table.0.is_empty() {
            return Err(Flaw::Empty);
        }
        Ok(table)
    }

    /// The rules before line `end` of a list that was parsed successfully. `None` if there are
    /// none.
    pub(super) fn before(text: &str, end: usize) -> Option<Self> {
        let mut table = Self::default();
        for (_, rule) in rules(text).take_while(|(line, _)| *line < end) {
            table.add(rule)?;
        }
        (!table.0.is_empty()).then_some(table)
    }

    fn add(&mut self, rule: &str) -> Option<()> {
        let mark: fn(&mut Marks);
        let name = if let Some(name) = rule.strip_prefix('!') {
            mark = |marks| marks.is_exception = true;
            // An exception of a single label would leave an empty suffix.
            canonical(name).filter(|name| name.contains('.'))?
        } else if rule == "*" {
            mark = |marks| marks.has_wildcard = true;
            "".into()
        } else if let Some(name) = rule.strip_prefix("*.") {
            mark = |marks| marks.has_wildcard = true;
            canonical(name)?
        } else {
            mark = |marks| marks.is_suffix = true;
            canonical(rule)?
        };
        mark(self.0.entry(name).or_default());
        Some(())
    }

    /// The public suffix of `name`, which may be the whole name. `None` if no rule matches.
    ///
    /// An exception has precedence over all other rules; among those the one with the most labels
    /// applies.
    pub(super) fn suffix<'name>(&self, name: &'name str) -> Option<&'name str> {
        let mut longest = None;
        for tail in tails(name) {
            let parent = tail.split_once('.').map(|(_, parent)| parent);
            let marks = self.marks(tail);
            if marks.is_exception {
                return parent;
            }
            if longest.is_none()
                && (marks.is_suffix || self.marks(parent.unwrap_or("")).has_wildcard)
            {
                longest = Some(tail);
            }
        }
        longest
    }

    fn marks(&self, name: &str) -> Marks {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// The rules of a list as written, with their line numbers.
pub(super) fn rules(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text).filter_map(|(line, text)| {
        let rule = text.split_whitespace().next()?;
        (!rule.starts_with("//")).then_some((line, rule))
    })
}

/// The lines of a list with their numbers. They end with LF, CR LF or CR: otherwise a comment could
/// swallow the next rule.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text
        .split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'));
    (1..).zip(lines)
}

fn canonical(name: &str) -> Option<Box<str>> {
    let domain = DomainName::parse(name).ok()?;
    Some(domain.as_str().into())
}
