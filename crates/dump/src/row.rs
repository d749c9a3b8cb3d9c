//! A listed host as published: a line of `instances.ndjson`, or a row of the other `instances`
//! files. Its columns are those that `crates/dump/columns.toml` calls public, and every format has
//! the same members.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;
use protocol::Instance;
use serde::{Deserialize, Serialize, Serializer};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Members<'static>")]
pub struct ListedRow {
    /// Its name in canonical form.
    pub host: String,
    pub state: ListedState,
    /// When the census first saw its name.
    pub first_seen: Moment,
    /// When it was last found alive: at most 14 days ago (invariant I11).
    pub last_alive: Moment,
    /// Without `private`, which is not published.
    pub instance: Instance,
}

/// A listed host as changes rebuild it: all of [`ListedRow`] except the time when it was last found
/// alive, which changes for nearly every host in every dump.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Members<'static>")]
pub struct Row {
    /// Its name in canonical form.
    pub host: String,
    pub state: ListedState,
    /// When the census first saw its name.
    pub first_seen: Moment,
    /// Without `private`, which is not published.
    pub instance: Instance,
}

/// The members of either row in JSON, in their order.
#[derive(Serialize, Deserialize)]
struct Members<'r> {
    host: Cow<'r, str>,
    software: Option<Cow<'r, str>>,
    version: Option<Cow<'r, str>>,
    state: ListedState,
    first_seen: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_alive: Option<Moment>,
    open_registrations: Option<bool>,
    variant: Option<Cow<'r, str>>,
}

impl From<ListedRow> for Row {
    fn from(row: ListedRow) -> Self {
        Self {
            host: row.host,
            state: row.state,
            first_seen: row.first_seen,
            instance: row.instance,
        }
    }
}

impl From<Members<'_>> for Row {
    fn from(members: Members<'_>) -> Self {
        Self {
            host: members.host.into_owned(),
            state: members.state,
            first_seen: members.first_seen,
            instance: Instance {
                software: members.software.map(Cow::into_owned),
                version: members.version.map(Cow::into_owned),
                open_registrations: members.open_registrations,
                variant: members.variant.map(Cow::into_owned),
                ..Instance::default()
            },
        }
    }
}

impl TryFrom<Members<'_>> for ListedRow {
    type Error = &'static str;

    fn try_from(members: Members<'_>) -> Result<Self, Self::Error> {
        let last_alive = members.last_alive.ok_or("`last_alive` is missing")?;
        let row = Row::from(members);
        Ok(Self {
            host: row.host,
            state: row.state,
            first_seen: row.first_seen,
            last_alive,
            instance: row.instance,
        })
    }
}

impl<'r> Members<'r> {
    fn of(host: &'r str, instance: &'r Instance, state: ListedState, first_seen: Moment) -> Self {
        Self {
            host: host.into(),
            software: instance.software.as_deref().map(Cow::from),
            version: instance.version.as_deref().map(Cow::from),
            state,
            first_seen,
            last_alive: None,
            open_registrations: instance.open_registrations,
            variant: instance.variant.as_deref().map(Cow::from),
        }
    }
}

impl Serialize for ListedRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Members::of(&self.host, &self.instance, self.state, self.first_seen);
        members.last_alive = Some(self.last_alive);
        members.serialize(serializer)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Members::of(&self.host, &self.instance, self.state, self.first_seen).serialize(serializer)
    }
}

#[cfg(test)]
impl ListedRow {
    /// A responding instance.
    pub(crate) fn example(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            state: ListedState::Alive,
            first_seen: Moment::from_milliseconds(0),
            last_alive: Moment::from_milliseconds(0),
            instance: kit::software("mastodon", "4.4.0"),
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
        let row = ListedRow {
            host: "a.example".to_owned(),
            state: ListedState::Dying,
            first_seen: Moment::from_milliseconds(-1),
            last_alive: Moment::from_milliseconds(1_700_000_000_999),
            instance: Instance {
                software: Some("mastodon".to_owned()),
                open_registrations: Some(false),
                variant: Some("glitch".to_owned()),
                ..Instance::default()
            },
        };
        let line = serde_json::to_string(&row).unwrap();
        assert_eq!(
            line,
            r#"{"host":"a.example","software":"mastodon","version":null,"state":"dying","first_seen":"1970-01-01T00:00:00Z","last_alive":"2023-11-14T22:13:20Z","open_registrations":false,"variant":"glitch"}"#
        );
        assert_eq!(serde_json::from_str::<ListedRow>(&line).unwrap(), row);
        let silent = ListedRow {
            instance: Instance {
                open_registrations: None,
                variant: None,
                ..row.instance.clone()
            },
            ..row.clone()
        };
        let null = line.replace(r#":false,"variant":"glitch"}"#, r#":null,"variant":null}"#);
        assert_eq!(serde_json::to_string(&silent).unwrap(), null);
        assert_eq!(serde_json::from_str::<ListedRow>(&null).unwrap(), silent);
        assert_eq!(row.last_alive.day(), "2023-11-14");
    }

    #[test]
    fn row_of_the_changes_is_a_listed_row_without_last_alive() {
        let listed = ListedRow::example("a.example");
        let line = serde_json::to_string(&listed).unwrap();
        let row = Row::from(listed);
        let shorter = line.replace(r#""last_alive":"1970-01-01T00:00:00Z","#, "");
        assert_eq!(serde_json::to_string(&row).unwrap(), shorter);
        assert_eq!(serde_json::from_str::<Row>(&shorter).unwrap(), row);
        assert!(serde_json::from_str::<ListedRow>(&shorter).is_err());
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
