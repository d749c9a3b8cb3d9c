use std::path::Path;

use super::*;
use crate::counters::{HashKey, WINDOW_SECONDS};

/// SHA-256 of some public keys.
const KEY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OTHER_KEY: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

pub(crate) fn policy(rules: &str, test_domain: TestDomain) -> Policy {
    Policy {
        rules: Rules::parse(rules.as_bytes(), Path::new("rules")).unwrap(),
        suffixes: Suffixes::compiled(),
        test_domain,
    }
}

struct Asked {
    policy: Policy,
    counters: Counters,
}

fn asked(rules: &str) -> Asked {
    Asked {
        policy: policy(rules, TestDomain::Refuse),
        counters: Counters::new(HashKey([1; 16])),
    }
}

impl Asked {
    fn decide(&mut self, key: &str, domain: &str, now_s: u64) -> Decision {
        let key = (!key.is_empty()).then(|| KeyHash::parse(key).unwrap());
        let domain = (!domain.is_empty()).then(|| DomainName::parse(domain).unwrap());
        self.policy
            .decide(&mut self.counters, key.as_ref(), domain.as_ref(), now_s)
    }

    /// Checks that the decision is `rule counter count/limit`, or this reason if there is no
    /// counter.
    #[track_caller]
    fn check(&mut self, key: &str, domain: &str, expect: Result<&str, Reason>) {
        let decision = self.decide(key, domain, 0);
        let shown = decision.counter.as_ref().map(|counter| {
            let table = counter.table.as_str();
            let name = counter.name.replace(KEY, "a*").replace(OTHER_KEY, "b*");
            format!("{table} {name} {}/{}", counter.count, counter.limit)
        });
        let found = match (&shown, decision.reason) {
            (Some(shown), Reason::Room | Reason::Exhausted | Reason::Banned) => Ok(shown.as_str()),
            (_, reason) => Err(reason),
        };
        assert_eq!(found, expect, "{domain}");
        assert_eq!(decision.is_admitted(), decision.reason == Reason::Room);
        let is_ban = decision
            .counter
            .is_some_and(|counter| counter.limit == Limit::ZERO);
        assert_eq!(is_ban, decision.reason == Reason::Banned);
    }
}

#[test]
fn a_keys_line_decides_and_nothing_falls_through() {
    let mut asked = asked(&format!(
        "key {KEY} 1\nkey {OTHER_KEY} 0\ndomain a.com 5\npublic default 5"
    ));
    asked.check(KEY, "a.com", Ok("key a* 0/1"));
    asked.check(KEY, "a.com", Ok("key a* 1/1"));
    asked.check(KEY, "", Ok("key a* 1/1"));
    asked.check(OTHER_KEY, "a.com", Ok("key b* 0/0"));
    asked.check(OTHER_KEY, "b.com", Ok("key b* 0/0"));
    // The domains' counters were not touched.
    asked.check("", "a.com", Ok("domain a.com 0/5"));
    asked.check(&"c".repeat(64), "b.com", Ok("public b.com 0/5"));
}

#[test]
fn without_a_domain_only_a_key_counts() {
    let mut asked = asked("domain com 5\npublic default 5");
    asked.check("", "", Err(Reason::NoDomain));
    asked.check(KEY, "", Err(Reason::NoDomain));
}

#[test]
fn the_longest_domain_line_decides_and_all_below_it_share_its_counter() {
    let mut asked = asked(
        "domain com 9\ndomain a.com 2\ndomain x.y.a.com 1\ndomain ban.a.com 0\npublic default 9",
    );
    asked.check("", "a.com", Ok("domain a.com 0/2"));
    asked.check("", "q.y.a.com", Ok("domain a.com 1/2"));
    asked.check("", "other.a.com", Ok("domain a.com 2/2"));
    // Uses neither its parent's exhausted counter nor that of the parent's parent.
    asked.check("", "x.y.a.com", Ok("domain x.y.a.com 0/1"));
    asked.check("", "w.x.y.a.com", Ok("domain x.y.a.com 1/1"));
    asked.check("", "ban.a.com", Ok("domain ban.a.com 0/0"));
    asked.check("", "deep.below.ban.a.com", Ok("domain ban.a.com 0/0"));
    asked.check("", "b.com", Ok("domain com 0/9"));
    // Labels are compared whole.
    asked.check("", "nota.com", Ok("domain com 1/9"));
    asked.check("", "com", Ok("domain com 2/9"));
    asked.check("", "a.org", Ok("public a.org 0/9"));
}

#[test]
fn a_ban_leaves_a_host_in_that_has_a_longer_line() {
    let mut asked = asked("domain a.com 0\ndomain good.a.com 1");
    asked.check("", "bad.a.com", Ok("domain a.com 0/0"));
    asked.check("", "good.a.com", Ok("domain good.a.com 0/1"));
}

#[test]
fn domains_are_compared_in_their_canonical_form() {
    let mut asked = asked("domain BÜCHER.com. 1");
    asked.check(
        "",
        "a.xn--bcher-kva.com",
        Ok("domain xn--bcher-kva.com 0/1"),
    );
    asked.check("", "Bücher.COM.", Ok("domain xn--bcher-kva.com 1/1"));
}

#[test]
fn each_registered_domain_has_a_counter_and_what_is_nobodys_has_none() {
    use NoRegisteredDomain::{PublicSuffix, UnknownSuffix};
    let mut asked = asked("public default 2");
    asked.check("", "a.b.co.uk", Ok("public b.co.uk 0/2"));
    asked.check("", "b.co.uk", Ok("public b.co.uk 1/2"));
    asked.check("", "c.b.co.uk", Ok("public b.co.uk 2/2"));
    asked.check("", "a.c.co.uk", Ok("public c.co.uk 0/2"));
    asked.check("", "me.github.io", Ok("public me.github.io 0/2"));
    asked.check("", "you.github.io", Ok("public you.github.io 0/2"));
    asked.check("", "www.ck", Ok("public www.ck 0/2"));
    asked.check("", "a.www.ck", Ok("public www.ck 1/2"));
    for suffix in ["co.uk", "com", "github.io", "any.ck"] {
        asked.check("", suffix, Err(PublicSuffix.into()));
    }
    for unknown in ["ck", "a.no-such-top-level", "localhost"] {
        asked.check("", unknown, Err(UnknownSuffix.into()));
    }
}

#[test]
fn without_a_rule_it_is_refused() {
    for rules in ["", "public default 0", "domain b.com 5"] {
        asked(rules).check(KEY, "a.com", Err(Reason::NoRule));
    }
    // Even for names without a registered domain, which is not needed here.
    asked("public default 0").check("", "com", Err(Reason::NoRule));
}

#[test]
fn the_test_domain_is_refused_unless_it_is_allowed() {
    let rules = format!(
        "key {KEY} 1\ndomain test.sigsum.org 5\ndomain a.test.sigsum.org 5\npublic default 5"
    );
    let mut asked = asked(&rules);
    for domain in ["test.sigsum.org", "a.test.sigsum.org", "B.Test.Sigsum.org."] {
        asked.check("", domain, Err(Reason::TestDomain));
    }
    asked.check("", "sigsum.org", Ok("public sigsum.org 0/5"));
    asked.check("", "nottest.sigsum.org", Ok("public sigsum.org 1/5"));
    // A key's line takes precedence over all lines about domains.
    asked.check(KEY, "test.sigsum.org", Ok("key a* 0/1"));
    asked.policy.test_domain = TestDomain::Allow;
    asked.check("", "b.test.sigsum.org", Ok("domain test.sigsum.org 0/5"));
    asked.check("", "a.test.sigsum.org", Ok("domain a.test.sigsum.org 0/5"));
}

#[test]
fn new_rules_find_the_counts_that_there_are() {
    let mut asked = asked("domain a.com 2");
    asked.check("", "a.com", Ok("domain a.com 0/2"));
    asked.policy = policy("domain a.com 1\npublic default 1", TestDomain::Refuse);
    asked.check("", "a.com", Ok("domain a.com 1/1"));
    // The public line has its own counter of the same name.
    asked.policy = policy("public default 1", TestDomain::Refuse);
    asked.check("", "a.com", Ok("public a.com 0/1"));
    asked.policy = policy("domain a.com 2", TestDomain::Refuse);
    asked.check("", "a.com", Ok("domain a.com 1/2"));
}

#[test]
fn the_first_request_of_all_begins_the_window_even_one_that_is_refused() {
    let mut asked = asked("domain a.com 1");
    asked.decide("", "", 1000);
    assert!(
        asked
            .decide("", "a.com", 1000 + WINDOW_SECONDS - 1)
            .is_admitted()
    );
    assert!(
        asked
            .decide("", "a.com", 1000 + WINDOW_SECONDS)
            .is_admitted()
    );
    // A refused request enters the next window too, and a clock that goes backwards afterwards
    // stays in it.
    asked.decide("", "", 1000 + 2 * WINDOW_SECONDS);
    assert!(asked.decide("", "a.com", 1000).is_admitted());
    assert!(
        !asked
            .decide("", "a.com", 1000 + 2 * WINDOW_SECONDS)
            .is_admitted()
    );
}
