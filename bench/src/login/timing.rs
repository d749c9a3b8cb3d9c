//! How long refusals take, by their reason.
//!
//! Each round sends logins of all kinds at once, in random order and more than the queue holds, so
//! that all kinds meet the same load. Each sample has its own address, by which the console's log
//! shows the reason of its refusal.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use accounts::{Accounts, Password};
use anyhow::{Context as _, Result, ensure};
use bench::shared::role::Role;
use chart::{Chart, Line, Values};
use limiter::login::record::Timestamp;
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use tokio::process::Command;

use super::client::Way;
use super::samples::{minima, probability, quantile, sorted};
use super::say;

/// Logins of each kind in a round.
const BANNED: usize = 3;
const LOCKED: usize = 3;
const RIGHT_USER: usize = 9;
const UNKNOWN_USER: usize = 9;

/// Attempts that ban an address, or failures that lock a user.
const ONE_TOO_MANY: u8 = 7;

/// Least duration of a login.
const CONSTANT_TIME_S: f64 = 1.0;

/// Two samples differ if the probability is below this.
const P_MIN: f64 = 0.01;

const KINDS: [&str; 5] = [
    "right user, wrong password",
    "unknown user",
    "banned address",
    "locked user",
    "overload",
];

struct Sample {
    user: String,
    kind: &'static str,
    from: Ipv4Addr,
}

pub(crate) async fn measure(samples: usize, plot: Option<&Path>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    // In each round, some passwords are compared and the others are refused.
    let users = samples * 4;
    say(&format!("{users} accounts are made"))?;
    make_accounts(&folder.path().join("accounts.db"), users)?;
    let console = start(folder.path()).await?;
    let way = Way::socket(&folder.path().join("console-http/http.sock"));
    let banned = Ipv4Addr::new(10, 255, 0, 1);
    prepare(&way, banned).await?;
    let mut taken: BTreeMap<Ipv4Addr, (&'static str, f64)> = BTreeMap::new();
    let mut of_banned = Vec::new();
    let mut next = 0_u32;
    let mut user = 0;
    let form = way.login_form(banned).await?;
    let began = Instant::now();
    while user + RIGHT_USER <= users && !is_enough(&found(&console, &taken, &of_banned)?, samples) {
        let mut round = Vec::new();
        let mut add = |count: usize, kind: &'static str, mut name: Box<dyn FnMut() -> String>| {
            for _ in 0..count {
                next += 1;
                let from = match kind {
                    "banned address" => banned,
                    _ => Ipv4Addr::from(0x0a00_0000 + next),
                };
                let user = name();
                round.push(Sample { user, kind, from });
            }
        };
        let first = user;
        add(
            RIGHT_USER,
            KINDS[0],
            Box::new({
                let mut number = first;
                move || {
                    number += 1;
                    format!("user{}", number - 1)
                }
            }),
        );
        user += RIGHT_USER;
        add(
            UNKNOWN_USER,
            KINDS[1],
            Box::new(|| {
                let number: u64 = rand::rng().random();
                format!("nobody{number}")
            }),
        );
        add(BANNED, KINDS[2], Box::new(|| "locked".to_owned()));
        add(LOCKED, KINDS[3], Box::new(|| "locked".to_owned()));
        round.shuffle(&mut rand::rng());
        for (from, kind, seconds) in send(&way, &form, round).await? {
            if kind == "banned address" {
                of_banned.push(seconds);
            } else {
                taken.insert(from, (kind, seconds));
            }
        }
    }
    let found = found(&console, &taken, &of_banned)?;
    say(&format!("{:.0} s", began.elapsed().as_secs_f64()))?;
    let least = report(&found)?;
    if let Some(plot) = plot {
        std::fs::write(plot, draw(&found)?)?;
    }
    console.stop().await?;
    ensure!(least >= P_MIN, "a pair of samples differs: p = {least:.4}");
    Ok(())
}

async fn send(
    way: &Way,
    form: &(Vec<(String, String)>, String),
    round: Vec<Sample>,
) -> Result<Vec<(Ipv4Addr, &'static str, f64)>> {
    let sending = round.into_iter().map(|sample| {
        let (way, (cookies, token)) = (way.clone(), form.clone());
        tokio::spawn(async move {
            let Sample { user, kind, from } = sample;
            let body = format!("form={token}&name={user}&password=wrong+password&code=000000");
            let began = Instant::now();
            let reply = way.post(from, "/login", &cookies, &body).await?;
            let seconds = began.elapsed().as_secs_f64();
            ensure!(reply.status == 403, "{}", reply.text);
            Ok((from, kind, seconds))
        })
    });
    let mut done = Vec::new();
    for sent in sending.collect::<Vec<_>>() {
        done.push(sent.await??);
    }
    Ok(done)
}

/// The reason of each sample's refusal, from the console's log.
fn found(
    console: &Role,
    taken: &BTreeMap<Ipv4Addr, (&'static str, f64)>,
    of_banned: &[f64],
) -> Result<BTreeMap<&'static str, Vec<f64>>> {
    let log = std::fs::read_to_string(console.log())?;
    let mut found: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    found.insert(KINDS[2], of_banned.to_vec());
    for line in log.lines() {
        let (text, failed) = match (
            line.split_once("login failed from "),
            line.split_once("login refused from "),
        ) {
            (Some((_, text)), _) => (text, true),
            (None, Some((_, text))) => (text, false),
            (None, None) => continue,
        };
        let (address, status) = text.split_once(": ").unwrap_or((text, ""));
        let Some((kind, seconds)) = address
            .trim()
            .parse()
            .ok()
            .and_then(|from| taken.get(&from))
        else {
            continue;
        };
        let kind = match (failed, status.trim()) {
            (true, _) | (false, "locked-user") => kind,
            (false, "wait-limit-full" | "exceeded-max-wait") => KINDS[4],
            (false, other) => anyhow::bail!("{kind} was refused for {other}"),
        };
        found.entry(kind).or_default().push(*seconds);
    }
    Ok(found)
}

fn is_enough(found: &BTreeMap<&'static str, Vec<f64>>, samples: usize) -> bool {
    KINDS
        .iter()
        .all(|kind| found.get(kind).is_some_and(|found| found.len() >= samples))
}

/// Prints both tables. Returns the lowest probability of a pair.
fn report(found: &BTreeMap<&'static str, Vec<f64>>) -> Result<f64> {
    say("\n| refusal | samples | least s | median s | most s |\n|---|---|---|---|---|")?;
    for kind in KINDS {
        let sample = found.get(kind).map(Vec::as_slice).unwrap_or_default();
        say(&format!(
            "| {kind} | {} | {:.4} | {:.4} | {:.4} |",
            sample.len(),
            quantile(sample, 0.0),
            quantile(sample, 0.5),
            quantile(sample, 1.0)
        ))?;
    }
    let mut least = 1.0_f64;
    say("\n| pair | p, all | p, minima of ten |\n|---|---|---|")?;
    for (place, one) in KINDS.iter().enumerate() {
        for other in KINDS.iter().skip(place + 1) {
            let empty = Vec::new();
            let (first, second) = (
                found.get(one).unwrap_or(&empty),
                found.get(other).unwrap_or(&empty),
            );
            let all = probability(first, second);
            let of_minima = probability(&minima(first), &minima(second));
            say(&format!("| {one} / {other} | {all:.3} | {of_minima:.3} |"))?;
            least = least.min(all).min(of_minima);
        }
    }
    Ok(least)
}

fn draw(found: &BTreeMap<&'static str, Vec<f64>>) -> Result<String> {
    let lines = KINDS.iter().map(|kind| {
        let sample = sorted(found.get(kind).map(Vec::as_slice).unwrap_or_default());
        let count = sample.len() as f64;
        let points = sample.iter().enumerate();
        Line {
            label: kind,
            points: points
                .map(|(place, seconds)| {
                    let late_ms = (seconds - CONSTANT_TIME_S) * 1000.0;
                    (late_ms, (place + 1) as f64 / count)
                })
                .collect(),
        }
    });
    Chart {
        title: "Share of refused logins that were answered",
        across: "milliseconds after the constant time of a second",
        values: Values::FromZero,
        target: None,
        lines: lines.collect(),
    }
    .svg()
}

fn make_accounts(path: &Path, users: usize) -> Result<()> {
    let mut accounts = Accounts::open(path, &mut rand::rng())?;
    let password = || Password::new("correct horse".to_owned());
    let names = (0..users).map(|number| format!("user{number}"));
    for name in names.chain(["locked".to_owned()]) {
        accounts.add(&name, &password(), Timestamp::default(), &mut rand::rng())?;
    }
    Ok(())
}

async fn start(folder: &Path) -> Result<Role> {
    std::fs::create_dir_all(folder.join("console-http"))?;
    let mut program = std::env::current_exe()?;
    program.set_file_name("fedicensus");
    let mut command = Command::new(program);
    command
        .arg("console")
        .env("FEDICENSUS_DATA_DIR", folder)
        .env("FEDICENSUS_RUN_DIR", folder)
        .env("FEDICENSUS_CONSOLE_LOG_ADDRESSES", "true");
    let mut console = Role::start("console", &mut command, folder)?;
    let socket = folder.join("console-http/http.sock");
    let serving = console.listens_on(&socket);
    tokio::time::timeout(Duration::from_secs(60), serving)
        .await
        .context("the console does not serve")??;
    Ok(console)
}

/// Bans an address and locks a user.
async fn prepare(way: &Way, banned: Ipv4Addr) -> Result<()> {
    let form = way.login_form(banned).await?;
    let attempts = (0..ONE_TOO_MANY).map(|_| Sample {
        user: "unknown".to_owned(),
        kind: KINDS[2],
        from: banned,
    });
    send(way, &form, attempts.collect()).await?;
    let failures = (0..ONE_TOO_MANY).map(|number| Sample {
        user: "locked".to_owned(),
        kind: KINDS[3],
        from: Ipv4Addr::new(10, 254, 0, number),
    });
    send(way, &form, failures.collect()).await?;
    Ok(())
}
