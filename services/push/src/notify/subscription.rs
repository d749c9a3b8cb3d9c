//! Subscriptions and their filters.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::section::{Change, Row};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    All,
    Software(String),
    Host(String),
}

/// A subscription. Nothing else is stored about a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub endpoint: String,
    /// The user agent's public key (RFC 8291), 65 bytes.
    pub public_key: Vec<u8>,
    /// The user agent's secret (RFC 8291), 16 bytes.
    pub secret: Vec<u8>,
    pub filter: Filter,
}

impl Filter {
    /// Whether a change matches this filter.
    ///
    /// A `left` line has only the digest of a host's name, so it matches only a filter for that
    /// host.
    pub fn takes(&self, change: &Change) -> bool {
        match (self, change) {
            (Self::All, Change::Changed(_)) => false,
            (Self::All, _) => true,
            (Self::Software(software), Change::Appeared(row) | Change::Returned(row)) => {
                row.software.as_ref() == Some(software)
            }
            (
                Self::Software(_),
                Change::Changed(_)
                | Change::Died { .. }
                | Change::Moved { .. }
                | Change::Left { .. },
            ) => false,
            (
                Self::Host(host),
                Change::Appeared(Row { host: other, .. })
                | Change::Returned(Row { host: other, .. })
                | Change::Changed(Row { host: other, .. })
                | Change::Died { host: other }
                | Change::Moved { host: other, .. },
            ) => host == other,
            (Self::Host(host), Change::Left { host_sha256 }) => *host_sha256 == sha256(host),
        }
    }
}

fn sha256(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(text) {
        // Writing to a string can't fail.
        write!(hex, "{byte:02x}").unwrap_or(());
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(host: &str, software: &str) -> Row {
        Row {
            host: host.to_owned(),
            software: Some(software.to_owned()),
            version: None,
            state: "alive".to_owned(),
        }
    }

    #[test]
    fn each_filter_takes_its_own_changes() {
        let appeared = Change::Appeared(row("a.example", "mastodon"));
        let changed = Change::Changed(row("a.example", "mastodon"));
        let died = Change::Died {
            host: "a.example".to_owned(),
        };
        let left = Change::Left {
            host_sha256: sha256("a.example"),
        };
        let mastodon = Filter::Software("mastodon".to_owned());
        let misskey = Filter::Software("misskey".to_owned());
        let host = Filter::Host("a.example".to_owned());
        let other = Filter::Host("b.example".to_owned());
        for (change, all, software, this) in [
            (appeared, true, true, true),
            (changed, false, false, true),
            (died, true, false, true),
            (left, true, false, true),
        ] {
            assert_eq!(Filter::All.takes(&change), all, "{change:?}");
            assert_eq!(mastodon.takes(&change), software, "{change:?}");
            assert!(!misskey.takes(&change), "{change:?}");
            assert_eq!(host.takes(&change), this, "{change:?}");
            assert!(!other.takes(&change), "{change:?}");
        }
    }
}
