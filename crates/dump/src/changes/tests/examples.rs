use super::*;

/// Brings a mirror up to date, and checks that it holds what a new one would.
#[track_caller]
fn catches_up(mirror: &mut Mirror, world: &World) {
    follow(mirror, &world.files()).unwrap();
    assert_eq!(held(mirror), held(&world.mirror()));
}

fn row(world: &World, host: &str) -> Row {
    match &world.hosts[host] {
        Known::Listed(instance) => Row::from(instance.clone()),
        Known::Not(_) => panic!("{host} is not listed"),
    }
}

#[test]
fn the_first_dump_makes_no_changes_up() {
    let mut world = World::new();
    world.list("a.example", "1");
    let outcome = world.publish(MIDNIGHT);
    assert_eq!((outcome.since, outcome.counts), (None, Counts::default()));
    assert_eq!((outcome.starts_anew, outcome.hosts), (None, 1));
    let sections = world.day("2026-11-22");
    assert_eq!((sections.len(), sections[0].changes.len()), (1, 0));
}

#[test]
fn each_kind_of_change_is_told_in_its_words() {
    let mut world = World::new();
    for host in ["changes.example", "dies.example", "leaves.example"] {
        world.list(host, "1");
    }
    world.list("moves.example", "1");
    world.list("moves-into-the-dark.example", "1");
    world.list("stays.example", "1");
    world.publish(MIDNIGHT);
    world.list("changes.example", "2");
    world.list("target.example", "1");
    world.set("dies.example", Standing::Died);
    world.set("leaves.example", Standing::Withdrawn);
    world.set("hidden.example", Standing::Withdrawn);
    let to = |host: &str| Standing::Moved {
        to: Some(host.to_owned()),
    };
    world.set("moves.example", to("target.example"));
    world.set("moves-into-the-dark.example", to("hidden.example"));
    let outcome = world.publish(MIDNIGHT + 6 * HOUR);
    assert_eq!(outcome.since, Some(at(MIDNIGHT)));
    let text = String::from_utf8(world.files()["2026-11-22.ndjson"].clone()).unwrap();
    let lines: Vec<_> = text.lines().skip(2).collect();
    let listed = |change: &str, host: &str| {
        let row = serde_json::to_string(&row(&world, host)).unwrap();
        let members = row.strip_prefix('{').unwrap();
        format!(r#"{{"change":"{change}","time":"2026-11-22T06:00:00Z",{members}"#)
    };
    let expect = [
        &listed("changed", "changes.example"),
        r#"{"change":"died","time":"2026-11-22T06:00:00Z","host":"dies.example"}"#,
        // printf leaves.example | sha256sum
        r#"{"change":"left","time":"2026-11-22T06:00:00Z","host_sha256":"50ec80793041a896dc0bdc344919e9735b1fc3cdca8b91bb6b65a3393ba4f1a3"}"#,
        r#"{"change":"moved","time":"2026-11-22T06:00:00Z","host":"moves-into-the-dark.example"}"#,
        r#"{"change":"moved","time":"2026-11-22T06:00:00Z","host":"moves.example","to":"target.example"}"#,
        &listed("appeared", "target.example"),
    ];
    assert_eq!(lines, expect);
    let counts = Counts {
        appeared: 1,
        returned: 0,
        changed: 1,
        died: 1,
        moved: 2,
        left: 1,
    };
    assert_eq!(outcome.counts, counts);
    assert_eq!(world.day("2026-11-22")[1].header.counts, counts);
}

/// Two lists that differ in nothing else have different digests, so that a mirror knows which of
/// them it has.
#[test]
fn a_flip_of_registrations_is_a_change_and_a_mirror_of_either_list_ends_with_it() {
    let mut world = World::new();
    world.list("a.example", "1");
    world.list("b.example", "1");
    let mut mirrors = Vec::new();
    for (hour, said) in (0..).zip([None, Some(false), Some(true), None]) {
        world.register("a.example", said);
        let outcome = world.publish(MIDNIGHT + hour * HOUR);
        if hour > 0 {
            let changed = row(&world, "a.example");
            assert_eq!(changed.instance.open_registrations, said);
            assert_eq!(world.last_changes(), [Change::Changed(changed)]);
            assert_eq!(outcome.counts.changed, 1);
        }
        mirrors.push(world.mirror());
        for mirror in &mirrors {
            let mut mirror = mirror.clone();
            follow(&mut mirror, &world.files()).unwrap();
            assert_eq!(held(&mirror), held(&world.mirror()), "{said:?}");
        }
    }
    let sections = world.day("2026-11-22");
    let digests = |of: fn(&Header) -> String| -> std::collections::BTreeSet<String> {
        sections.iter().map(|section| of(&section.header)).collect()
    };
    // The first five members are the same in all lists.
    assert_eq!(digests(|header| header.rows_sha256.to_string()).len(), 1);
    let full = digests(|header| header.full_rows_sha256.to_string());
    // The first list and the last one are the same.
    assert_eq!(full.len(), 3);
}

#[test]
fn when_it_was_last_found_alive_is_no_change() {
    let mut world = World::new();
    world.list("a.example", "1");
    world.publish(MIDNIGHT);
    if let Some(Known::Listed(instance)) = world.hosts.get_mut("a.example") {
        instance.last_alive = at(MIDNIGHT + HOUR);
    }
    assert_eq!(world.publish(MIDNIGHT + HOUR).counts, Counts::default());
}

#[test]
fn who_was_taken_off_within_the_days_that_are_kept_returns_and_all_others_appear() {
    for standing in [
        Standing::Died,
        Standing::Moved { to: None },
        Standing::Withdrawn,
    ] {
        for (days_away, returns) in [(80, true), (95, false)] {
            let mut world = World::new();
            world.list("a.example", "1");
            world.publish(MIDNIGHT);
            world.set("a.example", standing.clone());
            world.publish(MIDNIGHT + DAY);
            world.list("a.example", "2");
            world.list("b.example", "2");
            world.publish(MIDNIGHT + (1 + days_away) * DAY);
            let a = row(&world, "a.example");
            let expect = match returns {
                true => Change::Returned(a),
                false => Change::Appeared(a),
            };
            let b = Change::Appeared(row(&world, "b.example"));
            let changes = world.last_changes();
            assert_eq!(changes, [expect, b], "{standing:?} {days_away}");
        }
    }
}

/// Invariant I7.
#[test]
fn host_that_leaves_is_in_no_file_of_the_next_dump() {
    let mut world = World::new();
    let mirrors = story(&mut world);
    assert!(world.names("leaves.example").len() > 3 * 3);
    world.set("leaves.example", Standing::Withdrawn);
    assert!(!world.is_current(MIDNIGHT + 5 * DAY));
    let outcome = world.publish(MIDNIGHT + 5 * DAY);
    assert_eq!(world.names("leaves.example"), Vec::<String>::new());
    assert!(world.is_current(MIDNIGHT + 5 * DAY));
    world.assert_packed();
    assert_eq!(outcome.hashed_lines, 4);
    for mut mirror in mirrors {
        catches_up(&mut mirror, &world);
    }
}

/// A host appears, changes, dies and is the target of a move. Returns a mirror of each dump.
fn story(world: &mut World) -> Vec<Mirror> {
    let to = Some("leaves.example".to_owned());
    let steps: [&dyn Fn(&mut World); 5] = [
        &|world| world.list("a.example", "1"),
        &|world| world.list("leaves.example", "1"),
        &|world| world.list("leaves.example", "2"),
        &|world| world.set("a.example", Standing::Moved { to: to.clone() }),
        &|world| world.set("leaves.example", Standing::Died),
    ];
    let mut mirrors = Vec::new();
    for (day, step) in (0..).zip(steps) {
        step(world);
        world.publish(MIDNIGHT + day * DAY);
        mirrors.push(world.mirror());
    }
    mirrors
}

#[test]
fn a_file_stays_for_ninety_days_and_no_longer() {
    let mut world = World::new();
    world.publish(MIDNIGHT);
    let kept = i64::from(DAYS_KEPT);
    world.publish(MIDNIGHT + kept * DAY);
    assert!(world.files().contains_key("2026-11-22.ndjson"));
    world.publish(MIDNIGHT + (kept + 1) * DAY);
    assert!(!world.files().contains_key("2026-11-22.ndjson"));
    assert_eq!(day_files(&world.files()).count(), 2);
    world.assert_packed();
    assert!(!world.is_current(MIDNIGHT + (2 * kept + 1) * DAY));
}

#[test]
fn a_day_with_too_many_changes_says_so_and_the_next_one_goes_on() {
    let mut world = World::new();
    world.publish(MIDNIGHT);
    let mut old = world.mirror();
    for number in 0..=CHANGES_A_DAY_MAX {
        world.list(&format!("h{number}.example"), "1");
    }
    let outcome = world.publish(MIDNIGHT + HOUR);
    assert!(!outcome.complete);
    assert_eq!(outcome.counts.total(), 20_001);
    let time = at(MIDNIGHT + HOUR);
    let why = "a mirror must not take it for a day without changes";
    let followed = follow(&mut old, &world.files());
    assert_eq!(followed, Err(Gap::Broken { time }), "{why}");
    assert!(world.files()["2026-11-22.ndjson"].len() < 2000);
    let mut new = world.mirror();
    world.set("h7.example", Standing::Died);
    assert!(world.publish(MIDNIGHT + DAY).complete);
    catches_up(&mut new, &world);
}

/// Invariant I9: memory is bounded even before it is known how much fits into the day.
#[test]
fn two_lists_without_a_common_name_are_compared_without_keeping_all_changes() {
    let mut world = World::new();
    for number in 0..=CHANGES_A_DAY_MAX {
        world.list(&format!("h{number}.example"), "1");
    }
    let none: Option<std::iter::Empty<Result<ListedRow, Infallible>>> = None;
    let rows = world.rows().into_iter().map(Ok::<_, DumpError>);
    let diff = diff::diff(none, rows, &mut |_| Ok(Standing::Died)).unwrap();
    assert_eq!((diff.changes, diff.counts.appeared), (None, 20_001));
}

#[test]
fn a_days_file_is_bounded_over_all_its_dumps_by_lines_and_by_bytes() {
    let mut world = World::new();
    world.publish(MIDNIGHT);
    // 55 % of a day's lines, twice.
    let hosts = CHANGES_A_DAY_MAX * 55 / 100;
    for number in 0..hosts {
        world.list(&format!("h{number}.example"), "1");
    }
    assert!(world.publish(MIDNIGHT + HOUR).complete);
    // Short lines, so that the limit of lines is reached before the limit of bytes.
    for number in 0..hosts {
        world.set(&format!("h{number}.example"), Standing::Died);
    }
    assert!(!world.publish(MIDNIGHT + 2 * HOUR).complete);
    assert!(world.publish(MIDNIGHT + 3 * HOUR).complete);
    let version = "\u{1}".repeat(128);
    for number in 0..hosts {
        world.list(&format!("h{number}.example"), &version);
    }
    assert!(!world.publish(MIDNIGHT + 2 * DAY).complete);
    for bytes in day_files(&world.files()) {
        assert!(bytes.len() <= DAY_FILE_BYTES_MAX, "{}", bytes.len());
    }
}

#[test]
fn more_dumps_a_day_than_anybody_makes_leave_a_gap_and_not_a_file_without_end() {
    let mut world = World::new();
    world.publish(MIDNIGHT);
    let mut old = world.mirror();
    follow(&mut old, &world.files()).unwrap();
    let mut steady = old.clone();
    let count = i64::try_from(SECTIONS_A_DAY_MAX).unwrap();
    for number in 1..=count + 1 {
        world.list(&format!("h{number}.example"), "1");
        world.publish(MIDNIGHT + 2 * number);
        catches_up(&mut steady, &world);
    }
    let sections = world.day("2026-11-22");
    assert_eq!(sections.len(), SECTIONS_A_DAY_MAX);
    assert_eq!(sections[0].header.time, at(MIDNIGHT + 4));
    assert_eq!(follow(&mut old, &world.files()), Err(Gap::NotFound));
    assert!(world.is_current(MIDNIGHT + 2 * count + 2));
}

#[test]
fn host_that_opts_out_is_in_no_week() {
    let mut world = World::new();
    world.publish(MIDNIGHT);
    world.list("a.example", "1");
    world.list("b.example", "1");
    world.publish(MIDNIGHT + HOUR);
    world.publish(MIDNIGHT + DAY);
    let weekly = "weekly.atom".to_owned();
    assert!(world.names("a.example").contains(&weekly));
    world.set("a.example", Standing::Withdrawn);
    world.publish(MIDNIGHT + 30 * DAY);
    assert!(world.names("a.example").is_empty());
    assert!(world.names("b.example").contains(&weekly));
}

#[test]
fn two_dumps_in_a_second_are_two_dumps() {
    let mut world = World::new();
    world.publish(MIDNIGHT);
    let mut mirror = world.mirror();
    follow(&mut mirror, &world.files()).unwrap();
    world.list("a.example", "1");
    let outcome = world.publish(MIDNIGHT);
    assert_eq!(outcome.time, at(MIDNIGHT + 1));
    assert_eq!(outcome.since, Some(at(MIDNIGHT)));
    catches_up(&mut mirror, &world);
}

#[test]
fn a_clock_that_was_set_back_starts_anew_and_leaves_nothing_of_the_future() {
    let mut world = World::new();
    world.publish(MIDNIGHT);
    world.list("a.example", "1");
    world.publish(MIDNIGHT + 40 * DAY);
    let mut mirror = world.mirror();
    follow(&mut mirror, &world.files()).unwrap();
    world.list("b.example", "1");
    let outcome = world.publish(MIDNIGHT + DAY);
    assert_eq!((outcome.since, outcome.time), (None, at(MIDNIGHT + DAY)));
    assert!(outcome.starts_anew.unwrap().contains("clock"));
    let names = world.files().into_keys().filter(|name| !is_packed(name));
    let expect = "2026-11-22.ndjson 2026-11-23.ndjson feed.atom weekly.atom";
    assert_eq!(names.collect::<Vec<_>>().join(" "), expect);
    assert_eq!(follow(&mut mirror, &world.files()), Err(Gap::NotFound));
    let mut mirror = world.mirror();
    world.list("c.example", "1");
    world.publish(MIDNIGHT + 2 * DAY);
    catches_up(&mut mirror, &world);
}

#[test]
fn a_clock_that_was_set_back_within_a_day_leaves_nothing_of_the_future_either() {
    let mut world = World::new();
    world.publish(MIDNIGHT);
    world.publish(MIDNIGHT + 10 * HOUR);
    world.publish(MIDNIGHT + 5 * HOUR);
    let sections = world.day("2026-11-22").into_iter();
    let times: Vec<_> = sections.map(|section| section.header.time).collect();
    assert_eq!(times, [at(MIDNIGHT), at(MIDNIGHT + 5 * HOUR)]);
}

#[test]
fn the_files_that_are_told_are_those_that_lie_there() {
    let mut world = World::new();
    story(&mut world);
    world.list("b.example", "1");
    let written = world.publish_changes(MIDNIGHT + 5 * DAY);
    let told = written.files.into_iter();
    let told: BTreeMap<_, _> = told
        .map(|file| (file.name, (file.bytes, file.sha256)))
        .collect();
    let mut there = world.files();
    there.retain(|name, _| !is_packed(name));
    let there = there.into_iter();
    let size_and_digest = |bytes: Vec<u8>| (bytes.len() as u64, Sha256Hex::of(&bytes));
    let there = there.map(|(name, bytes)| (name, size_and_digest(bytes)));
    assert_eq!(told, there.collect());
    assert_eq!(told.len(), 8);
}

#[test]
fn names_out_of_order_make_no_section() {
    let mut world = World::new();
    world.list("a.example", "1");
    let mut rows = world.rows();
    rows.extend(world.rows());
    let result = write_changes(
        &world.tree(),
        &about(),
        at(MIDNIGHT),
        world.former(),
        rows.into_iter().map(Ok::<_, DumpError>),
        |_| Ok(Standing::Died),
        |_| Ok(false),
    );
    assert!(matches!(result, Err(DumpError::OutOfOrder { .. })));
}

#[test]
fn the_digests_are_what_other_programs_make_of_the_published_rows() {
    let mut world = World::new();
    world.list("a.example", "1");
    world.register("a.example", Some(true));
    world.list("b.example", "1");
    world.publish(MIDNIGHT);
    let header = world.day("2026-11-22").remove(0).header;
    let names = Sha256Hex::of(b"a.example\nb.example\n");
    assert_eq!(header.names_sha256, names);
    let line = |host: &str| {
        format!(
            "{{\"host\":\"{host}\",\"software\":\"mastodon\",\"version\":\"1\",\"state\":\"alive\",\"first_seen\":\"2026-11-22T00:00:00Z\"}}\n"
        )
    };
    let rows = line("a.example") + &line("b.example");
    assert_eq!(header.rows_sha256, Sha256Hex::of(rows.as_bytes()));
    let full_line = |host: &str| serde_json::to_string(&row(&world, host)).unwrap() + "\n";
    let full_rows = full_line("a.example") + &full_line("b.example");
    assert!(full_rows.contains(r#""open_registrations":true"#));
    let full = Sha256Hex::of(full_rows.as_bytes());
    assert_eq!(header.full_rows_sha256, full);
}
