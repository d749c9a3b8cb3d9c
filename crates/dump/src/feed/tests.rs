use feed_rs::model::{Feed, FeedType};
use feed_rs::parser;

use super::*;
use crate::changes::{Header, Sha256Hex};
use crate::row::ListedRow;

fn about() -> About {
    About {
        title: "Changes <of> a & b".to_owned(),
        licence: "CC0-1.0".to_owned(),
        seed: "census.example".to_owned(),
        home_url: Some("https://census.example/a&b/".to_owned()),
        folder_url: Some("https://census.example/data/changes/".to_owned()),
    }
}

fn at(seconds: i64) -> Moment {
    Moment::from_milliseconds(seconds * 1000)
}

fn row(host: &str, software: &str, version: &str) -> Row {
    Row {
        instance: kit::software(software, version),
        ..ListedRow::example(host).into()
    }
}

fn section(seconds: i64, changes: Vec<Change>) -> Section {
    let mut counts = Counts::default();
    changes.iter().for_each(|change| counts.add(change));
    Section {
        header: Header {
            time: at(seconds),
            since: Some(at(seconds - 1)),
            complete: true,
            hosts: 12,
            counts,
            names_sha256: Sha256Hex::of(b""),
            rows_sha256: Sha256Hex::of(b""),
            full_rows_sha256: Sha256Hex::of(b""),
            lines: 0,
            section_sha256: Sha256Hex::of(b""),
        },
        changes,
    }
}

fn rendered(sections: &[Section]) -> String {
    let mut entries = Entries::default();
    sections.iter().for_each(|section| entries.add(section));
    entries.render(&about(), at(9))
}

fn story() -> Section {
    let host = str::to_owned;
    let changes = vec![
        Change::Appeared(row("a.example", "mastodon", "4.5.0")),
        Change::Returned(row("b.example", "misskey", "1")),
        Change::Changed(row("unnamed.example", "misskey", "2")),
        Change::Died {
            host: host("c.example"),
        },
        Change::Moved {
            host: host("d.example"),
            to: Some(host("a.example")),
        },
        Change::Left {
            host_sha256: Sha256Hex::of(b"e.example"),
        },
    ];
    section(1_795_305_600, changes)
}

fn parsed(atom: &str) -> Feed {
    parser::parse(atom.as_bytes()).unwrap()
}

/// The HTML of an entry.
fn html(feed: &Feed, number: usize) -> String {
    let content = feed.entries[number].content.clone();
    content.unwrap().body.unwrap()
}

const TITLE: &str = "1 new, 1 back, 1 moved, 1 gone, 1 removed: 12 instances";
const HTML: &str = "<p>12 instances in the list.</p>\
    <p>New: <a href=\"https://census.example/a&amp;b/why.html#a.example\">a.example</a> (mastodon 4.5.0)</p>\
    <p>Back: <a href=\"https://census.example/a&amp;b/why.html#b.example\">b.example</a> (misskey 1)</p>\
    <p>Moved: <a href=\"https://census.example/a&amp;b/why.html#d.example\">d.example</a> to a.example</p>\
    <p>Gone: <a href=\"https://census.example/a&amp;b/why.html#c.example\">c.example</a></p>\
    <p>Not named: 1.</p>";

#[test]
fn a_parser_that_is_not_ours_reads_the_same() {
    let feed = parsed(&rendered(&[story()]));
    assert_eq!(html(&feed, 0), HTML);
    assert_eq!(feed.feed_type, FeedType::Atom);
    assert_eq!(feed.title.unwrap().content, "Changes <of> a & b");
    assert_eq!(feed.entries.len(), 1);
    let entry = &feed.entries[0];
    assert_eq!(entry.title.as_ref().unwrap().content, TITLE);
    let moment = entry.updated.or(entry.published).unwrap();
    assert_eq!(moment.timestamp(), 1_795_305_600);
    assert!(entry.id.starts_with("urn:uuid:"), "{}", entry.id);
    let links: Vec<_> = feed.links.iter().map(|link| &*link.href).collect();
    assert!(links.contains(&"https://census.example/a&b/"), "{links:?}");
}

#[test]
fn ids_are_the_same_for_ever_and_no_two_alike() {
    let id = |seed: &str, of: &str| {
        let about = About {
            seed: seed.to_owned(),
            ..about()
        };
        about.id(of)
    };
    let ids = [id("a", "feed"), id("a", "x"), id("b", "feed"), id("b", "x")];
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), 4);
    let known = "urn:uuid:fd459971-7f50-8f53-9318-08c6b6e3cfc0";
    assert_eq!(id("a", "feed"), known);
    for id in ids {
        let (_, uuid) = id.split_at("urn:uuid:".len());
        let groups: Vec<_> = uuid.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_eq!(uuid.as_bytes()[14], b'8');
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }
}

#[test]
fn whatever_a_server_calls_its_software_stays_text_on_one_line() {
    let hostile = "</content><script>alert(1)</script>]]>&lt;\"'\u{0}\u{1b}\n\r\u{85}\u{2028}\u{202e}\u{fffe}\u{1f600}";
    let row = row("a.example", hostile, &"v".repeat(128));
    let changes = vec![Change::Appeared(row)];
    let atom = rendered(&[section(5, changes)]);
    assert!(!atom.contains("<script"), "{atom}");
    let text = html(&parsed(&atom), 0);
    assert_eq!(text.lines().count(), 1, "{text}");
    let escaped = "&lt;/content&gt;&lt;script&gt;alert(1)&lt;/script&gt;]]&gt;&amp;lt;&quot;&#39;";
    assert!(text.contains(escaped), "{text}");
    assert!(text.contains('\u{1f600}'));
    assert!(!text.contains(['\u{202e}', '\u{1b}', '\u{2028}']));
    let version = format!(" {})</p>", "v".repeat(WORD_CHARACTERS_MAX));
    assert!(text.ends_with(&version), "{text}");
}

/// The pages of the site use the same rule.
#[test]
fn nothing_that_steers_or_can_not_be_seen_is_in_a_feed() {
    let hostile = ('\u{80}'..='\u{e0fff}').filter(|letter| steers(*letter));
    let hostile: Vec<char> = hostile.collect();
    assert!(hostile.len() > 4000);
    for word in hostile.chunks(WORD_CHARACTERS_MAX) {
        let word: String = word.iter().collect();
        let changes = vec![Change::Appeared(row("a.example", &word, "1"))];
        let atom = rendered(&[section(5, changes)]);
        assert!(!atom.contains(hostile.as_slice()), "{atom:?}");
    }
}

#[test]
fn a_feed_has_so_many_entries_with_so_many_names_and_no_more() {
    let seconds = 1..=i64::try_from(ENTRIES_MAX).unwrap() + 5;
    let sections: Vec<_> = seconds
        .map(|seconds| deaths(seconds, NAMES_MAX + 7))
        .collect();
    let feed = parsed(&rendered(&sections));
    assert_eq!(feed.entries.len(), ENTRIES_MAX);
    let entries = feed.entries.iter();
    let moments: Vec<_> = entries
        .map(|entry| entry.updated.unwrap().timestamp())
        .collect();
    assert_eq!(moments.first(), Some(&45));
    assert!(moments.is_sorted_by(|newer, older| newer > older));
    let text = html(&feed, 0);
    assert_eq!(text.matches(".example</a>").count(), NAMES_MAX);
    assert!(text.ends_with("<p>Not named: 7.</p>"), "{text}");
}

#[test]
fn a_dump_that_changed_nobodys_place_is_no_news() {
    let changed = vec![Change::Changed(row("a.example", "x", "2"))];
    let mut first = story();
    first.header.since = None;
    let atom = rendered(&[section(5, changed), section(6, Vec::new()), first]);
    let feed = parsed(&atom);
    assert_eq!(feed.entries.len(), 0);
    assert_eq!(feed.updated.unwrap().timestamp(), 9);
}

/// 2026-11-16T00:00:00Z, a Monday.
const MONDAY: i64 = 1_795_305_600 - 6 * 86_400;
const NEXT_MONDAY: i64 = MONDAY + 7 * 86_400;

fn weekly(sections: &[Section], seconds: i64, first_day: &str) -> Feed {
    let mut weeks = Weeks::default();
    let mut last = None;
    for mut section in sections.iter().cloned() {
        section.header.since = last.or(section.header.since);
        last = Some(section.header.time);
        weeks.add(&section);
    }
    let atom = weeks.render(&about(), at(seconds), first_day);
    parsed(&atom)
}

fn titles(feed: &Feed) -> Vec<&str> {
    let titles = feed.entries.iter().flat_map(|entry| &entry.title);
    titles.map(|title| title.content.as_str()).collect()
}

fn deaths(seconds: i64, count: usize) -> Section {
    let host = |host| format!("h{host}.at{seconds}.example");
    let died = (0..count).map(host).map(|host| Change::Died { host });
    section(seconds, died.collect())
}

#[test]
fn only_weeks_that_are_over_have_an_entry() {
    let times = [MONDAY - 1, MONDAY, NEXT_MONDAY - 1, NEXT_MONDAY];
    let sections = times.map(|seconds| deaths(seconds, 60));
    let first = "60 gone in the week to 2026-11-15: 12 instances";
    let second = "120 gone in the week to 2026-11-22: 12 instances";
    let before = weekly(&sections, NEXT_MONDAY - 1, "2026-01-01");
    assert_eq!(titles(&before), [first]);
    let after = weekly(&sections, NEXT_MONDAY, "2026-01-01");
    assert_eq!(titles(&after), [second, first]);
    let text = html(&after, 0);
    assert_eq!(text.matches(".example</a>").count(), NAMES_MAX);
    assert!(text.ends_with("<p>Not named: 20.</p>"), "{text}");
    assert!(after.links[0].href.ends_with("/changes/weekly.atom"));
    // No reader confuses the feeds or their entries.
    let lists = parsed(&rendered(&[deaths(NEXT_MONDAY, 1)]));
    assert_eq!(lists.entries[0].updated, after.entries[0].updated);
    assert_ne!(lists.entries[0].id, after.entries[0].id);
    assert_ne!(lists.id, after.id);
}

#[test]
fn week_that_lost_a_section_has_no_entry() {
    let mut weeks = Weeks::default();
    // Each follows a section that is not there.
    for seconds in [MONDAY - 9, MONDAY + 9, NEXT_MONDAY + 9] {
        weeks.add(&deaths(seconds, 1));
    }
    let atom = weeks.render(&about(), at(NEXT_MONDAY * 2), "2026-01-01");
    assert!(parsed(&atom).entries.is_empty());
}

#[test]
fn week_that_began_before_the_first_kept_day_has_no_entry() {
    let sections = [deaths(NEXT_MONDAY - 1, 1)];
    let entries = |first_day| weekly(&sections, NEXT_MONDAY, first_day).entries.len();
    assert_eq!([entries("2026-11-16"), entries("2026-11-17")], [1, 0]);
}
