//! The text of a notification, and the page that it opens.

use census::state::StateName;
use serde::Serialize;
use url::form_urlencoded;

use super::section::{Change, Section};
use super::subscription::Filter;

/// Most names in one message. The rest is a number.
const NAMES_MAX: usize = 5;

/// Longest name that is shown, in characters. DNS allows some more.
const NAME_CHARS_MAX: usize = 80;

/// A message for the site's service worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Text {
    pub title: String,
    pub body: String,
    /// The page that it opens, below the site's root.
    pub page: String,
}

impl Text {
    pub fn confirmation() -> Self {
        Self {
            title: "Notifications are on".to_owned(),
            body: "This census reports changes here.".to_owned(),
            page: String::new(),
        }
    }

    /// The notification about a section's changes; `None` if none matches the filter.
    pub fn of(section: &Section, filter: &Filter) -> Option<Self> {
        Self::about(section.changes(), section.listed, filter)
    }

    /// The same about all recent changes: for a subscriber whose last notification still waits.
    pub fn of_recent(section: &Section, filter: &Filter) -> Option<Self> {
        Self::about(section.recent(), section.listed, filter)
    }

    fn about(changes: &[Change], listed: u64, filter: &Filter) -> Option<Self> {
        let taken: Vec<&Change> = changes
            .iter()
            .filter(|change| filter.takes(change))
            .collect();
        let last = *taken.last()?;
        Some(match filter {
            Filter::All => Self {
                title: "The list has changed".to_owned(),
                body: all(listed, &taken),
                page: "index.html".to_owned(),
            },
            Filter::Software(software) => Self {
                title: format!("New on {}", short(software)),
                body: names(&taken),
                page: format!("?software={}", encoded(software)),
            },
            Filter::Host(host) => Self {
                title: short(host),
                body: of_host(last),
                page: format!("why.html#{host}"),
            },
        })
    }
}

fn all(listed: u64, taken: &[&Change]) -> String {
    let (mut new, mut gone) = (0_usize, 0_usize);
    for change in taken {
        match change {
            Change::Appeared(_) | Change::Returned(_) => new = new.saturating_add(1),
            Change::Died { .. } | Change::Moved { .. } | Change::Left { .. } => {
                gone = gone.saturating_add(1);
            }
            Change::Changed(_) => {}
        }
    }
    format!("{new} new, {gone} gone, {listed} listed")
}

fn names(taken: &[&Change]) -> String {
    let hosts = taken.iter().filter_map(|change| match change {
        Change::Appeared(row) | Change::Returned(row) => Some(short(&row.host)),
        Change::Changed(_) | Change::Died { .. } | Change::Moved { .. } | Change::Left { .. } => {
            None
        }
    });
    let shown: Vec<String> = hosts.take(NAMES_MAX).collect();
    let mut text = shown.join(", ");
    let rest = taken.len().saturating_sub(shown.len());
    if rest > 0 {
        text.push_str(&format!(" and {rest} more"));
    }
    text
}

fn of_host(change: &Change) -> String {
    match change {
        Change::Appeared(_) => "It is in the list now.".to_owned(),
        Change::Returned(_) => "It is back in the list.".to_owned(),
        Change::Changed(row) => {
            let software = row.software.as_deref().unwrap_or("unknown software");
            let version = row.version.as_deref().unwrap_or_default();
            let shown = format!("{} {}", short(software), short(version));
            format!(
                "Its row has changed: {}, {}.",
                shown.trim_end(),
                short(StateName::parse(&row.state).map_or(&row.state, |name| name.for_people()))
            )
        }
        Change::Died { .. } => "It does not respond and was taken off the list.".to_owned(),
        // The page that opens has the other host's name, unless that one opted out since.
        Change::Moved { .. } => "It has moved to another host.".to_owned(),
        Change::Left { .. } => "It is no longer in the list.".to_owned(),
    }
}

fn encoded(value: &str) -> String {
    form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// A text from a server, cut to a suitable length.
fn short(text: &str) -> String {
    text.chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::super::section::Row;
    use super::*;

    fn row(host: &str) -> Row {
        Row {
            host: host.to_owned(),
            software: Some("mastodon".to_owned()),
            version: Some("4.5.0".to_owned()),
            state: "alive".to_owned(),
        }
    }

    fn died(host: &str) -> Change {
        let host = host.to_owned();
        Change::Died { host }
    }

    fn section(changes: Vec<Change>) -> Section {
        Section::of("aa", 10, changes)
    }

    #[test]
    fn a_list_without_anything_for_a_subscription_says_nothing() {
        let quiet = section(vec![Change::Changed(row("a.example"))]);
        assert_eq!(Text::of(&quiet, &Filter::All), None);
        let other = Filter::Host("b.example".to_owned());
        assert_eq!(Text::of(&quiet, &other), None);
    }

    #[test]
    fn all_changes_are_numbers() {
        let mixed = section(vec![
            Change::Appeared(row("a.example")),
            died("b.example"),
            Change::Left {
                host_sha256: String::new(),
            },
        ]);
        let text = Text::of(&mixed, &Filter::All).unwrap();
        assert_eq!(text.body, "1 new, 2 gone, 10 listed");
    }

    #[test]
    fn new_instances_are_named_up_to_a_few() {
        let hosts = (0..8).map(|number| Change::Appeared(row(&format!("h{number}.example"))));
        let many = section(hosts.collect());
        let text = Text::of(&many, &Filter::Software("mastodon".to_owned())).unwrap();
        let names = "h0.example, h1.example, h2.example, h3.example, h4.example";
        assert_eq!(text.body, format!("{names} and 3 more"));
        assert_eq!(text.page, "?software=mastodon");
        let odd = Filter::Software("a b&c#".to_owned());
        let odd_row = Row {
            software: Some("a b&c#".to_owned()),
            ..row("a.example")
        };
        let text = Text::of(&section(vec![Change::Appeared(odd_row)]), &odd).unwrap();
        assert_eq!(text.page, "?software=a+b%26c%23");
    }

    #[test]
    fn a_host_is_told_by_its_last_change() {
        let host = Filter::Host("a.example".to_owned());
        for (change, expect) in [
            (Change::Appeared(row("a.example")), "It is in the list now."),
            (
                Change::Changed(row("a.example")),
                "Its row has changed: mastodon 4.5.0, up.",
            ),
            (
                died("a.example"),
                "It does not respond and was taken off the list.",
            ),
        ] {
            let text = Text::of(&section(vec![change]), &host).unwrap();
            assert_eq!(text.body, expect);
            assert_eq!(text.page, "why.html#a.example");
        }
    }

    #[test]
    fn what_strangers_wrote_is_cut() {
        let long = Row {
            software: Some("x".repeat(10_000)),
            ..row("a.example")
        };
        let host = Filter::Host("a.example".to_owned());
        let text = Text::of(&section(vec![Change::Changed(long)]), &host).unwrap();
        assert!(text.body.len() < 300, "{}", text.body.len());
    }
}
