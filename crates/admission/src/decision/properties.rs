//! Compares decisions with those of a slow implementation that follows the rules' description alone
//! and shares no code with ours.

use std::collections::HashMap;

use proptest::prelude::*;

use super::tests::policy;
use super::*;
use crate::counters::HashKey;

/// The public suffixes of these tests.
const LIST: &str = "com\nuk\nco.uk\n*.ck\n!www.ck\n*.b.com\n!a.b.com\na.co.uk\n";

const DAY: u64 = 86_400;

/// Rules as a list of lines, and every admission ever made.
struct Plain {
    lines: Vec<(String, String, u32)>,
    is_test_domain_allowed: bool,
    start: Option<u64>,
    admissions: Vec<(u64, String, String)>,
}

impl Plain {
    /// Whether the name is admitted, and the rule, counter and limit that decided.
    fn decide(
        &mut self,
        key: Option<&str>,
        domain: Option<&str>,
        now: u64,
    ) -> (bool, Option<(String, String, u32)>) {
        let start = self.start.get_or_insert(now);
        while *start + DAY <= now {
            *start += DAY;
        }
        let start = *start;
        let Some((rule, counter, limit)) = self.rule(key, domain) else {
            return (false, None);
        };
        let this = (start, rule.clone(), counter.clone());
        let count = self.admissions.iter().filter(|made| **made == this).count();
        let allow = count < usize::try_from(limit).unwrap();
        if allow {
            self.admissions.push(this);
        }
        (allow, Some((rule, counter, limit)))
    }

    fn line(&self, keyword: &str, item: &str) -> Option<(String, String, u32)> {
        let found = self
            .lines
            .iter()
            .find(|line| line.0 == keyword && line.1 == item);
        found.cloned()
    }

    fn rule(&self, key: Option<&str>, domain: Option<&str>) -> Option<(String, String, u32)> {
        if let Some(line) = key.and_then(|key| self.line("key", key)) {
            return Some(line);
        }
        let domain = domain?;
        let is_test = domain == "test.sigsum.org" || domain.ends_with(".test.sigsum.org");
        if is_test && !self.is_test_domain_allowed {
            return None;
        }
        let labels: Vec<_> = domain.split('.').collect();
        for first in 0..labels.len() {
            if let Some(line) = self.line("domain", &labels[first..].join(".")) {
                return Some(line);
            }
        }
        let limit = self.line("public", "default")?.2;
        if limit == 0 {
            return None;
        }
        let suffix = suffix_labels(&labels)?;
        let first = labels.len().checked_sub(suffix + 1)?;
        Some(("public".to_owned(), labels[first..].join("."), limit))
    }
}

/// Number of labels in the public suffix, by the list's own description of the algorithm, rule by
/// rule.
fn suffix_labels(labels: &[&str]) -> Option<usize> {
    let mut matching: Vec<(bool, usize)> = Vec::new();
    for rule in LIST.lines() {
        let is_exception = rule.starts_with('!');
        let rule: Vec<_> = rule.trim_start_matches('!').split('.').collect();
        let matches = rule.len() <= labels.len()
            && rule
                .iter()
                .rev()
                .zip(labels.iter().rev())
                .all(|(rule, label)| *rule == "*" || rule == label);
        if matches {
            matching.push((is_exception, rule.len()));
        }
    }
    let (is_exception, length) = matching.into_iter().max()?;
    Some(if is_exception { length - 1 } else { length })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(|digit| digit.repeat(64))
}

fn domain() -> impl Strategy<Value = String> {
    let label = prop_oneof![
        "a",
        "b",
        "www",
        "co",
        "uk",
        "com",
        "ck",
        "test",
        "xn--bcher-kva"
    ];
    let any = proptest::collection::vec(label, 1..5).prop_map(|labels| labels.join("."));
    prop_oneof![
        8 => any,
        1 => prop_oneof![Just("test.sigsum.org"), Just("a.test.sigsum.org"), Just("sigsum.org"), Just("latest.sigsum.org")].prop_map(str::to_owned),
    ]
}

fn lines() -> impl Strategy<Value = Vec<(String, String, u32)>> {
    let keys = proptest::collection::hash_map(key(), 0_u32..3, 0..3);
    let domains = proptest::collection::hash_map(domain(), 0_u32..4, 0..8);
    let public = proptest::option::of(0_u32..4);
    (keys, domains, public).prop_map(|(keys, domains, public)| {
        let keys = keys
            .into_iter()
            .map(|(item, limit)| ("key".to_owned(), item, limit));
        let domains = domains
            .into_iter()
            .map(|(item, limit)| ("domain".to_owned(), item, limit));
        let public = public.map(|limit| ("public".to_owned(), "default".to_owned(), limit));
        keys.chain(domains).chain(public).collect()
    })
}

fn requests() -> impl Strategy<Value = Vec<(Option<String>, Option<String>, u64)>> {
    let seconds = prop_oneof![6 => 0..2_u64, 2 => 0..DAY, 1 => DAY - 1..DAY + 2, 1 => DAY..9 * DAY];
    let request = (
        proptest::option::weighted(0.3, key()),
        proptest::option::weighted(0.9, domain()),
        seconds,
    );
    proptest::collection::vec(request, 1..80)
}

proptest! {
    #[test]
    fn decisions_are_those_of_the_description(lines in lines(), requests in requests(), is_test_domain_allowed: bool) {
        let text: Vec<_> = lines.iter().map(|(keyword, item, limit)| format!("{keyword} {item} {limit}")).collect();
        let mut policy = policy(&text.join("\n"), if is_test_domain_allowed { TestDomain::Allow } else { TestDomain::Refuse });
        policy.suffixes = Suffixes::from_excerpt(LIST.as_bytes(), std::path::Path::new("list")).unwrap();
        let mut counters = Counters::new(HashKey([9; 16]));
        let mut plain = Plain { lines, is_test_domain_allowed, start: None, admissions: Vec::new() };
        let mut now = 5;
        for (key, domain, seconds) in requests {
            now += seconds;
            let (allow, rule) = plain.decide(key.as_deref(), domain.as_deref(), now);
            let (key, name) = (key.map(|key| KeyHash::parse(&key).unwrap()), domain.map(|domain| DomainName::parse(&domain).unwrap()));
            let before: HashMap<_, _> = counters.rows().map(|row| ((row.table, row.id), row.count)).collect();
            let window = counters.window_start_s();
            let decision = policy.decide(&mut counters, key.as_ref(), name.as_ref(), now);
            prop_assert_eq!(decision.is_admitted(), allow, "{:?}", decision);
            let found = decision.counter.as_ref().map(|counter| (counter.table.as_str().to_owned(), counter.name.clone(), counter.limit.get()));
            prop_assert_eq!(found, rule);
            // One admission increments one counter, a refusal none.
            if window == counters.window_start_s() {
                let moved: u32 = counters.rows().map(|row| row.count - before.get(&(row.table, row.id)).copied().unwrap_or(0)).sum();
                prop_assert_eq!(moved, u32::from(allow));
            }
            let total = plain.admissions.iter().filter(|made| Some(made.0) == plain.start).count();
            let kept: u32 = counters.rows().map(|row| row.count).sum();
            prop_assert_eq!(usize::try_from(kept).unwrap(), total);
        }
    }
}
