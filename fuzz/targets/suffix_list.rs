//! A list of public suffixes, whole as it comes and as rules within a whole list: a suffix is always a tail of the name, at a label's border.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use admission::suffixes::ICANN_RULES_MIN;
use admission::{Names, Reserved, Suffixes};
use libfuzzer_sys::fuzz_target;
use protocol::Host;

/// A list's beginning, long enough to be taken for a whole one.
static BEGINNING: LazyLock<String> = LazyLock::new(|| {
    let rules: String = (0..ICANN_RULES_MIN)
        .map(|number| format!("tld{number}\n"))
        .collect();
    format!("// ===BEGIN ICANN DOMAINS===\ncom\nco.uk\n*.ck\n!www.ck\n{rules}")
});

const END: &str = "\n// ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\ngithub.io\n// ===END PRIVATE DOMAINS===\n";

fuzz_target!(|rules: &[u8]| {
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
});
