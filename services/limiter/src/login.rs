//! The login limiter: bans addresses that try too often, and locks users whose password is being
//! guessed.
//!
//! The steps and their order are Anansi's. A banned address is refused and nothing is recorded. The
//! attempt is recorded, and too many attempts ban the address. A locked user is refused. The
//! computation runs. A failure is recorded for the user, and too many failures lock the user.

pub mod record;
pub mod state;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::record::{FailureLimits, Rules, Timestamp};
use self::state::{Key, State};
use crate::call::{Call, Limiter, Permit, Status};
use crate::metrics::Metrics;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginLimits {
    /// Attempts of an address within a minute. One more bans it.
    pub attempts_per_minute: u32,
    /// Duration of a first ban.
    pub ban: Duration,
    pub rules: Rules,
    /// Failures of a user within a minute. One more locks the user.
    pub failures_per_minute: u32,
    /// Failures of a user within an hour. One more locks the user. Without this limit, guesses just
    /// below [`Self::failures_per_minute`] could continue forever. The original has no such limit.
    pub failures_per_hour: u32,
    pub lock: Duration,
    /// Time between two clean-ups. The first attempt triggers the first one.
    pub clean_up_every: Duration,
}

impl Default for LoginLimits {
    fn default() -> Self {
        Self {
            attempts_per_minute: 6,
            ban: Duration::from_secs(30 * 60),
            rules: Rules::Ours {
                longest_ban: Duration::from_secs(24 * 3600),
            },
            failures_per_minute: 6,
            failures_per_hour: 30,
            lock: Duration::from_secs(10 * 60),
            clean_up_every: Duration::from_secs(15 * 60),
        }
    }
}

/// The source of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Who<'a> {
    /// The client's address from [`crate::address_key`], from a trusted source. `None` skips
    /// attempts and bans.
    pub address: Option<&'a str>,
    /// The user name, whether or not the user exists. `None` skips failures and locks. The caller
    /// bounds its length, because it is kept for an hour.
    pub user: Option<&'a str>,
    /// The name in a cookie with a valid signature that belongs to this user. The user's lock does
    /// not affect this browser, which has its own lock.
    pub device: Option<&'a str>,
}

/// How long a refusal takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Refusals {
    /// As long as a call that computes.
    #[default]
    TakeTime,
    /// No time: the call is dropped at once, and not counted.
    AtOnce,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login<T, E> {
    /// The call. Its value is `Some` for a right password and `None` for a wrong one.
    pub call: Call<Result<Option<T>, E>>,
    /// The ban or lock that this attempt caused.
    pub began: Option<Began>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Began {
    pub key: Key,
    pub until: Timestamp,
}

#[derive(Debug)]
pub struct LoginLimiter<S> {
    limiter: Arc<Limiter>,
    known_browsers: Arc<Limiter>,
    limits: LoginLimits,
    inner: Mutex<Inner<S>>,
}

#[derive(Debug)]
struct Inner<S> {
    state: S,
    next_clean_up: Timestamp,
}

type Refused = (Status, Option<Began>);

impl<S: State> LoginLimiter<S> {
    /// A login limiter based on `limiter`. Attempts of known browsers use the other one, so that a
    /// flood of other attempts takes none of their slots.
    pub fn new(
        limiter: Arc<Limiter>,
        known_browsers: Arc<Limiter>,
        limits: LoginLimits,
        state: S,
    ) -> Self {
        Self {
            limiter,
            known_browsers,
            limits,
            inner: Mutex::new(Inner {
                state,
                next_clean_up: Timestamp::default(),
            }),
        }
    }

    /// Tries to log in at `now`. `work` returns `Some` for a right password and `None` for a wrong
    /// one; an error counts as wrong. Blocks while the state is read or written, which is part of
    /// the call's constant time.
    ///
    /// # Errors
    /// Fails if the state can't be read or written. The login is refused in that case.
    pub async fn attempt<T, E, F>(
        &self,
        now: Timestamp,
        jitter_share: f64,
        who: Who<'_>,
        refusals: Refusals,
        work: impl FnOnce(Permit) -> F,
    ) -> Result<Login<T, E>, S::Error>
    where
        F: Future<Output = Result<Option<T>, E>>,
    {
        let limiter = match who.device {
            Some(_) => &self.known_browsers,
            None => &self.limiter,
        };
        let Some(entry) = limiter.enter() else {
            let call = limiter.answered_at_once();
            return Ok(Login { call, began: None });
        };
        let entered = entry.entered;
        if let Some((status, began)) = self.before(now, who)? {
            let call = match refusals {
                Refusals::TakeTime => limiter.refuse(entry, status, jitter_share).await,
                Refusals::AtOnce => Call {
                    status,
                    value: None,
                    times: None,
                },
            };
            return Ok(Login { call, began });
        }
        // Other failures may have locked the user while this call waited.
        let mut asked = Ok(());
        let refusal = || match self.locked_by_now(now.plus(entered.elapsed()), who) {
            Ok(refusal) => refusal,
            Err(error) => {
                asked = Err(error);
                Some(Status::LockedUser)
            }
        };
        let mut recorded = Ok(None);
        let ended = |result: &Result<Option<T>, E>, takes| {
            let is_right = matches!(result, Ok(Some(_)));
            let verified = match is_right {
                true => &self.metrics().verify_successes,
                false => &self.metrics().verify_failures,
            };
            verified.inc();
            if !is_right && self.limits.rules != Rules::Original {
                recorded = self.failed(now.plus(takes), who);
            }
        };
        let call = limiter
            .call_from(entry, jitter_share, refusal, work, ended)
            .await;
        asked?;
        let is_wrong = matches!(call.value, Some(Ok(None) | Err(_)));
        if is_wrong && self.limits.rules == Rules::Original {
            recorded = self.failed(now.plus(entered.elapsed()), who);
        }
        let began = recorded?;
        Ok(Login { call, began })
    }

    /// Notices bans and locks that have ended, and drops records that are no longer needed.
    pub fn clean_up(&self, now: Timestamp) -> Result<(), S::Error> {
        self.with(|inner| self.clean(inner, now))
    }

    /// Gives access to the state. Attempts wait until this returns.
    pub fn with_state<R>(&self, use_it: impl FnOnce(&mut S) -> R) -> R {
        self.with(|inner| use_it(&mut inner.state))
    }

    /// Counters of all logins, and of the calls except those of known browsers.
    pub fn metrics(&self) -> &Metrics {
        self.limiter.metrics()
    }

    fn with<R>(&self, what: impl FnOnce(&mut Inner<S>) -> R) -> R {
        what(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks for a ban, too many attempts and a lock before the computation.
    fn before(&self, now: Timestamp, who: Who<'_>) -> Result<Option<Refused>, S::Error> {
        self.with(|inner| {
            // Setting the clock back must not delay the next clean-up for long.
            let latest = now.plus(self.limits.clean_up_every);
            if now >= inner.next_clean_up || inner.next_clean_up > latest {
                self.clean(inner, now)?;
                inner.next_clean_up = latest;
            }
            if let Some(address) = who.address {
                let refused = self.count_address(&mut inner.state, now, address)?;
                if refused.is_some() {
                    return Ok(refused);
                }
            }
            let locked = self.locked(&mut inner.state, now, who)?;
            Ok(locked.map(|status| (status, None)))
        })
    }

    fn locked_by_now(&self, now: Timestamp, who: Who<'_>) -> Result<Option<Status>, S::Error> {
        match self.limits.rules {
            Rules::Original => Ok(None),
            Rules::Ours { .. } => self.with(|inner| self.locked(&mut inner.state, now, who)),
        }
    }

    fn locked(
        &self,
        state: &mut S,
        now: Timestamp,
        who: Who<'_>,
    ) -> Result<Option<Status>, S::Error> {
        let Some(key) = user_key(who) else {
            return Ok(None);
        };
        let is_held = state.get(&key)?.is_held(now, self.limits.lock);
        Ok(is_held.then_some(Status::LockedUser))
    }

    fn count_address(
        &self,
        state: &mut S,
        now: Timestamp,
        address: &str,
    ) -> Result<Option<Refused>, S::Error> {
        let key = Key::Address(address.to_owned());
        let mut record = state.get(&key)?;
        if record.is_held(now, self.longest_ban()) {
            return Ok(Some((Status::BannedIp, None)));
        }
        let is_one_too_many = record.count(now, self.limits.attempts_per_minute);
        let began = is_one_too_many.then(|| {
            self.metrics().banned_ips.inc();
            let until = record.ban(now, self.limits.ban, self.limits.rules);
            let key = key.clone();
            (Status::RateLimited, Some(Began { key, until }))
        });
        state.put(key, record)?;
        Ok(began)
    }

    fn failed(&self, now: Timestamp, who: Who<'_>) -> Result<Option<Began>, S::Error> {
        let Some(key) = user_key(who) else {
            return Ok(None);
        };
        self.with(|inner| {
            let mut record = inner.state.get(&key)?;
            let is_one_too_many = match self.limits.rules {
                Rules::Original => record.count(now, self.limits.failures_per_minute),
                Rules::Ours { .. } => record.count_failure(now, self.failure_limits()),
            };
            let until = is_one_too_many.then(|| {
                self.metrics().locked_users.inc();
                record.hold(now, self.limits.lock)
            });
            inner.state.put(key.clone(), record)?;
            Ok(until.map(|until| Began { key, until }))
        })
    }

    fn clean(&self, inner: &mut Inner<S>, now: Timestamp) -> Result<(), S::Error> {
        let (mut unbanned, mut unlocked) = (0_u64, 0_u64);
        inner.state.retain(|key, record| {
            let (longest, ended) = match key {
                Key::Address(_) => (self.longest_ban(), &mut unbanned),
                Key::User(_) | Key::Device { .. } => (self.limits.lock, &mut unlocked),
            };
            if record.release(now, longest) {
                *ended = ended.saturating_add(1);
            }
            record.calm_down(now);
            record.purge(now)
        })?;
        self.metrics().unbanned_ips.inc_by(unbanned);
        self.metrics().unlocked_users.inc_by(unlocked);
        Ok(())
    }

    fn failure_limits(&self) -> FailureLimits {
        FailureLimits {
            per_minute: self.limits.failures_per_minute,
            per_hour: self.limits.failures_per_hour,
        }
    }

    fn longest_ban(&self) -> Duration {
        match self.limits.rules {
            Rules::Original => self.limits.ban,
            Rules::Ours { longest_ban } => longest_ban.max(self.limits.ban),
        }
    }
}

/// The key of the record for failures and locks.
fn user_key(who: Who<'_>) -> Option<Key> {
    let user = who.user?.to_owned();
    Some(match who.device {
        Some(device) => Key::Device {
            user,
            device: device.to_owned(),
        },
        None => Key::User(user),
    })
}

#[cfg(test)]
mod tests;
