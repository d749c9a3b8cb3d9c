//! What another crawler knew of a host becomes a record of ours.
//!
//! In: its word, which may say anything, and the time. Out: a record that keeps all rules of the census, hidden where it would otherwise be listed.
//! Refused: nothing; of a word that can't be believed only the name is left, which is discovered.
//!
//! Nobody is listed on another's word: who lived there is hidden until a check of ours has come out alive and found that it may be shown.

use protocol::Host;
use serde::{Deserialize, Serialize};

use crate::state::{Before, Record, State};
use crate::time::{Calendar, Jitter, Timestamp};

/// 2015-01-01 in seconds. No crawler that could be taken over is as old, so an earlier moment is a broken one, and counts as unknown.
const EARLIEST_S: i64 = 1_420_070_400;

/// The largest count that is taken over: more than one a day since [`EARLIEST_S`] for decades to come.
const COUNT_MAX: u32 = 20_000;

/// Where a host stood with the other crawler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Named and never judged.
    Discovered,
    /// It lived.
    Alive,
    /// It had begun to fail.
    Dying,
    /// It was given up.
    Dead,
    /// It had begun to redirect.
    Moving,
    /// It redirected for good.
    Moved,
}

/// What the other crawler says of a host; all moments are seconds since 1970 in UTC, and none is believed unseen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Where it stood.
    pub standing: Standing,
    /// Since when it was dying or moving.
    pub since_s: Option<i64>,
    /// How often in a row it had failed, or redirected.
    pub count: Option<i64>,
    /// Where it stood before it was dying or moving.
    pub before: Option<Standing>,
    /// Where it redirected to.
    pub target: Option<String>,
    /// When its name came in there.
    pub first_seen_s: Option<i64>,
    /// When it was asked last.
    pub last_checked_s: Option<i64>,
    /// When it was to be asked next.
    pub next_check_s: Option<i64>,
}

/// The record of a host that is new here. `target` is the word's target if that may be in the census.
///
/// - Due within a day when it would be asked daily, else within a week, at random: a whole crawler's hosts never come due at once.
/// - Alive, Dying and Moving need the moments that the rules go by, Moving and Moved a target that is another host; else it is discovered.
/// - Who lives, or lived before it was dying or moving, is hidden, and `last_alive` is the earliest that the word allows.
/// - Moments ahead of `now` count as now, those before 2015 as unknown.
pub fn adopted(
    host: Host,
    word: &Word,
    target: Option<Host>,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
) -> Record {
    let told = Told::of(word, now, calendar);
    let first_seen = told.earliest().unwrap_or(now);
    let daily = now.plus(calendar.first_check(jitter));
    let target = target.filter(|target| *target != host);
    let discovered = Record::discovered(host, first_seen, daily);
    let Some(state) = told.state(target) else {
        return discovered;
    };
    let seen = told.last_checked.or(told.last_alive).unwrap_or(now);
    let weekly = now.plus(calendar.first_weekly_check(jitter));
    let (since, due) = match state {
        State::Dying { .. } | State::Moving { .. } => (told.since.unwrap_or(now), daily),
        State::Dead | State::Moved { .. } => (seen, weekly),
        State::Discovered | State::Alive | State::OptedOut { .. } | State::Parked => (seen, daily),
    };
    Record {
        since,
        state,
        hidden: told.last_alive.is_some(),
        last_alive: told.last_alive,
        last_checked: told.last_checked,
        due: Some(due),
        ..discovered
    }
}

/// A word in moments that can be.
struct Told<'w> {
    word: &'w Word,
    since: Option<Timestamp>,
    first_seen: Option<Timestamp>,
    last_checked: Option<Timestamp>,
    last_alive: Option<Timestamp>,
}

impl<'w> Told<'w> {
    fn of(word: &'w Word, now: Timestamp, calendar: Calendar) -> Self {
        let moment = |seconds| moment(seconds, now);
        let since = moment(word.since_s);
        let last_checked = moment(word.last_checked_s);
        // Who is asked daily was asked at most so long before.
        let day = calendar.day(Jitter(u32::MAX));
        let last_alive = match word.standing {
            Standing::Alive => {
                last_checked.or_else(|| moment(word.next_check_s).map(|next| next.minus(day)))
            }
            Standing::Dying | Standing::Moving if word.before == Some(Standing::Alive) => {
                since.map(|since| since.minus(day))
            }
            Standing::Discovered
            | Standing::Dying
            | Standing::Dead
            | Standing::Moving
            | Standing::Moved => None,
        };
        Self {
            word,
            since,
            first_seen: moment(word.first_seen_s),
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

    /// The state, unless the word lacks what belongs to it.
    fn state(&self, target: Option<Host>) -> Option<State> {
        match self.word.standing {
            Standing::Discovered => None,
            Standing::Alive => self.last_alive.map(|_alive| State::Alive),
            Standing::Dying => self.since.map(|_since| State::Dying {
                before: self.before(),
                count: self.count(),
                gone: false,
                gone_last: false,
            }),
            Standing::Dead => Some(State::Dead),
            Standing::Moving => self.since.and(target).map(|target| State::Moving {
                before: self.before(),
                count: self.count(),
                target,
            }),
            Standing::Moved => target.map(|target| State::Moved { target }),
        }
    }

    /// Who is not said to have lived before may never have: nobody counts as having lived by our guess.
    fn before(&self) -> Before {
        match self.word.before {
            Some(Standing::Alive) => Before::Alive,
            Some(Standing::Dead) => Before::Dead,
            Some(Standing::Moved) => Before::Moved,
            Some(Standing::Discovered | Standing::Dying | Standing::Moving) | None => {
                Before::Discovered
            }
        }
    }

    fn count(&self) -> u32 {
        let count = self.word.count.unwrap_or(1).max(1);
        u32::try_from(count).map_or(COUNT_MAX, |count| count.min(COUNT_MAX))
    }
}

fn moment(seconds: Option<i64>, now: Timestamp) -> Option<Timestamp> {
    let seconds = seconds.filter(|seconds| *seconds >= EARLIEST_S)?;
    Some(Timestamp(seconds.saturating_mul(1000)).min(now))
}

#[cfg(test)]
mod tests;
