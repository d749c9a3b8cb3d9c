//! Commands that only read: they never need the daemon.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use census::time::{Timestamp, rfc3339};
use gateway::GatewayClient;
use launcher::LauncherClient;
use protocol::Host;

use super::ask::names_in;
use super::{OK, Part, UNAVAILABLE, complain, put, say, told_once};
use crate::config::{Config, Origin, Values, markdown};
use crate::daemon::LiveState;
use crate::inspect::compare;
use crate::inspect::explain::{bare_reason, look_up};
use crate::inspect::status;
use crate::names::gate::why_it_waits;
use crate::serve::control::{self, Answer, Request};
use crate::services::clock::{Clock, SystemClock};

/// The loop goes round every second; an answer of the gateway or the launcher that it waits for may take three quarters of a minute.
const ROUND_WITHIN: Duration = Duration::from_secs(120);

/// A part that does not answer in this time is not healthy.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn settings(values: &Values, as_markdown: bool) -> anyhow::Result<u8> {
    if as_markdown {
        return put(markdown().as_bytes()).map(|()| OK);
    }
    for (key, value, origin) in values.iter() {
        let from = if *origin == Origin::Default {
            String::new()
        } else {
            format!("   # {origin}")
        };
        say(&format!("{key} = {value:?}{from}"))?;
    }
    Ok(OK)
}

pub(super) fn seccomp_profile() -> anyhow::Result<u8> {
    use std::io::Write as _;
    // Half a file would be taken for a profile that allows less: what could not be written must not look done.
    let mut stdout = std::io::stdout();
    stdout.write_all(launcher::seccomp::PROFILE.as_bytes())?;
    stdout.flush()?;
    Ok(OK)
}

pub(super) async fn status(config: &Config, json: bool) -> anyhow::Result<u8> {
    let reader = store::open_read_only(&config.database())?;
    let now = SystemClock.now();
    let mut status = tokio::task::spawn_blocking(move || status::read(&reader, now)).await??;
    status.daemon = live(config).await.ok();
    let gateway = GatewayClient::new(config.gateway_socket.clone());
    let launcher = LauncherClient::socket(config.launcher_socket.clone());
    status.ask_parts(&gateway, &launcher).await;
    say(&if json {
        serde_json::to_string(&status)?
    } else {
        status.text(&config.data_dir)
    })?;
    Ok(OK)
}

async fn live(config: &Config) -> anyhow::Result<LiveState> {
    let asking = async {
        let conversation = control::ask(&config.control_socket(), &Request::Live {}).await?;
        conversation.context("no daemon runs here")?.next().await
    };
    match tokio::time::timeout(ANSWER_WITHIN, asking)
        .await
        .context("the daemon does not answer")??
    {
        Answer::Live(live) => Ok(live),
        other => anyhow::bail!("the daemon answered out of turn: {other:?}"),
    }
}

pub(super) fn explain(config: &Config, hosts: Vec<String>, json: bool) -> anyhow::Result<u8> {
    let reader = store::open_read_only(&config.database())?;
    let now = SystemClock.now();
    let deny = config.admission.deny_list()?;
    let mut explanations = Vec::new();
    for name in names(hosts)? {
        let host = Host::parse(&name).with_context(|| format!("{name:?} is no host name"))?;
        explanations.push(look_up(&reader, &host, &deny, now, config.calendar)?);
    }
    if json {
        say(&serde_json::to_string(&explanations)?)?;
    } else {
        for explanation in &explanations {
            say(&explanation.text())?;
        }
    }
    Ok(OK)
}

pub(super) async fn compare(config: &Config, list: &Path, json: bool) -> anyhow::Result<u8> {
    let theirs = match list.to_str().filter(|text| text.starts_with("https://")) {
        Some(url) => names_of_source(config, url).await?,
        None => names_in(list)?,
    };
    let rows = dump::standing_rows(&config.public_dir)?
        .with_context(|| format!("no list is published in {}", config.public_dir.display()))?;
    let reader = store::open_read_only(&config.database())?;
    let now = SystemClock.now();
    let deny = config.admission.deny_list()?;
    let comparison = compare::compare(
        rows.map(|row| Ok::<_, anyhow::Error>(row?.host)),
        &theirs,
        |host| {
            let explanation = look_up(&reader, host, &deny, now, config.calendar)?;
            Ok((explanation.state, explanation.why))
        },
    )?;
    say(&if json {
        serde_json::to_string(&comparison)?
    } else {
        comparison.text()
    })?;
    Ok(OK)
}

/// The names of one of the operator's sources, which the daemon reads.
async fn names_of_source(config: &Config, url: &str) -> anyhow::Result<Vec<String>> {
    let url = url.to_owned();
    let request = Request::SourceNames { url };
    let conversation = control::ask(&config.control_socket(), &request).await?;
    let mut conversation = conversation.context(control::NO_DAEMON)?;
    let mut names = Vec::new();
    loop {
        match conversation.next().await? {
            Answer::Names(some) => names.extend(some.into_iter().map(String::from)),
            Answer::Done(_) => return Ok(names),
            Answer::Failed(why) => anyhow::bail!("the list could not be read: {why}"),
            other => anyhow::bail!("the daemon answered out of turn: {other:?}"),
        }
    }
}

fn names(hosts: Vec<String>) -> anyhow::Result<Vec<String>> {
    if hosts.iter().any(|host| host == "-") {
        let lines: Result<Vec<_>, _> = std::io::stdin().lines().collect();
        return Ok(lines?
            .into_iter()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect());
    }
    Ok(hosts)
}

pub(super) async fn health(config: &Config, part: Part) -> anyhow::Result<u8> {
    let trouble = match part {
        Part::Run => match live(config).await {
            Ok(live) => stands_still(&live),
            Err(error) => Some(format!("daemon: {}", told_once(&error))),
        },
        Part::Gateway => GatewayClient::new(config.gateway_socket.clone())
            .status()
            .await
            .err()
            .map(|error| format!("gateway: {error}")),
        Part::Launcher => match LauncherClient::socket(config.launcher_socket.clone())
            .status()
            .await
        {
            Ok(status) => status.trouble.map(|trouble| format!("launcher: {trouble}")),
            Err(error) => Some(format!("launcher: {error}")),
        },
        Part::Intake => local_socket::http::health(&config.intake_settings.socket)
            .await
            .err()
            .map(|error| format!("intake: {error}")),
        Part::Console => local_socket::http::health(&config.console_settings.socket)
            .await
            .err()
            .map(|error| format!("console: {error}")),
        Part::Push => local_socket::http::health(&config.push_settings.socket)
            .await
            .err()
            .map(|error| format!("push service: {error}")),
    };
    Ok(match trouble {
        None => {
            say("healthy")?;
            OK
        }
        Some(trouble) => complain(&trouble, UNAVAILABLE),
    })
}

fn stands_still(live: &LiveState) -> Option<String> {
    let still = Timestamp(live.now_ms).since(Timestamp(live.last_round_ms));
    (still > ROUND_WITHIN)
        .then(|| format!("daemon: its loop has stood still for {} s", still.as_secs()))
}

/// A host as `status --hosts` shows it.
#[derive(serde::Serialize)]
struct Row {
    host: Host,
    state: &'static str,
    verdict: Option<String>,
    /// With `dead`: its reason in the wire's word.
    reason: Option<String>,
    /// The reason with all that was kept of it.
    detail: Option<String>,
    software: Option<String>,
    /// NodeInfo's `openRegistrations`. `None` if it did not say.
    open_registrations: Option<bool>,
    hidden: bool,
}

/// Writes the array row by row: it holds all hosts, and memory must not.
pub(super) fn hosts(config: &Config) -> anyhow::Result<u8> {
    use std::io::Write as _;
    let reader = store::open_read_only(&config.database())?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut separator = "[\n";
    let mut failed = None;
    reader.each(|record, last| {
        let row = Row {
            host: record.host.clone(),
            state: record.state.name().as_str(),
            verdict: last.map(|entry| entry.verdict.clone()),
            reason: last.and_then(bare_reason),
            detail: last.and_then(|entry| entry.reason.clone()),
            software: record.software.clone(),
            open_registrations: record.open_registrations,
            hidden: record.hidden,
        };
        let written = serde_json::to_string(&row)
            .map_err(anyhow::Error::from)
            .and_then(|row| Ok(write!(out, "{separator}{row}")?));
        failed = failed.take().or(written.err());
        separator = ",\n";
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    writeln!(out, "{}]", if separator == "[\n" { "[" } else { "\n" })?;
    Ok(OK)
}

/// Names that are read at once.
const WAITING_PAGE: u32 = 1000;

/// A name as JSON.
#[derive(Debug, serde::Serialize)]
struct WaitingShown {
    name: String,
    why: &'static str,
    first_named: String,
    /// Independent sources, about.
    named_by: u32,
}

pub(super) fn waiting(config: &Config, json: bool) -> anyhow::Result<u8> {
    let reader = store::open_read_only(&config.database())?;
    let (mut after, mut shown) = (String::new(), Vec::new());
    loop {
        let page = reader.waiting_names(&after, WAITING_PAGE)?;
        let Some((last, _)) = page.last() else { break };
        after.clone_from(last);
        shown.extend(page.into_iter().map(|(name, waiter)| {
            let named_ms = i64::try_from(waiter.first_named_s).unwrap_or(i64::MAX);
            WaitingShown {
                name,
                why: why_it_waits(waiter.room),
                first_named: rfc3339(Timestamp(named_ms.saturating_mul(1000))),
                named_by: waiter.named_by.0.count_ones(),
            }
        }));
    }
    if json {
        say(&serde_json::to_string(&shown)?)?;
        return Ok(OK);
    }
    for row in &shown {
        say(&format!(
            "{}: {}; named by about {} since {}",
            row.name, row.why, row.named_by, row.first_named
        ))?;
    }
    if shown.is_empty() {
        say("no name waits")?;
    }
    Ok(OK)
}
