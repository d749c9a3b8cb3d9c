//! Commands that only read. None needs the daemon.

pub(super) mod hosts;

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ::push::process::Node;
use anyhow::Context;
use census::time::{Timestamp, rfc3339};
use gateway::GatewayClient;
use launcher::LauncherClient;
use protocol::{Host, pasted};

use super::ask::{Progress, names_in};
use super::{FAILED, OK, Part, UNAVAILABLE, complain, put, say, told_once};
use crate::admit::gate::why_it_waits;
use crate::config::{Config, Origin, Values, markdown};
use crate::daemon::{LiveState, troubles};
use crate::ground::clock::{Clock, SystemClock};
use crate::inspect::compare;
use crate::inspect::explain::{Explanation, look_up};
use crate::inspect::status;
use crate::serve::control::{self, Answer, Request};

/// A part that does not answer within this time is unhealthy.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn settings(values: &Values, as_markdown: bool) -> anyhow::Result<u8> {
    if as_markdown {
        return put(markdown().as_bytes()).map(|()| OK);
    }
    say("# As this command reads them. Running parts keep those that they were started with.")?;
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
    // Half a profile would be read as one that allows less, so a failed write must fail the
    // command.
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
    let second = config.second_gateway.clone().map(GatewayClient::new);
    status.ask_parts(&gateway, second.as_ref(), &launcher).await;
    say(&if json {
        serde_json::to_string(&status.json()?)?
    } else if std::io::stdout().is_terminal() {
        // https://no-color.org: any value but an empty one turns colour off.
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        status.terminal(&config.data_dir, !no_colour)
    } else {
        status.text(&config.data_dir)
    })?;
    let trouble = status.daemon.as_ref().and_then(worst);
    Ok(match (status.missing().as_slice(), trouble) {
        ([], None) => OK,
        ([], Some(trouble)) => complain(&trouble, UNAVAILABLE),
        (missing, _) => complain(&format!("missing: {}", missing.join(", ")), UNAVAILABLE),
    })
}

async fn live(config: &Config) -> anyhow::Result<LiveState> {
    let asking = async {
        let conversation = control::ask(&config.control_socket(), &Request::Live {}).await?;
        conversation
            .context("no daemon is running here")?
            .next()
            .await
    };
    match tokio::time::timeout(ANSWER_WITHIN, asking)
        .await
        .context("the daemon does not answer")??
    {
        Answer::Live(live) => Ok(*live),
        other => anyhow::bail!("the daemon's answer is unexpected: {other:?}"),
    }
}

pub(super) fn explain(config: &Config, hosts: Vec<String>, json: bool) -> anyhow::Result<u8> {
    let reader = store::open_read_only(&config.database())?;
    let now = SystemClock.now();
    let deny = config.admission.deny_list()?;
    let (mut explanations, mut code) = (Vec::new(), OK);
    for name in names(hosts)? {
        match Host::parse(pasted(&name)) {
            Ok(host) => explanations.push(look_up(&reader, &host, &deny, now, config.calendar)?),
            Err(error) => code = complain(&format!("{name:?} is no host name: {error}"), FAILED),
        }
    }
    if json {
        say(&serde_json::to_string(&explanations)?)?;
    } else {
        let texts = explanations.iter().map(Explanation::text);
        let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
        if !texts.is_empty() {
            say(&texts.join("\n\n"))?;
        }
    }
    Ok(code)
}

/// Longest wait for the row of a check that has just ended. A failure waits longer, until another
/// host confirms it.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The explanation of a host that has just been checked, as text.
pub(super) async fn explained(config: &Config, host: &Host) -> anyhow::Result<String> {
    let reader = store::open_read_only(&config.database())?;
    let began = Instant::now();
    while began.elapsed() < WRITTEN_WITHIN {
        if reader.record(host)?.is_none_or(|stored| !stored.in_flight) {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let deny = config.admission.deny_list()?;
    let now = SystemClock.now();
    Ok(look_up(&reader, host, &deny, now, config.calendar)?.text())
}

pub(super) async fn compare(config: &Config, list: &Path, json: bool) -> anyhow::Result<u8> {
    let theirs = match list.to_str().filter(|text| text.starts_with("https://")) {
        Some(url) => names_of_source(config, url).await?,
        None => names_in(list)?,
    };
    let rows = dump::standing_rows(&::publish::current(&config.public_dir))?
        .with_context(|| format!("no list is published in {}", config.public_dir.display()))?;
    let reader = store::open_read_only(&config.database())?;
    let now = SystemClock.now();
    let deny = config.admission.deny_list()?;
    let (progress, mut looked_up) = (Progress::begin("looking up names"), 0);
    let comparison = compare::compare(
        rows.map(|row| Ok::<_, anyhow::Error>(row?.host)),
        &theirs,
        |host| {
            looked_up += 1;
            progress.done(looked_up);
            let explanation = look_up(&reader, host, &deny, now, config.calendar)?;
            Ok((explanation.state, explanation.why))
        },
    )?;
    drop(progress);
    say(&if json {
        serde_json::to_string(&comparison)?
    } else {
        comparison.text()
    })?;
    Ok(OK)
}

/// The names of one of the operator's sources; the daemon reads it.
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
            other => anyhow::bail!("the daemon's answer is unexpected: {other:?}"),
        }
    }
}

/// The hosts; `-` is replaced by the lines of standard input.
fn names(hosts: Vec<String>) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for host in hosts {
        if host != "-" {
            names.push(host);
            continue;
        }
        for line in std::io::stdin().lines() {
            let line = line?.trim().to_owned();
            names.extend((!line.is_empty()).then_some(line));
        }
    }
    Ok(names)
}

pub(super) async fn health(config: &Config, part: Part) -> anyhow::Result<u8> {
    let trouble = match part {
        Part::Run => match live(config).await {
            Ok(live) => worst(&live),
            Err(error) => Some(format!("daemon: {}", told_once(&error))),
        },
        Part::Gateway => gateway_trouble(&config.gateway_settings).await,
        Part::SecondGateway => gateway_trouble(&config.second_gateway_settings).await,
        Part::Launcher => match LauncherClient::socket(config.launcher_socket.clone())
            .status()
            .await
        {
            Ok(status) => status.trouble.map(|trouble| format!("launcher: {trouble}")),
            Err(error) => Some(format!("launcher: {error}")),
        },
        Part::Intake => http_trouble("intake", &config.intake_settings.socket).await,
        Part::Console => http_trouble("console", &config.console_settings.socket).await,
        Part::Push => push_trouble(config, Node::Push).await,
        Part::PushEndpoint => push_trouble(config, Node::Endpoint).await,
    };
    Ok(match trouble {
        None => {
            say("healthy")?;
            OK
        }
        Some(trouble) => complain(&trouble, UNAVAILABLE),
    })
}

async fn gateway_trouble(settings: &gateway::Settings) -> Option<String> {
    let client = GatewayClient::new(settings.control_socket.clone());
    let status = client.status().await;
    status.err().map(|error| format!("gateway: {error}"))
}

async fn push_trouble(config: &Config, node: Node) -> Option<String> {
    http_trouble("push service", config.push_settings.socket_of(node)).await
}

async fn http_trouble(name: &str, socket: &Path) -> Option<String> {
    let health = local_socket::http::health(socket).await;
    health.err().map(|error| format!("{name}: {error}"))
}

fn worst(live: &LiveState) -> Option<String> {
    troubles(live).first().map(ToString::to_string)
}

const WAITING_PAGE: u32 = 1000;

#[derive(Debug, serde::Serialize)]
struct WaitingShown {
    name: String,
    why: &'static str,
    first_named: String,
    /// Approximate number of independent sources.
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
