//! A file of admission rules is accepted as a whole, or every wrong line is reported. Accepted
//! rules have one canonical form, and each rule does what it states.

use std::path::Path;

use admission::rules::{LineError, Problem, RulesError};
use admission::{Counters, DomainName, HashKey, Limit, Policy, Rules, Suffixes, TestDomain};

fn parse(bytes: &[u8]) -> Result<Rules, RulesError> {
    Rules::parse(bytes, Path::new("rules"))
}

pub fn check(file: &[u8]) {
    match parse(file) {
        Ok(rules) => taken(file, rules),
        Err(RulesError::Malformed { lines, .. }) => refused(file, &lines),
        Err(other) => panic!("a short file: {other}"),
    }
}

fn taken(file: &[u8], rules: Rules) {
    // The order of lines has no meaning, and each line is a rule.
    let body = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let mut lines: Vec<_> = body.split(|&byte| byte == b'\n').collect();
    let number = rules.keys.len() + rules.domains.len() + usize::from(rules.public.is_some());
    let alone: usize = lines
        .iter()
        .map(|line| {
            let rules = parse(line).expect("a line of a file that was taken");
            rules.keys.len() + rules.domains.len() + usize::from(rules.public.is_some())
        })
        .sum();
    assert_eq!(alone, number);
    lines.reverse();
    for line in &mut lines {
        *line = line.strip_suffix(b"\r").unwrap_or(line);
    }
    let reversed = lines.join(&b"\r\n"[..]);
    assert_eq!(parse(&reversed).expect("the same lines"), rules);

    let mut text = String::new();
    for (key, limit) in &rules.keys {
        text.push_str(&format!("key {key} {limit}\n"));
    }
    for (domain, limit) in &rules.domains {
        assert_eq!(DomainName::parse(domain.as_str()).as_ref(), Ok(domain));
        text.push_str(&format!("domain {domain} {limit}\n"));
    }
    if let Some(public) = &rules.public {
        text.push_str(&format!("public {} {}\n", public.list, public.limit));
    }
    assert_eq!(parse(text.as_bytes()).expect("its own form"), rules);
    obeyed(rules);
}

/// Each key and each domain with a line is admitted once if its limit is above 0, by a separate
/// counter.
fn obeyed(rules: Rules) {
    let policy = Policy {
        rules,
        suffixes: Suffixes::compiled(),
        test_domain: TestDomain::Allow,
    };
    let mut counters = Counters::new(HashKey([0; 16]));
    let mut check = |key, domain: Option<&DomainName>, name: &str, limit: Limit| {
        let decision = policy.decide(&mut counters, key, domain, 0);
        assert_eq!(decision.is_admitted(), limit > Limit::ZERO);
        let counter = decision.counter.expect("it has a line");
        assert_eq!(
            (counter.name.as_str(), counter.count, counter.limit),
            (name, 0, limit)
        );
    };
    for (key, &limit) in &policy.rules.keys {
        check(Some(key), None, &key.to_string(), limit);
    }
    for (domain, &limit) in &policy.rules.domains {
        check(None, Some(domain), domain.as_str(), limit);
    }
}

fn refused(file: &[u8], wrong: &[LineError]) {
    assert!(!wrong.is_empty());
    let body = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let lines: Vec<_> = body.split(|&byte| byte == b'\n').collect();
    let mut told = wrong.iter().peekable();
    for (number, line) in (1..).zip(&lines) {
        let alone = match parse(line) {
            Ok(_) => None,
            Err(RulesError::Malformed { lines, .. }) => lines.first().cloned(),
            Err(other) => panic!("a line: {other}"),
        };
        let is_marked = line.starts_with(b"\xef\xbb\xbf");
        match told.next_if(|told| told.line == number) {
            Some(told) => {
                assert!(told.text.len() <= 400 && told.to_string().lines().count() == 1);
                match told.problem {
                    Problem::Twice { first } | Problem::SecondPublic { first } => {
                        assert!(first < number && alone.is_none());
                    }
                    problem => {
                        assert!(is_marked || alone.is_some_and(|alone| alone.problem == problem))
                    }
                }
            }
            None => assert!(alone.is_none()),
        }
    }
    assert!(told.next().is_none());
}
