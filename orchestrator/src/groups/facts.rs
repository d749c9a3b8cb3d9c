//! What a moderator needs to decide about a group, in words: the console and `groups show` have the
//! same.
//!
//! Only what comes from outside a group is evidence: a farm chooses what its hosts say. And anyone
//! can name invented hosts below another's domain, so a denial is never suggested for a group with
//! a listed host.

use census::group::{Decision, HELD_A_DAY, PLACES_MAX};
use census::state::StateName;
use census::time::Timestamp;
use console::wire::{GroupFacts, Labelled};
use store::{Members, StoredGroup};

use super::count;

/// Hosts that are read for a group, the newest first.
pub const MEMBERS_MAX: u32 = 50;

/// Names that are shown as examples.
const NAMES_MAX: usize = 5;

/// Days for which additions are shown.
const DAYS: i64 = 7;

const DAY_MS: i64 = 86_400_000;

/// Independent sources for the suggestion to allow a group: more than twice as many as free one
/// host, since two may belong to its owner.
const SOURCES_TO_ALLOW: u32 = 5;

/// Age from which silence is evidence: a new census has no independent source for two weeks, and a
/// naming counts after another one.
const DAYS_TO_DENY: u64 = 21;

/// One in this many of the census's newest names is a large share.
const SHARE_TO_DENY: u64 = 20;

/// The facts about a group at `now`.
pub fn facts(stored: &StoredGroup, members: &Members, now: Timestamp) -> GroupFacts {
    let (known, sources) = (stored.group.hosts, members.named_by);
    let alive = StateName::Alive.as_str();
    let up = members.states.iter().find(|(state, _)| state == alive);
    let up = up.map_or(0, |(_, hosts)| *hosts);
    let (own, all) = (members.newest_names, members.newest_names_of);
    let share = format!("{own} of the census's last {all} new names");
    let mut names: Vec<_> = members.newest.iter().collect();
    names.sort_by_key(|member| member.state != alive);
    let names = names.iter().take(NAMES_MAX);
    let (listed, held_back) = (members.listed, stored.held_back);
    let named = match sources.sources {
        0 => "no independent source".to_owned(),
        1 => "1 independent source".to_owned(),
        many => format!("{many} independent sources"),
    };
    let named_by = sources.since.map_or(named.clone(), |since| {
        let (days, long) = (days(since, now), sources.long);
        format!("{named}, the first {days} days ago, {long} of them for a week")
    });
    let lines = [
        (
            "hosts",
            format!("{known} known, {up} responding, {listed} listed, {held_back} held back"),
        ),
        ("new", new_by_day(members, now)),
        ("share", share.clone()),
        ("named by", named_by),
    ];
    let reason = format!("{}, {up} responding, {named}, {share}", count(known));
    GroupFacts {
        lines: lines.map(labelled).into(),
        names: names.map(|member| member.name.clone()).collect(),
        effects: effects(stored, listed).map(labelled).into(),
        suggestion: suggestion(stored, members, up, now).map(labelled),
        reason,
    }
}

fn labelled((label, text): (&str, String)) -> Labelled {
    (label.to_owned(), text)
}

fn days(since: Timestamp, now: Timestamp) -> u64 {
    now.since(since).as_secs() / 86_400
}

fn new_by_day(members: &Members, now: Timestamp) -> String {
    let today = now.0.div_euclid(DAY_MS);
    let added = |day: i64| {
        let mut on_day = members.came.iter();
        let found = on_day.find(|(came, _)| came.0.div_euclid(DAY_MS) == day);
        found.map_or(0, |(_, hosts)| *hosts).to_string()
    };
    let before: Vec<_> = (1..DAYS).map(|ago| added(today - ago)).collect();
    let (today, before) = (added(today), before.join(", "));
    format!("{today} today; {before} on the days before")
}

/// What each decision does, with its word. `none` is to leave the group undecided.
fn effects(stored: &StoredGroup, listed: u64) -> [(&'static str, String); 4] {
    let (hosts, listed) = (count(stored.group.hosts), count(listed));
    let undecided = match stored.group.decision {
        Decision::None if stored.group.is_held() => format!(
            "it stays held: {HELD_A_DAY} checks a day, and a host is listed when independent sources have named it for a week, at most {PLACES_MAX}"
        ),
        Decision::None => "its hosts are checked and listed like any others".to_owned(),
        Decision::Allow | Decision::Deny | Decision::Limit { .. } => {
            "it is held again if it has too many hosts".to_owned()
        }
    };
    let is_decided = stored.group.decision != Decision::None;
    let allow =
        format!("its {hosts} are checked within about a day, and listed while they respond");
    let deny = format!("no host is checked or listed; the list loses {listed}");
    let limit = "its hosts are listed while they respond; each check a day is enough for twelve";
    [
        ("allow", allow),
        ("deny", deny),
        ("limit", limit.to_owned()),
        (if is_decided { "forget" } else { "none" }, undecided),
    ]
}

/// A decision for which there is evidence, with that.
fn suggestion(
    stored: &StoredGroup,
    members: &Members,
    up: u64,
    now: Timestamp,
) -> Option<(&'static str, String)> {
    if !stored.group.is_held() {
        return None;
    }
    let (known, sources) = (stored.group.hosts, members.named_by);
    if sources.long >= SOURCES_TO_ALLOW && up.saturating_mul(2) >= known {
        let sources = sources.long;
        let evidence = format!(
            "{sources} independent sources have named its hosts for a week, and {up} of {known} hosts respond"
        );
        return Some(("allow", evidence));
    }
    let known_for = members.known_since.map_or(0, |since| days(since, now));
    let (own, all) = (members.newest_names, members.newest_names_of);
    let is_flood = own.saturating_mul(SHARE_TO_DENY) >= all;
    let is_silent = sources.sources == 0 && members.listed == 0 && known_for >= DAYS_TO_DENY;
    (is_flood && is_silent).then(|| {
        let evidence = format!(
            "no independent source has named a host of it in {known_for} days, none is listed, and it has {own} of the census's last {all} new names"
        );
        ("deny", evidence)
    })
}

#[cfg(test)]
mod tests {
    use census::group::Group;
    use kit::NOW;
    use store::NamedBy;

    use super::*;

    fn group(hosts: u64, decision: Decision) -> StoredGroup {
        StoredGroup {
            group: Group {
                hosts,
                is_over: true,
                decision,
                ..Group::default()
            },
            held_back: hosts,
            ..StoredGroup::default()
        }
    }

    /// Up and listed hosts, sources for a week, age in days, share of a thousand new names.
    fn members([up, listed, sources, days, share]: [u32; 5]) -> Members {
        let since = Timestamp(NOW.0 - i64::from(days) * DAY_MS);
        Members {
            states: vec![("alive".to_owned(), up.into())],
            listed: listed.into(),
            known_since: Some(since),
            named_by: NamedBy {
                sources,
                long: sources,
                since: (sources > 0).then_some(since),
            },
            newest_names: share.into(),
            newest_names_of: 1000,
            came: vec![(NOW, 4), (Timestamp(NOW.0 - 2 * DAY_MS), 9)],
            ..Members::default()
        }
    }

    #[test]
    fn nothing_is_suggested_without_evidence() {
        for (given, expect) in [
            ([50, 0, 5, 14, 0], Some("allow")),
            ([100, 99, 9, 400, 900], Some("allow")),
            // Too few sources, or hosts that respond.
            ([100, 0, 4, 400, 0], None),
            ([49, 0, 9, 400, 0], None),
            ([0, 0, 0, 21, 50], Some("deny")),
            ([100, 0, 0, 99, 999], Some("deny")),
            // Too young, too small, named once, or with a listed host.
            ([0, 0, 0, 20, 999], None),
            ([0, 0, 0, 99, 49], None),
            ([0, 0, 1, 99, 999], None),
            ([1, 1, 0, 99, 999], None),
        ] {
            let members = members(given);
            let found = facts(&group(100, Decision::None), &members, NOW).suggestion;
            let verb = found.as_ref().map(|(verb, _)| verb.as_str());
            assert_eq!(verb, expect, "{given:?}");
            let evidence = found.as_ref().map_or("", |(_, evidence)| evidence.as_str());
            assert_eq!(evidence.contains(" independent source"), verb.is_some());
            let decided = facts(&group(100, Decision::Allow), &members, NOW);
            assert_eq!(decided.suggestion, None, "it is decided");
        }
    }

    #[test]
    fn facts_are_in_words_and_make_a_valid_reason() {
        let held = facts(
            &group(400, Decision::None),
            &members([37, 12, 2, 16, 66]),
            NOW,
        );
        let lines: Vec<_> = held.lines.iter().map(|(_, text)| text.as_str()).collect();
        let expect = [
            "400 known, 37 responding, 12 listed, 400 held back",
            "4 today; 0, 9, 0, 0, 0, 0 on the days before",
            "66 of the census's last 1000 new names",
            "2 independent sources, the first 16 days ago, 2 of them for a week",
        ];
        assert_eq!(lines, expect);
        assert_eq!(held.effects[3].0, "none");
        let most = facts(
            &group(u64::MAX, Decision::Deny),
            &members([u32::MAX; 5]),
            NOW,
        );
        assert!(
            super::super::a_line(&most.reason).is_ok(),
            "{}",
            most.reason
        );
        assert_eq!(most.effects[3].0, "forget");
    }
}
