//! Writes the site of an invented census, to look at: `made_up FOLDER ROWS DAYS`.
//!
//! The same arguments give the same site. Among the rows are the hostile ones: names as long as
//! DNS allows, internationalised ones, and software whose name is markup.

use std::path::Path;

use anyhow::Context as _;
use census::state::StateName;
use dump::{ListedRow, ListedState, Moment};
use jiff::{Span, civil::date};
use protocol::{DeadReason, Instance};
use publish::{Cancel, Disk, Tree};
use site::facts::{ByState, Facts, Intake, Push, Reading};
use site::fixes::VersionHistory;
use site::{Age, Answer, Day, Found, Place, Salt, Site, Why};

/// The invented publication time: 2026-11-18.
const MADE_MS: i64 = 1_795_000_000_000;
const DAY_MS: i64 = 86_400_000;

/// Software, its share per thousand, and its newest minor version.
const SOFTWARE: [(&str, u64, (u64, u64)); 14] = [
    ("mastodon", 360, (4, 5)),
    ("misskey", 80, (2025, 11)),
    ("lemmy", 60, (0, 19)),
    ("peertube", 55, (7, 3)),
    ("pleroma", 50, (2, 10)),
    ("wordpress", 120, (6, 9)),
    ("akkoma", 40, (3, 17)),
    ("sharkey", 35, (2025, 4)),
    ("pixelfed", 45, (0, 12)),
    ("gotosocial", 60, (0, 20)),
    ("friendica", 25, (2024, 12)),
    ("writefreely", 20, (0, 16)),
    ("<b>bold</b>", 1, (1, 0)),
    ("bookwyrm", 10, (0, 8)),
];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .context("usage: made_up FOLDER ROWS DAYS")?;
    let mut number = || -> anyhow::Result<u64> {
        let text = arguments
            .next()
            .context("usage: made_up FOLDER ROWS DAYS")?;
        Ok(text.parse()?)
    };
    let (rows, days) = (number()?, number()?);
    let tree = Tree::begin(Disk::SYSTEM, Path::new(&folder), &Cancel::default())?;
    let mut site = Site::begin(&tree, facts(rows, days))?;
    let mut hosts: Vec<_> = (0..rows).map(|row| instance(row, days)).collect();
    hosts.sort_by(|one, other| one.host.cmp(&other.host));
    hosts.dedup_by(|one, other| one.host == other.host);
    for host in &hosts {
        site.instance(host)?;
        let mut answer = Answer {
            place: Place::Known(StateName::Alive),
            why: Why::Lives,
            found: Some(Found::Alive),
            last_checked: Some(host.last_alive),
            next_check: Some(Moment::from_milliseconds(MADE_MS + DAY_MS)),
            ..Answer::WITHHELD
        };
        if host.state == ListedState::Dying {
            answer.place = Place::Known(StateName::Dying);
            answer.why = Why::Failing;
            answer.found = Some(Found::Dead(DeadReason::TlsExpired));
            answer.leaves = Some(Moment::from_milliseconds(MADE_MS + 6 * DAY_MS));
        }
        site.answer(&protocol::Host::parse(&host.host)?, &answer)?;
    }
    // Of a real census' known names a quarter responds.
    for number in 0..3 * rows {
        let answer = Answer {
            place: Place::Known(StateName::Dead),
            why: one_of(&[Why::Dead, Why::NeverAlive], mixed(number)).context("no reasons")?,
            found: Some(Found::Dead(DeadReason::NoSuchName)),
            last_checked: Some(Moment::from_milliseconds(MADE_MS - DAY_MS)),
            age: Some(Age::MonthsDown(u8::try_from(number % 40).unwrap_or(0))),
            ..Answer::WITHHELD
        };
        site.answer(
            &protocol::Host::parse(&format!("gone{number}.example"))?,
            &answer,
        )?;
    }
    site.finish()?;
    Ok(tree.publish()?)
}

fn one_of<T: Copy>(all: &[T], chance: u64) -> Option<T> {
    let at = usize::try_from(chance)
        .unwrap_or(0)
        .checked_rem(all.len())?;
    all.get(at).copied()
}

/// A pseudorandom number (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn instance(row: u64, days: u64) -> ListedRow {
    let chance = mixed(row);
    let mut draw = chance % 961;
    let (software, _, (major, minor)) = SOFTWARE
        .iter()
        .find(|(_, share, _)| {
            let is_it = draw < *share;
            draw = draw.saturating_sub(*share);
            is_it
        })
        .unwrap_or(&("mastodon", 0, (4, 5)));
    let behind = one_of(&[0, 0, 0, 1, 1, 2, 3], chance >> 20).unwrap_or(0);
    let age = i64::try_from(mixed(chance) % days.max(1)).unwrap_or(0);
    let words = [
        "social", "fedi", "masto", "toot", "blog", "tech", "art", "city", "queer", "books",
    ];
    let word = |at: u64| one_of(&words, at).unwrap_or("fedi");
    let host = match row {
        7 => format!("{0}.{0}.{0}.example", "x".repeat(60)),
        11 => "xn--bcher-kva.example".to_owned(),
        _ => format!("{}{}.{}.example", word(chance), row, word(chance / 10)),
    };
    let version = format!("{major}.{}.{}", minor - behind.min(*minor), chance % 5);
    ListedRow {
        host,
        state: match chance % 40 {
            0 | 1 => ListedState::Dying,
            2 => ListedState::Moving,
            _ => ListedState::Alive,
        },
        first_seen: Moment::from_milliseconds(MADE_MS - age * DAY_MS),
        last_alive: Moment::from_milliseconds(
            MADE_MS - i64::try_from(chance % 36).unwrap_or(0) * 3_600_000,
        ),
        instance: Instance {
            open_registrations: one_of(&[Some(true), Some(false), None], chance >> 30).flatten(),
            ..kit::software(software, &version)
        },
    }
}

fn facts(rows: u64, days: u64) -> Facts {
    let known = by_state(rows);
    let last = date(2026, 11, 18);
    let history = (0..days)
        .map(|back| days - 1 - back)
        .map(|back| {
            let share = days - back * 2 / 3;
            let listed = rows * share / days.max(1);
            let wave = mixed(back) % (rows / 400 + 2);
            let of = |share: u64| listed * share / 961 + wave / 3;
            let mut by_software: Vec<_> = SOFTWARE
                .iter()
                .map(|(name, share, _)| ((*name).to_owned(), of(*share)))
                .collect();
            by_software.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            Day {
                day: last
                    .checked_sub(Span::new().days(i64::try_from(back).unwrap_or(0)))
                    .unwrap_or(last),
                by_state: by_state(listed),
                by_software,
                others: wave,
                appeared: rows / 900 + wave,
                left: rows / 1200 + mixed(back + 9) % (rows / 500 + 2),
            }
        })
        .collect();
    Facts {
        made: Moment::from_milliseconds(MADE_MS),
        rows_read: Moment::from_milliseconds(MADE_MS),
        user_agent: "Fedicensus/0.1.0 (+https://census.example/about)".to_owned(),
        title: "Fedicensus".to_owned(),
        operator: None,
        licence: "CC0-1.0".to_owned(),
        contact: "https://census.example/about".to_owned(),
        address: Some("https://census.example".to_owned()),
        intake: Intake::Open,
        push: Push::Closed,
        reading: Reading::Instances,
        known,
        progress: None,
        trouble: None,
        salt: Salt::from_random(u128::from(rows)),
        history,
        versions: VersionHistory::default(),
        published: dump::PublishedSet::default(),
    }
}

fn by_state(listed: u64) -> ByState {
    [
        (StateName::Discovered, listed / 10),
        (StateName::Alive, listed - listed / 20),
        (StateName::Dying, listed / 20),
        (StateName::Dead, listed * 2),
        (StateName::OptedOut, listed / 200),
    ]
    .into()
}
