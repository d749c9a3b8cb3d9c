//! A listed host as published: a line of `instances.ndjson`, or a row of the other `instances`
//! files. Its columns are those that `crates/dump/columns.toml` calls public, and every format has
//! the same members.

use std::fmt;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Its name in canonical form.
    pub host: String,
    /// NodeInfo's software name, in lower case.
    pub software: Option<String>,
    pub version: Option<String>,
    pub state: ListedState,
    /// When the census first saw its name.
    pub first_seen: Moment,
    /// When it was last found alive: at most 14 days ago (invariant I11).
    pub last_alive: Moment,
    /// NodeInfo's `openRegistrations`. `None` if it does not say.
    pub open_registrations: Option<bool>,
}

#[cfg(test)]
impl Instance {
    /// An alive instance, for tests.
    pub(crate) fn example(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            software: Some("mastodon".to_owned()),
            version: Some("4.4.0".to_owned()),
            state: ListedState::Alive,
            first_seen: Moment::from_milliseconds(0),
            last_alive: Moment::from_milliseconds(0),
            open_registrations: None,
        }
    }
}

/// The states in which a host is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedState {
    /// It answered its last check.
    Alive,
    /// It was alive, and has not answered lately.
    Dying,
    /// It was alive, and redirects to another host that is not alive yet.
    Moving,
}

impl ListedState {
    /// Its word in every file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Dying => "dying",
            Self::Moving => "moving",
        }
    }
}

/// A time in whole seconds, written as RFC 3339 in UTC: `2026-11-22T07:30:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Moment(Timestamp);

impl Moment {
    /// The second that contains `milliseconds` since 1970. Times before 1970 or in a year of five
    /// digits become the nearest that RFC 3339 can write; no working clock shows them.
    pub fn from_milliseconds(milliseconds: i64) -> Self {
        let seconds = milliseconds
            .div_euclid(1000)
            .clamp(0, Timestamp::MAX.as_second());
        Self(Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// Its day in UTC: `2026-11-22`.
    pub fn day(self) -> String {
        let mut text = self.to_string();
        text.truncate("2026-11-22".len());
        text
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0.as_second()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whole seconds, so that there is no fraction.
        self.0.fmt(f)
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> Self {
        moment.to_string()
    }
}

impl TryFrom<String> for Moment {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Self, jiff::Error> {
        let at = DateTimeParser::new().parse_timestamp(&text)?;
        Ok(Self(Timestamp::from_second(at.as_second())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_these_members_and_reads_back() {
        let instance = Instance {
            host: "a.example".to_owned(),
            software: Some("mastodon".to_owned()),
            version: None,
            state: ListedState::Dying,
            first_seen: Moment::from_milliseconds(-1),
            last_alive: Moment::from_milliseconds(1_700_000_000_999),
            open_registrations: Some(false),
        };
        let line = serde_json::to_string(&instance).unwrap();
        assert_eq!(
            line,
            r#"{"host":"a.example","software":"mastodon","version":null,"state":"dying","first_seen":"1970-01-01T00:00:00Z","last_alive":"2023-11-14T22:13:20Z","open_registrations":false}"#
        );
        assert_eq!(serde_json::from_str::<Instance>(&line).unwrap(), instance);
        let silent = Instance {
            open_registrations: None,
            ..instance.clone()
        };
        let silent_line = serde_json::to_string(&silent).unwrap();
        let null = line.replace(":false}", ":null}");
        assert_eq!(silent_line, null);
        assert_eq!(serde_json::from_str::<Instance>(&null).unwrap(), silent);
        assert_eq!(instance.last_alive.day(), "2023-11-14");
    }

    #[test]
    fn what_no_calendar_has_is_no_panic() {
        for milliseconds in [i64::MIN, i64::MAX] {
            let text = Moment::from_milliseconds(milliseconds).to_string();
            let back = serde_json::from_value::<Moment>(text.clone().into());
            assert!(back.is_ok(), "{text}");
        }
        assert!(serde_json::from_str::<Moment>(r#""yesterday""#).is_err());
    }
}
