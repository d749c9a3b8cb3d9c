//! Converts what the crawler knew about a host to a record of the census.
//!
//! A row may claim anything; the record always obeys the rules of the census. If a claim is not
//! plausible, only the name is used, and the host is discovered.
//!
//! No host is listed because of an imported row: a host that was alive is hidden until one of our
//! checks has succeeded and found that it may be shown.

use census::state::{Before, Record, State};
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use serde::{Deserialize, Serialize};

/// 2015-01-01 in seconds. The crawler is younger, so an earlier time is wrong and counts as
/// unknown.
const EARLIEST_S: i64 = 1_420_070_400;

/// The largest count that is imported: more than one a day since [`EARLIEST_S`], for decades to
/// come.
const COUNT_MAX: u32 = 20_000;

/// The state of a host in the crawler's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MinoruState {
    /// Never checked.
    Discovered,
    /// Its last check succeeded.
    Alive,
    /// Its last checks failed.
    Dying,
    /// It failed for too long.
    Dead,
    /// Its last checks were redirected to another host.
    Moving,
    /// It was redirected for long enough to count as moved.
    Moved,
}

/// A host in the crawler's database. Times are seconds since 1970 in UTC. Nothing is validated yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinoruHost {
    /// Its state.
    pub state: MinoruState,
    /// When it began to fail or to redirect.
    pub since_s: Option<i64>,
    /// Consecutive checks that failed or were redirected.
    pub count: Option<i64>,
    /// Its state before it was dying or moving.
    pub state_before: Option<MinoruState>,
    /// The host that it redirected to.
    pub target: Option<String>,
    /// When the crawler learned its name.
    pub first_seen_s: Option<i64>,
    /// Its last check.
    pub last_checked_s: Option<i64>,
    /// Its next check.
    pub next_check_s: Option<i64>,
}

/// The record of a host that is new to the census. `target` is `known.target` if that name is
/// admitted to the census.
///
/// - It is due at a random time within a day if it is checked daily, otherwise within a week. So
///   the hosts of a whole file do not come due at once.
/// - Alive, Dying and Moving need the times that the rules use; Moving and Moved need a target that
///   is another host. Without them the host is discovered.
/// - A host that is alive, or was before it was dying or moving, is hidden. Its `last_alive` is the
///   earliest time that the row allows.
/// - Times after `now` count as now, times before 2015 as unknown.
pub fn imported(
    host: Host,
    known: &MinoruHost,
    target: Option<Host>,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
) -> Record {
    let claims = Claims::of(known, now, calendar);
    let first_seen = claims.earliest().unwrap_or(now);
    let daily = now.plus(calendar.first_check(jitter));
    let target = target.filter(|target| *target != host);
    let discovered = Record::discovered(host, first_seen, daily);
    let Some(state) = claims.state(target) else {
        return discovered;
    };
    let seen = claims.last_checked.or(claims.last_alive).unwrap_or(now);
    let weekly = now.plus(calendar.first_weekly_check(jitter));
    let (since, due) = match state {
        State::Dying { .. } | State::Moving { .. } => (claims.since.unwrap_or(now), daily),
        State::Dead | State::Moved { .. } => (seen, weekly),
        State::Discovered | State::Alive | State::OptedOut { .. } | State::Parked => (seen, daily),
    };
    Record {
        since,
        state,
        hidden: claims.last_alive.is_some(),
        last_alive: claims.last_alive,
        last_checked: claims.last_checked,
        due: Some(due),
        ..discovered
    }
}

/// The claims of a row, with plausible times only.
struct Claims<'k> {
    known: &'k MinoruHost,
    since: Option<Timestamp>,
    first_seen: Option<Timestamp>,
    last_checked: Option<Timestamp>,
    last_alive: Option<Timestamp>,
}

impl<'k> Claims<'k> {
    fn of(known: &'k MinoruHost, now: Timestamp, calendar: Calendar) -> Self {
        let moment = |seconds| moment(seconds, now);
        let since = moment(known.since_s);
        let last_checked = moment(known.last_checked_s);
        // The longest interval between two daily checks.
        let day = calendar.day(Jitter(u32::MAX));
        let last_alive = match known.state {
            MinoruState::Alive => {
                last_checked.or_else(|| moment(known.next_check_s).map(|next| next.minus(day)))
            }
            MinoruState::Dying | MinoruState::Moving
                if known.state_before == Some(MinoruState::Alive) =>
            {
                since.map(|since| since.minus(day))
            }
            MinoruState::Discovered
            | MinoruState::Dying
            | MinoruState::Dead
            | MinoruState::Moving
            | MinoruState::Moved => None,
        };
        Self {
            known,
            since,
            first_seen: moment(known.first_seen_s),
            last_checked,
            last_alive,
        }
    }

    fn earliest(&self) -> Option<Timestamp> {
        let known = [
            self.first_seen,
            self.since,
            self.last_checked,
            self.last_alive,
        ];
        known.into_iter().flatten().min()
    }

    /// The state. `None` if the row lacks values that the state needs.
    fn state(&self, target: Option<Host>) -> Option<State> {
        match self.known.state {
            MinoruState::Discovered => None,
            MinoruState::Alive => self.last_alive.map(|_alive| State::Alive),
            MinoruState::Dying => self.since.map(|_since| State::Dying {
                before: self.before(),
                count: self.count(),
                gone: false,
                gone_last: false,
            }),
            MinoruState::Dead => Some(State::Dead),
            MinoruState::Moving => self.since.and(target).map(|target| State::Moving {
                before: self.before(),
                count: self.count(),
                target,
            }),
            MinoruState::Moved => target.map(|target| State::Moved { target }),
        }
    }

    /// The host counts as alive before only if the row says that it was.
    fn before(&self) -> Before {
        match self.known.state_before {
            Some(MinoruState::Alive) => Before::Alive,
            Some(MinoruState::Dead) => Before::Dead,
            Some(MinoruState::Moved) => Before::Moved,
            Some(MinoruState::Discovered | MinoruState::Dying | MinoruState::Moving) | None => {
                Before::Discovered
            }
        }
    }

    fn count(&self) -> u32 {
        let count = self.known.count.unwrap_or(1).max(1);
        u32::try_from(count).map_or(COUNT_MAX, |count| count.min(COUNT_MAX))
    }
}

fn moment(seconds: Option<i64>, now: Timestamp) -> Option<Timestamp> {
    let seconds = seconds.filter(|seconds| *seconds >= EARLIEST_S)?;
    Some(Timestamp(seconds.saturating_mul(1000)).min(now))
}

#[cfg(test)]
mod tests;
