use std::path::Path;

use super::*;
use crate::counters::HashKey;
use crate::decision::TestDomain;
use crate::decision::tests::policy;
use crate::suffixes::Suffixes;

pub(super) const SOURCE: SourceId = SourceId(7);

pub(super) fn counters() -> Counters {
    Counters::new(HashKey([1; 16]))
}

pub(super) fn limits(source: u32, shared_suffix: u32, total: u32) -> Limits {
    let limit = |number| Limit::new(number).unwrap();
    Limits {
        source: limit(source),
        shared_suffix: limit(shared_suffix),
        total: limit(total),
    }
}

pub(super) fn terms(rules: &str, limits: Limits) -> Terms {
    Terms {
        hosters: DomainList::default(),
        policy: policy(rules, TestDomain::Refuse),
        deny: DomainList::default(),
        allow: DomainList::default(),
        limits,
    }
}

fn list(text: &str) -> DomainList {
    DomainList::parse(text.as_bytes(), Path::new("list")).unwrap()
}

struct Asked {
    terms: Terms,
    counters: Counters,
}

fn asked(rules: &str, limits: Limits) -> Asked {
    Asked {
        terms: terms(rules, limits),
        counters: counters(),
    }
}

impl Asked {
    fn ask(&mut self, name: &str, subject: Subject<'_>) -> Result<Pass, Refusal> {
        let name = DomainName::parse(name).unwrap();
        let suffixes = Suffixes::compiled();
        let candidate = Candidate {
            name: &name,
            shared_suffix: suffixes.shared_suffix(&name),
        };
        self.counters.enter(0);
        let looked = self.terms.look(&self.counters, candidate, subject);
        let before: Vec<_> = self.counters.rows().collect();
        let decided = self.terms.decide(&mut self.counters, candidate, subject, 0);
        assert_eq!(looked, decided.as_ref().map(drop).map_err(Clone::clone));
        if decided.is_err() {
            assert_eq!(before, self.counters.rows().collect::<Vec<_>>());
        }
        decided
    }

    #[track_caller]
    fn named(&mut self, name: &str, expect: Result<(), Room>) {
        let found = self.ask(name, Subject::Source(SOURCE)).map(drop);
        assert_eq!(found, expect.map_err(Refusal::NoRoom), "{name}");
    }
}

const AMPLE: u32 = 1000;

#[test]
fn a_named_name_needs_room_in_its_domain_its_source_its_suffix_and_the_total() {
    let mut asked_ = asked("public default 2", limits(AMPLE, AMPLE, AMPLE));
    asked_.named("a.example.net", Ok(()));
    asked_.named("b.example.net", Ok(()));
    asked_.named("c.example.net", Err(Room::Rule));
    asked_.named("c.example.info", Ok(()));

    let mut asked_ = asked("public default 9", limits(1, AMPLE, AMPLE));
    asked_.named("a.example.net", Ok(()));
    asked_.named("b.example.info", Err(Room::Source));
    let other = Subject::Source(SourceId(8));
    asked_.ask("b.example.info", other).unwrap();

    let mut asked_ = asked("public default 9", limits(AMPLE, 1, AMPLE));
    asked_.named("a.github.io", Ok(()));
    asked_.named("b.github.io", Err(Room::SharedSuffix));
    asked_.named("b.masto.host", Ok(()));

    let mut asked_ = asked("public default 9", limits(AMPLE, AMPLE, 1));
    asked_.named("a.example.net", Ok(()));
    asked_.named("b.example.info", Err(Room::Total));
}

#[test]
fn the_allow_list_stands_in_for_the_rules_alone() {
    let mut asked = asked("domain example.net 1", limits(2, AMPLE, AMPLE));
    asked.terms.allow = list("hosts.example.net");
    asked.named("a.hosts.example.net", Ok(()));
    asked.named("b.hosts.example.net", Ok(()));
    asked.named("c.hosts.example.net", Err(Room::Source));
}

#[test]
fn only_a_rule_by_name_limits_a_hoster() {
    let rules = "public default 1\ndomain own.example.net 1";
    let mut asked = asked(rules, limits(4, AMPLE, AMPLE));
    asked.terms.hosters = list("example.net # a hoster");
    asked.named("a.example.net", Ok(()));
    asked.named("b.example.net", Ok(()));
    asked.named("a.own.example.net", Ok(()));
    asked.named("b.own.example.net", Err(Room::Rule));
    asked.named("c.example.net", Ok(()));
    asked.named("d.example.net", Err(Room::Source));
}

#[test]
fn a_ban_holds_for_whoever_brings_the_name_and_a_longer_line_lifts_it() {
    let key = KeyHash([0xaa; 32]);
    let rules =
        format!("key {key} 9\ndomain farm.example 0\ndomain good.farm.example 1\npublic default 9");
    let mut asked = asked(&rules, limits(AMPLE, AMPLE, AMPLE));
    asked.terms.deny = list("bad.example # a made-up farm\n");
    let submitter = Subject::Submitter {
        key: Some(&key),
        domain: None,
        shared_suffix: None,
    };
    for subject in [Subject::Source(SOURCE), submitter, Subject::Operator] {
        let banned = asked.ask("a.farm.example", subject).unwrap_err();
        let reason = "the rules admit nobody by `farm.example`";
        assert_eq!(banned.to_string(), reason);
        let denied = asked.ask("a.bad.example", subject).unwrap_err();
        let reason = "the operator's deny-list has `bad.example`: a made-up farm";
        assert_eq!(denied.to_string(), reason);
    }
    asked.named("a.good.farm.example", Ok(()));
    asked.named("b.good.farm.example", Err(Room::Rule));
}

#[test]
fn the_operators_word_is_charged_nothing() {
    let mut asked = asked("", limits(0, 0, 0));
    let pass = asked.ask("a.example.net", Subject::Operator).unwrap();
    assert_eq!(pass, Pass::default());
    assert_eq!(asked.counters.rows().count(), 0);
    let named = asked.ask("a.example.net", Subject::Source(SOURCE));
    assert_eq!(named, Err(Refusal::NoRule(Reason::NoRule)));
}

#[test]
fn a_submitter_goes_by_the_rule_for_its_key_or_domain() {
    let key = KeyHash([0xaa; 32]);
    let rules =
        format!("key {key} 1\ndomain known.example 1\ndomain out.example 0\npublic default 9");
    let mut asked = asked(&rules, limits(0, 1, 1));
    let suffixes = Suffixes::compiled();
    let check = |asked: &mut Asked, key: Option<&KeyHash>, domain: &str, expect| {
        let domain = (!domain.is_empty()).then(|| DomainName::parse(domain).unwrap());
        let domain = domain.as_ref();
        let subject = Subject::Submitter {
            key,
            domain,
            shared_suffix: domain.and_then(|domain| suffixes.shared_suffix(domain)),
        };
        assert_eq!(asked.ask("a.example.net", subject).map(drop), expect);
    };
    let no_room = |room| Err(Refusal::NoRoom(room));
    check(&mut asked, Some(&key), "", Ok(()));
    check(&mut asked, Some(&key), "other.net", no_room(Room::Rule));
    check(&mut asked, None, "sub.known.example", Ok(()));
    check(&mut asked, None, "known.example", no_room(Room::Rule));
    let banned = Refusal::Banned {
        name: "out.example".to_owned(),
    };
    check(&mut asked, None, "out.example", Err(banned));
    check(&mut asked, None, "", Err(Refusal::NoRule(Reason::NoDomain)));
    let test_domain = Err(Refusal::NoRule(Reason::TestDomain));
    check(&mut asked, None, "a.test.sigsum.org", test_domain);
    let total = asked.counters.total();
    assert_eq!(total, 0, "known ones take nothing of the total");
    check(&mut asked, None, "me.github.io", Ok(()));
    let suffix_is_full = no_room(Room::SharedSuffix);
    check(&mut asked, None, "you.github.io", suffix_is_full);
    check(&mut asked, None, "other.net", no_room(Room::Total));
    assert_eq!(asked.counters.total(), 1);
}

#[test]
fn nobody_vouches_for_a_candidate_so_the_test_domain_is_one_like_any_other() {
    let mut asked = asked("public default 1", limits(AMPLE, AMPLE, AMPLE));
    asked.named("a.test.sigsum.org", Ok(()));
}

#[test]
fn words_of_rooms_are_read_back() {
    for room in Room::ALL {
        assert_eq!(Room::parse(room.as_str()), Some(room));
    }
    assert_eq!(Room::parse("hall"), None);
}
