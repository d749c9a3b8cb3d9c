//! A list of public suffixes: the input as the list, as an excerpt, and as rules within a complete
//! list. A suffix is always a tail of the name at a label's border, and equals the one found by
//! trying every rule.

use std::path::Path;
use std::sync::LazyLock;

use admission::suffixes::ICANN_RULES_MIN;
use admission::{DomainName, Names, Reserved, Suffixes};
use protocol::Host;

/// A list's beginning, long enough to pass as a complete list.
static BEGINNING: LazyLock<String> = LazyLock::new(|| {
    let rules: String = (0..ICANN_RULES_MIN)
        .map(|number| format!("tld{number}\n"))
        .collect();
    format!("// ===BEGIN ICANN DOMAINS===\ncom\nco.uk\n*.ck\n!www.ck\n{rules}")
});

const END: &str = "\n// ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\ngithub.io\n// ===END PRIVATE DOMAINS===\n";

pub fn check(rules: &[u8]) {
    let path = Path::new("list.dat");
    let mut hosts: Vec<Host> = String::from_utf8_lossy(rules)
        .split_whitespace()
        .take(8)
        .flat_map(|rule| {
            let bare = rule.trim_start_matches(['!', '*', '.']);
            [format!("a.b.{bare}"), bare.to_owned()]
        })
        .filter_map(|name| Host::parse(&name).ok())
        .collect();
    hosts.push(Host::parse("a.b.co.uk").expect("a name"));
    let whole = [BEGINNING.as_bytes(), rules, END.as_bytes()].concat();
    if let Ok(excerpt) = Suffixes::from_excerpt(rules, path) {
        for host in &hosts {
            as_plainly_read(rules, &excerpt, host);
        }
    }
    for bytes in [rules, &whole] {
        let Ok(suffixes) = Suffixes::from_bytes(bytes, path) else {
            continue;
        };
        for host in &hosts {
            let suffix = suffixes.suffix(host);
            assert!(!suffix.name.is_empty() && host.is_within(suffix.name));
        }
        let names = Names {
            suffixes,
            reserved: Reserved::Refuse,
        };
        for host in &hosts {
            assert!(host.is_within(&names.registered_domain(host)));
        }
    }
}

/// The suffix by the published algorithm: of all matching rules, the exception; otherwise the one
/// with the most labels.
fn as_plainly_read(list: &[u8], suffixes: &Suffixes, host: &Host) {
    let list = String::from_utf8_lossy(list.strip_prefix(b"\xef\xbb\xbf").unwrap_or(list));
    let labels: Vec<_> = host.as_str().rsplit('.').collect();
    let matching = list.split(['\n', '\r']).filter_map(|line| {
        let rule = line.split_whitespace().next()?;
        if rule.starts_with("//") {
            return None;
        }
        let is_exception = rule.starts_with('!');
        let rule = rule.trim_start_matches('!');
        let is_wildcard = rule.starts_with('*');
        let bare = rule.trim_start_matches('*').trim_start_matches('.');
        let bare = DomainName::parse(bare).ok();
        let mut rule: Vec<_> = bare
            .iter()
            .flat_map(|bare| bare.as_str().rsplit('.'))
            .collect();
        if is_wildcard {
            rule.push("*");
        }
        let matches = rule.len() <= labels.len()
            && rule
                .iter()
                .zip(&labels)
                .all(|(rule, label)| *rule == "*" || rule == label);
        matches.then_some((is_exception, rule.len()))
    });
    let expect = matching
        .max()
        .map(|(is_exception, length)| length - usize::from(is_exception));
    let found = suffixes.suffix(host);
    let count = found.name.split('.').count();
    assert_eq!(found.is_known.then_some(count), expect, "{host}");
    let domain = DomainName::from(host);
    let registered = suffixes.registered_domain(&domain).ok();
    let count = registered.map(|name| name.split('.').count());
    let expect = expect.filter(|length| *length < labels.len());
    assert_eq!(count, expect.map(|length| length + 1), "{host}");
}
