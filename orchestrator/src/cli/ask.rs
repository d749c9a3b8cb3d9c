//! Commands that write. They ask the daemon; without a daemon, they open the database exclusively
//! and do the work themselves.

use std::io::{IsTerminal, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::publish::Cancel;
use anyhow::{Context, bail};
use census::schedule::asks_peers;
use census::state::Record;
use protocol::egress::Wish;
use protocol::limits::TEXT_BYTES_MAX;
use protocol::order::AskPeers;
use protocol::{Host, escaped, pasted};
use scheduler::command::Start;
use scheduler::event::{CheckNumber, CheckOutcome, Trigger};
use serde_json::json;

use super::show::explained;
use super::{FAILED, OK, UNAVAILABLE, complain, input_name, say};
use crate::admit::gate::Brought;
use crate::check::commit_verdict::commit_verdict;
use crate::check::services::Services;
use crate::check::slot_queue::SlotQueue;
use crate::check::{self, Check};
use crate::config::Config;
use crate::ground::clock::{Clock, Random, SystemClock};
use crate::ground::fault::Fault;
use crate::publish::round::Round;
use crate::publish::{Occasion, signature};
use crate::serve::control::{self, AddReport, Answer, Handler, NAMES_PER_REQUEST_MAX, Request};

/// Most bytes of an imported list: two million names. The import runs next to the daemon, within
/// the same memory.
const IMPORT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Longest name in bytes: each of 253 characters takes at most four bytes as a U-label.
const NAME_BYTES_MAX: usize = 1012;

/// Refused names that are shown one by one; further ones are only counted.
const REFUSED_SHOWN_MAX: usize = 20;

pub(super) async fn add(config: &Config, names: Vec<String>, json: bool) -> anyhow::Result<u8> {
    let names = names.iter().map(|name| pasted(name).to_owned());
    bring_in(config, names.collect(), json).await
}

pub(super) async fn import(config: &Config, file: &Path, json: bool) -> anyhow::Result<u8> {
    bring_in(config, names_in(file)?, json).await
}

/// The names in a file, one per line or as a JSON array; `-` is standard input.
pub(super) fn names_in(file: &Path) -> anyhow::Result<Vec<String>> {
    let shown = input_name(file);
    let text = read_list(file).with_context(|| format!("cannot read {shown}"))?;
    parse_list(&text)
        .with_context(|| format!("{shown} is neither one name a line nor a JSON array of names"))
}

async fn bring_in(config: &Config, names: Vec<String>, json: bool) -> anyhow::Result<u8> {
    let progress = Progress::begin("adding names");
    let mut report = AddReport::default();
    let (names, too_long): (Vec<_>, Vec<_>) = names
        .into_iter()
        .partition(|name| name.len() <= NAME_BYTES_MAX);
    report.refused = too_long
        .iter()
        .map(|name| {
            (
                escaped(name.as_bytes(), TEXT_BYTES_MAX),
                "it is longer than any name".to_owned(),
            )
        })
        .collect();
    let mut backend = Backend::open(config).await?;
    for batch in names.chunks(NAMES_PER_REQUEST_MAX) {
        match backend
            .ask(Request::Add {
                names: batch.to_vec(),
            })
            .await?
        {
            Answer::Added(added) => {
                report.taken.extend(added.taken);
                report.known.extend(added.known);
                report.refused.extend(added.refused);
            }
            other => return unexpected(&other),
        }
        progress.done(report.taken.len() + report.known.len() + report.refused.len());
    }
    drop(progress);
    backend.close();
    if json {
        say(&serde_json::to_string(&report)?)?;
    } else {
        tell(&report)?;
    }
    Ok(
        if report.taken.is_empty() && report.known.is_empty() && !report.refused.is_empty() {
            FAILED
        } else {
            OK
        },
    )
}

fn tell(report: &AddReport) -> anyhow::Result<()> {
    say(&format!(
        "{} taken, {} known, {} refused",
        report.taken.len(),
        report.known.len(),
        report.refused.len()
    ))?;
    for (name, why) in report.refused.iter().take(REFUSED_SHOWN_MAX) {
        say(&format!("refused {name}: {why}"))?;
    }
    let more = report.refused.len().saturating_sub(REFUSED_SHOWN_MAX);
    if more > 0 {
        say(&format!("… and {more} more refused; --json shows all"))?;
    }
    Ok(())
}

/// Shows each second, on a terminal, that a long command works. Dropping it removes the line.
pub(super) struct Progress {
    done: Arc<AtomicUsize>,
    line: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub(super) fn begin(what: &'static str) -> Self {
        let done = Arc::new(AtomicUsize::new(0));
        let line = std::io::stderr().is_terminal().then(|| {
            let (stop, stopped) = sync_channel::<()>(0);
            let done = Arc::clone(&done);
            let show = move || {
                let (began, mut stderr) = (Instant::now(), std::io::stderr());
                while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout)
                {
                    let count = match done.load(Ordering::Relaxed) {
                        0 => String::new(),
                        count => format!(" {count},"),
                    };
                    write!(stderr, "\r{what}:{count} {} s", began.elapsed().as_secs()).ok();
                }
                write!(stderr, "\r\x1b[K").ok();
            };
            (stop, std::thread::spawn(show))
        });
        Self { done, line }
    }

    /// How much is done, in what it counts.
    pub(super) fn done(&self, count: usize) {
        self.done.store(count, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, line)) = self.line.take() {
            drop(stop);
            line.join().ok();
        }
    }
}

fn read_list(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut source: Box<dyn std::io::Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file)?)
    };
    let read = source
        .by_ref()
        .take(IMPORT_BYTES_MAX)
        .read_to_string(&mut text)?;
    if u64::try_from(read).unwrap_or(u64::MAX) == IMPORT_BYTES_MAX {
        bail!("it is longer than {IMPORT_BYTES_MAX} bytes; split it");
    }
    Ok(text)
}

fn parse_list(text: &str) -> anyhow::Result<Vec<String>> {
    if text.trim_start().starts_with('[') {
        return Ok(serde_json::from_str(text)?);
    }
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}

/// Sends the daemon a request, or uses the database if no daemon runs.
pub(super) async fn either(config: &Config, request: Request) -> anyhow::Result<u8> {
    let mut backend = Backend::open(config).await?;
    let answer = backend.ask(request).await?;
    backend.close();
    finish(&answer)
}

/// Sends the daemon a request that only the daemon can serve.
pub(super) async fn daemon(config: &Config, request: Request) -> anyhow::Result<u8> {
    match control::ask(&config.control_socket(), &request).await? {
        Some(mut conversation) => finish(&conversation.next().await?),
        None => Ok(complain(control::NO_DAEMON, UNAVAILABLE)),
    }
}

pub(super) async fn dump(config: &Config, force: bool) -> anyhow::Result<u8> {
    let progress = Progress::begin("publishing");
    if let Some(mut conversation) =
        control::ask(&config.control_socket(), &Request::Dump { force }).await?
    {
        let answer = conversation.next().await?;
        drop(progress);
        return finish(&answer);
    }
    let store = store::open(&config.database())?;
    let (now, reader, publisher, calendar) = (
        SystemClock.now(),
        store.reader()?,
        config.publisher()?,
        config.calendar,
    );
    let (about, writer) = (config.about(), store.writer());
    let deny = config.admission.deny_list()?;
    let force = if force {
        dump::Force::Yes
    } else {
        dump::Force::No
    };
    let names = tokio::task::spawn_blocking(move || {
        // Makes the signing key if there is none. An unusable key is reported when it should sign.
        signature::keys(&publisher.data_dir).ok();
        let occasion = Occasion {
            now,
            calendar,
            deny: &deny,
            force,
            cancel: &Cancel::default(),
        };
        let round = Round {
            publisher: &publisher,
            about: &about,
            reader: &reader,
            writer: &writer,
            occasion,
            salt: Random::from_os().salt(),
        };
        round.run()
    })
    .await??;
    store.close();
    drop(progress);
    say(&format!("published {names} names"))?;
    Ok(OK)
}

/// How a step begins that holds a line of the checker's protocol.
const PROTOCOL: &str = "checker: ";

/// The steps of a check: printed as they arrive without those of the protocol, or one JSON object
/// at the end.
struct Steps {
    collected: Option<Vec<String>>,
}

impl Steps {
    fn new(json: bool) -> Self {
        let collected = json.then(Vec::new);
        Self { collected }
    }

    fn add(&mut self, step: &str) -> anyhow::Result<()> {
        match &mut self.collected {
            Some(collected) => collected.push(step.to_owned()),
            None if step.starts_with(PROTOCOL) => {}
            None => say(step)?,
        }
        Ok(())
    }

    fn end(&self, host: &Host, error: Option<&str>) -> anyhow::Result<()> {
        let Some(steps) = &self.collected else {
            return Ok(());
        };
        let json = json!({"host": host, "steps": steps, "error": error});
        say(&json.to_string())
    }
}

pub(super) async fn check(config: &Config, host: Host, json: bool) -> anyhow::Result<u8> {
    let mut steps = Steps::new(json);
    if let Some(mut conversation) = control::ask(
        &config.control_socket(),
        &Request::Check { host: host.clone() },
    )
    .await?
    {
        loop {
            match conversation.next().await? {
                Answer::Step(step) => steps.add(&step)?,
                Answer::Done(_) => {
                    steps.end(&host, None)?;
                    if !json {
                        say(&explained(config, &host).await?)?;
                    }
                    return Ok(OK);
                }
                last => {
                    if let Answer::Failed(why) = &last {
                        steps.end(&host, Some(why))?;
                    }
                    return finish(&last);
                }
            }
        }
    }
    let code = check_alone(config, &host, &mut steps).await?;
    steps.end(&host, (code != OK).then_some("there is no verdict"))?;
    Ok(code)
}

/// Walks a host through the daemon, which has the container, its slot and the gate.
pub(super) async fn discover(config: &Config, host: Host) -> anyhow::Result<u8> {
    let request = Request::Discover { host };
    let conversation = control::ask(&config.control_socket(), &request).await?;
    let Some(mut conversation) = conversation else {
        return Ok(complain(control::NO_DAEMON, UNAVAILABLE));
    };
    loop {
        match conversation.next().await? {
            Answer::Step(step) => say(&step)?,
            last => return finish(&last),
        }
    }
}

/// Checks a host without a daemon: the same path, over a database held exclusively. Nothing can
/// confirm a failure here, so a failure is not counted.
async fn check_alone(config: &Config, host: &Host, steps: &mut Steps) -> anyhow::Result<u8> {
    config.require_contact()?;
    let store = store::open(&config.database())?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let services = config.services(
        store.writer(),
        crate::roles::gate(config, &store).await?,
        clock,
        Random::from_os(),
        SlotQueue::unlimited(),
    );
    let host = services
        .gate
        .names()
        .admit_host(host.clone())
        .with_context(|| host.to_string())?;
    let now = services.now();
    for (host, brought) in services.gate.brought(vec![host.clone()], now).await? {
        if let Brought::Refused(refusal) = brought {
            bail!("{host}: {refusal}");
        }
    }
    let taken = services
        .writer
        .take_one(&host, now, services.random.jitter(), services.calendar)
        .await?;
    let Some(taken) = taken else {
        bail!("{host} opted out or was removed by a moderator; it is not checked")
    };
    let (watcher, mut watched) = tokio::sync::mpsc::channel(4096);
    let start = Start {
        check: CheckNumber(0),
        host: taken.record.host.clone(),
        class: taken.class,
        wish: Wish::default(),
        peers: if asks_peers(&taken.record, services.peers_every) {
            AskPeers::Ask
        } else {
            AskPeers::Skip
        },
        trigger: Trigger::Manual,
    };
    let check = Check::new(start, &services, Some(watcher));
    let running = async {
        let ended = check::run(&check, &services).await;
        drop(check);
        ended
    };
    let showing = async {
        let mut said = Ok(());
        // The reader of stdout may be gone: the check continues.
        while let Some(step) = watched.recv().await {
            said = said.and_then(|()| steps.add(&step));
        }
        said
    };
    let (ended, said) = tokio::join!(running, showing);
    let code = settle_alone(&taken.record, ended, &services, steps).await?;
    store.close();
    said.map(|()| code)
}

async fn settle_alone(
    record: &Record,
    ended: Result<CheckOutcome, Fault>,
    services: &Services,
    steps: &mut Steps,
) -> anyhow::Result<u8> {
    let give_back = || {
        services
            .writer
            .release(&record.host, services.again_soon(), None)
    };
    match ended {
        Ok(CheckOutcome::Verdict { verdict, .. }) => {
            let said = format!("verdict: {verdict}");
            if verdict.is_failing() {
                give_back().await?;
                steps.add(&format!(
                    "{said} (not counted: only a running census can confirm a failure)"
                ))?;
            } else {
                commit_verdict(record, &verdict, services).await?;
                steps.add(&said)?;
            }
            Ok(OK)
        }
        Err(fault) => {
            give_back().await?;
            Ok(complain(
                &format!("our own fault, so nothing counts against the host: {fault}"),
                UNAVAILABLE,
            ))
        }
        Ok(CheckOutcome::Deferred { .. } | CheckOutcome::Offline | CheckOutcome::Fault(_)) => {
            give_back().await?;
            Ok(complain(
                "no verdict: the check was deferred, or the machine is offline",
                FAILED,
            ))
        }
    }
}

/// The daemon, or the database if no daemon runs.
enum Backend<'config> {
    Daemon(&'config Config),
    Alone(Box<store::Store>, Box<Handler>),
}

impl<'config> Backend<'config> {
    async fn open(config: &'config Config) -> anyhow::Result<Self> {
        if control::ask(&config.control_socket(), &Request::Live {})
            .await?
            .is_some()
        {
            return Ok(Self::Daemon(config));
        }
        let store = store::open(&config.database())?;
        let gate = crate::roles::gate(config, &store).await?;
        let handler = Handler::alone(store.writer(), gate, Arc::new(SystemClock), config.calendar);
        Ok(Self::Alone(Box::new(store), Box::new(handler)))
    }

    async fn ask(&mut self, request: Request) -> anyhow::Result<Answer> {
        match self {
            Self::Daemon(config) => {
                let conversation = control::ask(&config.control_socket(), &request).await?;
                conversation.context("the daemon ended")?.next().await
            }
            Self::Alone(_, handler) => Ok(control::serve_alone(*handler.clone(), request).await),
        }
    }

    fn close(self) {
        if let Self::Alone(store, _) = self {
            store.close();
        }
    }
}

fn finish(answer: &Answer) -> anyhow::Result<u8> {
    match answer {
        Answer::Done(text) => {
            say(text)?;
            Ok(OK)
        }
        Answer::Failed(why) => Ok(complain(why, FAILED)),
        Answer::Step(_) | Answer::Names(_) | Answer::Added(_) | Answer::Live(_) => {
            unexpected(answer)
        }
    }
}

fn unexpected(answer: &Answer) -> anyhow::Result<u8> {
    match answer {
        Answer::Failed(why) => Ok(complain(why, FAILED)),
        other => bail!("the daemon's answer is unexpected ({other:?}); is it of another version?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_lines_or_a_json_array() {
        assert_eq!(
            parse_list("a.example\n\n# a comment\n b.example \r\n").unwrap(),
            ["a.example", "b.example"]
        );
        assert_eq!(
            parse_list(" [\"a.example\",\"b.example\"]\n").unwrap(),
            ["a.example", "b.example"]
        );
        assert!(parse_list("[1,2]").is_err());
    }
}
