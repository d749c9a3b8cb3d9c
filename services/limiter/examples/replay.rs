//! Replays logins on a virtual clock: one JSON event per line on stdin, one answer per line on
//! stdout.
//!
//! An event is `{"t":0.5,"ip":"192.0.2.1","user":"ada","takes_s":0.2,"result":true}`: its time,
//! address and user, how long its computation takes, and the result (`true`, `false` or `"error"`).
//! `ip` and `user` may be `null`; `device`, the name in a known browser's cookie, and
//! `drop_immediately` are optional. Events are ordered by `t`. The answer has the event's `t`, how
//! it ended, and when.

use std::convert::Infallible;
use std::io::{BufRead as _, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use limiter::login::record::{Rules, Timestamp};
use limiter::login::state::Memory;
use limiter::login::{Refusals, Who};
use limiter::{Limiter, Limits, LoginLimiter, LoginLimits, WorkTime, address_key};
use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until};

/// Start of the replay: an arbitrary time well after the epoch.
const START: Timestamp = Timestamp(Duration::from_secs(1_000_000_000));

/// Longest replay: a hundred days.
const SECONDS_MAX: f64 = 8_640_000.0;

/// Most addresses and users that are remembered.
const RECORDS_MAX: usize = 100_000;

/// Replays logins on a virtual clock: NDJSON events on stdin, NDJSON answers on stdout.
#[derive(Debug, Parser)]
struct Settings {
    /// D: how long every call takes at least
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    constant_runtime_s: f64,
    /// J: the most that is added to it; with 0 a replay comes out the same each time
    #[arg(long, default_value_t = 0.1, value_parser = seconds)]
    jitter_s: f64,
    /// K: computations at once
    #[arg(long, default_value_t = 4)]
    concurrency: usize,
    /// W: longest wait for one of the K
    #[arg(long, default_value_t = 0.6, value_parser = seconds)]
    max_wait_s: f64,
    /// B: what a computation takes, by measurement before; a fifth of D when not given. With
    /// --original it is the first call's time instead
    #[arg(long, value_parser = seconds)]
    work_time_s: Option<f64>,
    /// Calls in progress
    #[arg(long, default_value_t = 100_000)]
    max_calls: usize,
    /// Attempts of an address within a minute; one more bans it
    #[arg(long, default_value_t = 6)]
    max_attempts_per_minute: u32,
    /// How long a ban lasts; the first of an address, unless --original is given
    #[arg(long, default_value_t = 1800.0, value_parser = seconds)]
    ban_duration_s: f64,
    /// The longest ban of an address that comes back
    #[arg(long, default_value_t = 86_400.0, value_parser = seconds)]
    max_ban_duration_s: f64,
    /// Failures of a user within a minute; one more locks the user
    #[arg(long, default_value_t = 6)]
    max_user_failures_per_minute: u32,
    /// Failures of a user within an hour. One more locks the user. The original has no such limit
    #[arg(long, default_value_t = 30)]
    max_user_failures_per_hour: u32,
    /// How long a lock lasts
    #[arg(long, default_value_t = 600.0, value_parser = seconds)]
    lock_duration_s: f64,
    /// Time between two clean-ups
    #[arg(long, default_value_t = 900.0, value_parser = seconds)]
    cleanup_interval_s: f64,
    /// The original's rules: bans of a fixed length, each IPv6 address on its own, failures that
    /// count from the end of their call, no check of the settings, no queue bound before the first
    /// call has ended
    #[arg(long)]
    original: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    t: f64,
    ip: Option<String>,
    user: Option<String>,
    #[serde(default)]
    device: Option<String>,
    takes_s: f64,
    result: Computed,
    #[serde(default)]
    drop_immediately: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Computed {
    Is(bool),
    Failed(Error),
}

#[derive(Debug, Deserialize)]
enum Error {
    #[serde(rename = "error")]
    Error,
}

fn main() -> Result<()> {
    let settings = Settings::parse();
    let limiter = Arc::new(limiter(&settings)?);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build()?;
    runtime.block_on(replay(&settings, limiter))
}

async fn replay(settings: &Settings, limiter: Arc<LoginLimiter<Memory>>) -> Result<()> {
    let start = Instant::now();
    let mut jitter = Jitter(0x9E37_79B9_7F4A_7C15);
    let mut answers = Vec::new();
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let event: Event =
            serde_json::from_str(&line).with_context(|| format!("line {}", number + 1))?;
        let comes = start + span(event.t).with_context(|| format!("line {}", number + 1))?;
        ensure!(
            comes >= Instant::now(),
            "line {}: earlier than the one before",
            number + 1
        );
        sleep_until(comes).await;
        let address = event.ip.as_deref().map(|ip| address(ip, settings.original));
        let (limiter, share) = (Arc::clone(&limiter), jitter.next());
        let answer = tokio::spawn(async move {
            let status = attempt(&limiter, &event, address.as_deref(), share).await;
            (event.t, status, start.elapsed())
        });
        // Lets the call begin before the next event.
        tokio::task::yield_now().await;
        answers.push(answer);
    }
    let mut out = std::io::stdout().lock();
    for answer in answers {
        let (t, status, ended) = answer.await?;
        let answer = serde_json::json!({ "t": t, "status": status, "ended": ended.as_secs_f64() });
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

async fn attempt(
    limiter: &LoginLimiter<Memory>,
    event: &Event,
    address: Option<&str>,
    share: f64,
) -> &'static str {
    let who = Who {
        address,
        user: event.user.as_deref(),
        device: event.device.as_deref(),
    };
    let refusals = match event.drop_immediately {
        true => Refusals::AtOnce,
        false => Refusals::TakeTime,
    };
    let takes = span(event.takes_s).unwrap_or_default();
    let work = |permit| async move {
        sleep(takes).await;
        drop(permit);
        match event.result {
            Computed::Is(right) => Ok(right.then_some(())),
            Computed::Failed(Error::Error) => Err(()),
        }
    };
    let now = START.plus(span(event.t).unwrap_or_default());
    let login: Result<_, Infallible> = limiter.attempt(now, share, who, refusals, work).await;
    match login {
        Ok(login) => login.call.status.as_str(),
    }
}

fn limiter(settings: &Settings) -> Result<LoginLimiter<Memory>> {
    let limits = Limits {
        run_time: span(settings.constant_runtime_s)?,
        jitter: span(settings.jitter_s)?,
        concurrency: settings.concurrency,
        wait_max: span(settings.max_wait_s)?,
        calls_max: settings.max_calls,
    };
    let work_time = match (settings.original, settings.work_time_s) {
        (true, _) => WorkTime::FirstCall,
        (false, Some(work_time_s)) => WorkTime::Measured(span(work_time_s)?),
        (false, None) => WorkTime::Measured(limits.run_time / 5),
    };
    let login = LoginLimits {
        attempts_per_minute: settings.max_attempts_per_minute,
        ban: span(settings.ban_duration_s)?,
        rules: match settings.original {
            true => Rules::Original,
            false => Rules::Ours {
                longest_ban: span(settings.max_ban_duration_s)?,
            },
        },
        failures_per_minute: settings.max_user_failures_per_minute,
        failures_per_hour: settings.max_user_failures_per_hour,
        lock: span(settings.lock_duration_s)?,
        clean_up_every: span(settings.cleanup_interval_s)?,
    };
    let limiter = Arc::new(Limiter::new(limits, work_time)?);
    // The original has no known browsers.
    let known_browsers = match settings.original {
        true => Arc::clone(&limiter),
        false => Arc::new(Limiter::new(limits, work_time)?),
    };
    let memory = Memory::new(RECORDS_MAX);
    Ok(LoginLimiter::new(limiter, known_browsers, login, memory))
}

/// The key of an address. A text that is not an address is its own key, as in the original.
fn address(text: &str, original: bool) -> String {
    match text.parse::<IpAddr>() {
        Ok(address) if !original => address_key(address),
        _ => text.to_owned(),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    span(seconds).map_err(|error| error.to_string())?;
    Ok(seconds)
}

fn span(seconds: f64) -> Result<Duration> {
    ensure!(
        (0.0..=SECONDS_MAX).contains(&seconds),
        "{seconds} is not within 0 to {SECONDS_MAX} seconds"
    );
    // The virtual clock has milliseconds.
    let millis = Duration::from_secs_f64(seconds)
        .as_nanos()
        .div_ceil(1_000_000);
    Ok(Duration::from_millis(u64::try_from(millis)?))
}

/// Shares of the jitter by splitmix64. In a replay they may be predictable.
struct Jitter(u64);

impl Jitter {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let bits = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default();
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }
}
