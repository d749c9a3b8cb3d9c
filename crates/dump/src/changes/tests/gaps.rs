//! Changes that were published without their list, or the other way round, as earlier versions left
//! them after a crash: a mirror sees a gap or the truth.

use super::*;

/// A census with a history of some days and its mirrors. At the next dump, one file expires and
/// another has to lose a name.
fn eventful() -> (World, Vec<Mirror>) {
    let mut world = World::new();
    let mut mirrors = Vec::new();
    let hosts = ["a.example", "b.example", "leaves.example", "d.example"];
    for (month, host) in (0..).zip(hosts) {
        world.list(host, "1");
        world.publish(MIDNIGHT + 30 * DAY * month);
        mirrors.push(world.mirror());
    }
    world.list("a.example", "2");
    world.publish(MIDNIGHT + 90 * DAY + HOUR);
    mirrors.push(world.mirror());
    world.set("leaves.example", Standing::Withdrawn);
    world.set("b.example", Standing::Died);
    world.list("e.example", "1");
    (world, mirrors)
}

const NEXT: i64 = MIDNIGHT + 91 * DAY;

/// Each mirror sees a gap or one of the correct lists. Returns the number of mirrors with a correct
/// list.
fn assert_gap_or_truth(
    mirrors: &[Mirror],
    files: &BTreeMap<String, Vec<u8>>,
    truths: &[Vec<Row>],
    when: &str,
) -> usize {
    let mut saw = 0;
    for mirror in mirrors {
        let mut mirror = mirror.clone();
        if follow(&mut mirror, files).is_ok() {
            assert!(truths.contains(&held(&mirror)), "{when}: {mirror:?}");
            saw += 1;
        }
    }
    saw
}

fn truth(rows: &[ListedRow]) -> Vec<Row> {
    rows.iter().cloned().map(Row::from).collect()
}

#[test]
fn a_section_that_led_to_a_dump_that_was_never_published_gives_way_to_the_next_one() {
    let (mut world, mirrors) = eventful();
    // The changes were published, but the list was not.
    world.publish_changes(NEXT);
    world.list("f.example", "1");
    let outcome = world.publish(NEXT + DAY);
    assert_eq!(outcome.since, Some(at(MIDNIGHT + 90 * DAY + HOUR)));
    assert!(!world.files().contains_key("2027-02-21.ndjson"));
    let truths = [truth(&world.rows())];
    // All except the first mirror, whose day has expired.
    let saw = assert_gap_or_truth(&mirrors, &world.files(), &truths, "");
    assert_eq!(saw, mirrors.len() - 1);
}

/// `rows_sha256` is the same for both lists.
#[test]
fn a_section_to_an_unpublished_list_is_known_by_registrations_alone() {
    let mut world = World::new();
    world.list("a.example", "1");
    world.publish(MIDNIGHT);
    let mut mirror = world.mirror();
    // The changes were published, but the list was not.
    world.register("a.example", Some(true));
    world.publish_changes(MIDNIGHT + HOUR);
    world.register("a.example", Some(false));
    let outcome = world.publish(MIDNIGHT + 2 * HOUR);
    assert_eq!(outcome.since, Some(at(MIDNIGHT)));
    follow(&mut mirror, &world.files()).unwrap();
    assert_eq!(held(&mirror), held(&world.mirror()));
}

#[test]
fn rows_that_no_section_leads_to_start_anew() {
    let (mut world, mut mirrors) = eventful();
    // The list was published, but the changes were not.
    world.published = Some(world.rows());
    world.list("f.example", "1");
    let outcome = world.publish(NEXT);
    assert_eq!((outcome.since, outcome.counts), (None, Counts::default()));
    assert!(outcome.starts_anew.is_some());
    let time = at(NEXT);
    let mirrors = mirrors.iter_mut();
    let seen: Vec<_> = mirrors
        .map(|mirror| follow(mirror, &world.files()).unwrap_err())
        .collect();
    let broken = || Gap::Broken { time };
    // The first mirror's day has expired, and no section starts from the last mirror's list. The
    // others notice the gap before they cross it.
    let expect = [Gap::NotFound, broken(), broken(), broken(), Gap::NotFound];
    assert_eq!(seen, expect);
}
