use census::group::Group;
use census::time::Timestamp;

use super::*;

#[test]
fn only_a_registered_domain_is_a_group_and_the_right_one_is_named() {
    let names = crate::admit::gate::tests::names();
    for typed in [" Farm.Info. ", "https://farm.info/@a", "@a@farm.info"] {
        assert_eq!(registered(&names, typed), Ok("farm.info".to_owned()));
    }
    let refused = registered(&names, "a.farm.info").unwrap_err();
    assert_eq!(
        refused,
        "a.farm.info belongs to the group farm.info; enter that"
    );
    assert!(
        registered(&names, "co.uk")
            .unwrap_err()
            .contains("public suffix")
    );
    assert!(registered(&names, "a\u{1b}b").is_err());
}

#[test]
fn a_group_is_told_with_its_size_what_is_held_and_what_was_decided() {
    let mut stored = StoredGroup {
        domain: "farm.test".to_owned(),
        group: Group {
            hosts: 400,
            is_over: true,
            ..Group::default()
        },
        held_back: 399,
        ..StoredGroup::default()
    };
    assert_eq!(
        in_words(&stored),
        "400 hosts, 399 hosts held back, 1 of at most 200 with a place"
    );
    let evidence = Evidence {
        sources: 1,
        responses: 9,
        places: 1,
    };
    assert_eq!(
        evidence_words(&evidence),
        "named by 1 of 2 independent sources for a week, responded to 2 of 2 checks; 1 of at most 200 hosts of its group have a place"
    );
    stored.group.decision = Decision::Limit { a_day: 5 };
    stored.reason = Some("a hoster".to_owned());
    stored.decided_at = Some(Timestamp(0));
    assert_eq!(
        in_words(&stored),
        "400 hosts, limited to 5 a day since 1970-01-01T00:00:00Z: a hoster"
    );
}
