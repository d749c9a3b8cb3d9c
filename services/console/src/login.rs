//! Logins through the login limiter and the file of accounts, and sessions.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use accounts::{Accepted, Accounts, AccountsError, HoldShown, Password, Session, Token};
use axum::http::{HeaderMap, header};
use limiter::login::record::Timestamp;
use limiter::login::state::Key;
use limiter::login::{Began, Login, LoginLimits, Refusals, Who};
use limiter::{Limiter, Limits, LoginLimiter, Status, Unfit, WorkTime, address_key};
use rand::Rng as _;
use thiserror::Error;
use tokio::task::JoinError;

use crate::cookies;
use crate::settings::{LogAddresses, Settings};

/// Hashes that are measured at the start. The slowest one counts.
const CALIBRATION_ROUNDS: u32 = 3;

/// Most measurements: they are repeated if other work slowed them down.
const CALIBRATIONS_MAX: u32 = 3;

/// The shortest maximum wait of a login.
const WAIT_MAX_LEAST: Duration = Duration::from_millis(100);

/// Longest constant time of a login. A machine on which a hash takes half of that is too slow.
const RUN_TIME_MAX: Duration = Duration::from_secs(8);

/// While the machine is busy, a hash may take this many times as long as measured.
const BUSY_FACTOR: u32 = 2;

/// Most logins in progress, and most sleeping refusals: one second of five hundred attempts. Each
/// holds a connection of about 20 KiB.
const LOGINS_MAX: usize = 500;

/// Most logins of unknown browsers, from the head of the request to the end of the answer: bodies
/// that arrive, logins in progress and refusals.
pub(crate) const STRANGERS_MAX: usize = LOGINS_MAX * 2;

/// The key of all clients whose address the web server in front does not report.
const NO_ADDRESS: &str = "unknown";

/// Returns the current time. Only roles read the clock.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Why a login failed on our side.
#[derive(Debug, Error)]
pub(crate) enum LoginError {
    /// Accounts can't be read or written.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    #[error("a password could not be compared")]
    Hash(#[from] JoinError),
}

pub(crate) struct Logins {
    /// The census's name.
    pub(crate) title: String,
    limiter: Arc<LoginLimiter<Accounts>>,
    log_addresses: LogAddresses,
    now: Now,
}

/// The typed data, with the browser.
pub(crate) struct Attempt {
    pub(crate) name: String,
    pub(crate) password: Password,
    pub(crate) code: String,
}

pub(crate) enum Attempted {
    /// Logged in: the cookies of session and browser.
    In { session: String, browser: String },
    /// Not logged in; the response does not reveal the reason.
    Out,
    /// Too many attempts at once, so this one was rejected without a check.
    Busy,
}

pub(crate) struct Visitor {
    /// The census's name, which every page shows.
    pub(crate) census: String,
    pub(crate) session: Session,
    pub(crate) token: Token,
    /// The token in this session's forms.
    pub(crate) form_token: String,
}

impl Logins {
    /// Opens the accounts and measures how long a hash takes.
    pub(crate) fn open(settings: &Settings, now: Now) -> Result<Self, OpenError> {
        let accounts = Accounts::open(&settings.accounts, &mut rand::rng())?;
        let limits = Limits {
            concurrency: settings.hashes,
            calls_max: LOGINS_MAX,
            ..Limits::default()
        };
        let work_time = measure(&accounts, limits)?;
        let limits = fitted(limits, work_time);
        let new = || Limiter::new(limits, WorkTime::Measured(work_time)).map(Arc::new);
        let (strangers, known_browsers) = (new()?, new()?);
        tracing::info!(
            hash_ms = u64::try_from(work_time.as_millis()).unwrap_or(u64::MAX),
            at_once = settings.hashes,
            login_ms = u64::try_from(limits.run_time.as_millis()).unwrap_or(u64::MAX),
            "password hashes measured"
        );
        let login = LoginLimits::default();
        Ok(Self {
            title: settings.title.clone(),
            limiter: Arc::new(LoginLimiter::new(
                strangers,
                known_browsers,
                login,
                accounts,
            )),
            log_addresses: settings.log_addresses,
            now,
        })
    }

    /// Tries to log in. Takes the same time whatever the outcome, except for [`Attempted::Busy`].
    pub(crate) async fn attempt(
        &self,
        headers: &HeaderMap,
        attempt: Attempt,
    ) -> Result<Attempted, LoginError> {
        let address = address(headers);
        let key = address.map_or_else(|| NO_ADDRESS.to_owned(), address_key);
        let cookie = cookies::value(headers, cookies::BROWSER).unwrap_or_default();
        let device = self.with(|accounts| accounts.known_browser(&attempt.name, cookie))?;
        let name = attempt.name.clone();
        let who = Who {
            // A known browser has its own lock, which limits its guesses. A ban of its address does
            // not lock it out.
            address: device.is_none().then_some(key.as_str()),
            user: Some(&name),
            device: device.as_deref(),
        };
        let (limiter, now) = (self.limiter.clone(), self.now.clone());
        let work = |permit| async move {
            let compared = tokio::task::spawn_blocking(move || {
                // The hash continues when the client disconnects, and so does its permit.
                let _permit = permit;
                compare(&limiter, &attempt, now())
            });
            compared.await?
        };
        let share = rand::rng().random_range(0.0..1.0);
        let at = (self.now)();
        let login = self
            .limiter
            .attempt(at, share, who, Refusals::TakeTime, work)
            .await?;
        self.report(address, &login);
        match login.call.value {
            Some(Ok(Some(accepted))) => {
                self.log_in(headers, &accepted, device.is_some().then_some(cookie))
            }
            Some(Err(error)) => Err(error),
            Some(Ok(None)) => Ok(Attempted::Out),
            None if login.call.status == Status::TooManyCalls => Ok(Attempted::Busy),
            None => Ok(Attempted::Out),
        }
    }

    /// Whether a moderator has logged in with the browser of this request before.
    pub(crate) fn is_known_browser(&self, headers: &HeaderMap) -> Result<bool, AccountsError> {
        let cookie = cookies::value(headers, cookies::BROWSER);
        cookie.map_or(Ok(false), |cookie| {
            self.with(|accounts| accounts.is_known_browser(cookie))
        })
    }

    fn log_in(
        &self,
        headers: &HeaderMap,
        accepted: &Accepted,
        known_browser: Option<&str>,
    ) -> Result<Attempted, LoginError> {
        let browser = match known_browser {
            Some(cookie) => cookie.to_owned(),
            None => {
                self.with(|accounts| accounts.browser_cookie(accepted.name(), &mut rand::rng()))?
            }
        };
        let of_browser = browser_of(&browser, headers);
        let now = (self.now)();
        let former = cookies::value(headers, cookies::SESSION).and_then(Token::parse);
        let token = self.with(|accounts| {
            if let Some(former) = former {
                accounts.log_out(&former)?;
            }
            accounts.log_in(accepted, &of_browser, now, &mut rand::rng())
        })?;
        let Some(token) = token else {
            return Ok(Attempted::Out);
        };
        tracing::info!(moderator = accepted.name(), "logged in");
        Ok(Attempted::In {
            session: token.text(),
            browser,
        })
    }

    /// Logs what an operator, or fail2ban, needs to know. The line contains no text that the client
    /// chose.
    fn report(&self, address: Option<IpAddr>, login: &Login<Accepted, LoginError>) {
        match (self.log_addresses, address) {
            (LogAddresses::Yes, Some(address)) => {
                if let Some(line) = line_about(address, login) {
                    tracing::info!("{line}");
                }
            }
            (LogAddresses::Yes, None) | (LogAddresses::No, _) => {
                if matches!(login.call.value, Some(Ok(None) | Err(_))) {
                    tracing::info!("a login failed");
                }
            }
        }
        if let Some(Began { key, until }) = &login.began {
            let kind = match key {
                Key::Address(_) => "an address is banned",
                Key::User(_) => "a user is locked",
                Key::Device { .. } => "a known browser is locked",
            };
            let until_s = until.0.as_secs();
            tracing::warn!(until_s, "{kind}: too many logins failed");
        }
    }

    /// The moderator who sends this request. `None` if they are not logged in.
    pub(crate) fn visitor(&self, headers: &HeaderMap) -> Result<Option<Visitor>, AccountsError> {
        let cookie = |name| cookies::value(headers, name);
        let (Some(token), Some(browser)) = (cookie(cookies::SESSION), cookie(cookies::BROWSER))
        else {
            return Ok(None);
        };
        let Some(token) = Token::parse(token) else {
            return Ok(None);
        };
        let (browser, now) = (browser_of(browser, headers), (self.now)());
        self.with(|accounts| {
            let session = accounts.session(&token, &browser, now)?;
            Ok(session.map(|session| Visitor {
                census: self.title.clone(),
                session,
                form_token: accounts.form_token(&token),
                token,
            }))
        })
    }

    /// Whether a form belongs to this session.
    pub(crate) fn is_own_form(&self, token: &Token, text: &str) -> bool {
        self.with(|accounts| accounts.is_form_token(token, text))
    }

    /// A new login form: the values of its cookie and its hidden field.
    pub(crate) fn new_form(&self) -> (String, String) {
        let token = Token::draw(&mut rand::rng());
        let form = self.with(|accounts| accounts.form_token(&token));
        (token.text(), form)
    }

    pub(crate) fn sessions(&self) -> Result<Vec<Session>, AccountsError> {
        let now = (self.now)();
        self.with(|accounts| accounts.sessions(now))
    }

    pub(crate) fn holds(&self) -> Result<Vec<HoldShown>, AccountsError> {
        let now = (self.now)();
        self.with(|accounts| accounts.holds(now))
    }

    pub(crate) fn metrics(&self) -> String {
        self.limiter.metrics().page()
    }

    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut Accounts) -> R) -> R {
        self.limiter.with_state(use_it)
    }
}

/// The line for fail2ban, which `deploy/fail2ban/fedicensus-console.conf` parses. `None` for a
/// successful login.
fn line_about(address: IpAddr, login: &Login<Accepted, LoginError>) -> Option<String> {
    match (login.call.status, &login.call.value) {
        (Status::Ran, Some(Ok(Some(_))) | None) => None,
        (Status::Ran, Some(Ok(None) | Err(_))) => Some(format!("login failed from {address}")),
        (status, _) => Some(format!("login refused from {address}: {}", status.as_str())),
    }
}

/// How long a hash takes when the machine is idle.
fn measure(accounts: &Accounts, limits: Limits) -> Result<Duration, AccountsError> {
    let started = tokio::time::Instant::now();
    let mut least = Duration::MAX;
    for _ in 0..CALIBRATIONS_MAX {
        let measured = accounts.hash_time(CALIBRATION_ROUNDS, || started.elapsed())?;
        least = least.min(measured);
        if fitted(limits, least).run_time == limits.run_time {
            break;
        }
    }
    Ok(least)
}

/// Limits for hashes that take this long. On a slow machine the constant time is doubled until it
/// hides what happens within a login.
fn fitted(limits: Limits, work_time: Duration) -> Limits {
    let busy = work_time.saturating_mul(BUSY_FACTOR);
    let mut run_time = limits.run_time;
    while busy.saturating_add(WAIT_MAX_LEAST) > run_time && run_time < RUN_TIME_MAX {
        run_time = run_time.saturating_mul(2);
    }
    let left = run_time.saturating_sub(busy).max(WAIT_MAX_LEAST);
    Limits {
        run_time,
        wait_max: limits.wait_max.min(left),
        ..limits
    }
}

/// Compares both factors. Takes as long as one hash, whether or not the account exists.
fn compare(
    limiter: &LoginLimiter<Accounts>,
    attempt: &Attempt,
    now: Timestamp,
) -> Result<Option<Accepted>, LoginError> {
    let candidate = limiter.with_state(|accounts| accounts.candidate(&attempt.name))?;
    let is_right = attempt.password.is(candidate.hashed())?;
    let accept =
        |accounts: &mut Accounts| accounts.accept(&candidate, is_right, &attempt.code, now);
    Ok(limiter.with_state(accept)?)
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    #[error("a password hash takes too long on this machine for logins of a constant time")]
    Unfit(#[from] Unfit),
}

/// The client's address, as the web server in front reports it. With two values, the client could
/// have chosen one of them.
fn address(headers: &HeaderMap) -> Option<IpAddr> {
    let mut values = headers.get_all("x-real-ip").iter();
    match (values.next(), values.next()) {
        (Some(one), None) => one.to_str().ok()?.trim().parse().ok(),
        (None | Some(_), _) => None,
    }
}

/// Identifies a browser: its cookie and its user agent.
fn browser_of(cookie: &str, headers: &HeaderMap) -> Vec<u8> {
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.map(|value| value.as_bytes()).unwrap_or_default();
    [cookie.as_bytes(), b"\n", agent].concat()
}

#[cfg(test)]
mod tests {
    use limiter::Call;

    use super::*;

    /// Lines for the test of fail2ban's filter.
    const COUNTED: &str = include_str!("../../../tests/fixtures/fail2ban/counted.tsv");
    const NOT_COUNTED: &str = include_str!("../../../tests/fixtures/fail2ban/not-counted.log");

    fn login(
        status: Status,
        value: Option<Result<Option<Accepted>, LoginError>>,
    ) -> Login<Accepted, LoginError> {
        let call = Call {
            status,
            value,
            times: None,
        };
        Login { call, began: None }
    }

    #[test]
    fn logins_take_longer_on_a_slow_machine_and_none_is_fast_enough_for_any() {
        let milliseconds = Duration::from_millis;
        let check = |hash, run_time, wait_max| {
            let limits = fitted(Limits::default(), milliseconds(hash));
            let expect = (milliseconds(run_time), milliseconds(wait_max));
            assert_eq!((limits.run_time, limits.wait_max), expect, "{hash} ms");
            limits.check(milliseconds(hash))
        };
        assert!(check(60, 1000, 600).is_ok());
        assert!(check(450, 1000, 100).is_ok());
        assert!(check(451, 2000, 600).is_ok());
        // Measured on emulated processors.
        assert!(check(1011, 4000, 600).is_ok());
        assert!(check(3900, 8000, 200).is_ok());
        assert!(check(7950, 8000, 100).is_err());
    }

    #[test]
    fn fail2bans_filter_is_tried_on_the_lines_that_are_logged() {
        let address = "192.0.2.7".parse().unwrap();
        let failed = line_about(address, &login(Status::Ran, Some(Ok(None)))).unwrap();
        assert!(COUNTED.contains(&failed), "{failed}");
        for status in Status::ALL {
            let Some(line) = line_about(address, &login(status, None)) else {
                assert_eq!(status, Status::Ran);
                continue;
            };
            let is_the_addresss_fault = matches!(status, Status::BannedIp | Status::RateLimited);
            // For any address.
            let (_, end) = line.split_once("192.0.2.7").unwrap();
            assert_eq!(COUNTED.contains(end), is_the_addresss_fault, "{line}");
            assert!(is_the_addresss_fault || NOT_COUNTED.contains(end), "{line}");
        }
    }
}
