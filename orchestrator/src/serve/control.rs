//! The daemon's control socket for commands that write. Without a daemon, the same handler serves
//! them in the command's process.
//!
//! A connection carries one request, a line of JSON. The answer is any number of `step` lines and
//! one `done` or `failed`. The socket is in the data directory, which only the census's user can
//! enter.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admission::KeyHash;
use census::source::Memory;
use census::time::Calendar;
use dump::Force;
use local_socket::{Connection, LineLimits, Listener};
use protocol::Host;
use store::{StoreError, Writer};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::admit::gate::{Brought, NameGate, Submitted};
use crate::daemon::{Live, LiveState, Order};
use crate::discover::lists::{self, Source};

use crate::check::services::Services;
use crate::discover::walks::visit::{Visit, visit};
use crate::serve::socket;

mod client;
mod decisions;
mod wire;

pub use self::client::{Conversation, ask};
pub(crate) use self::decisions::decided_in_words;
pub use self::wire::{AddReport, Answer, By, Request};

/// Longest request in bytes: a batch of names.
pub const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// Limits for a request, which a client writes at once.
const REQUEST_LIMITS: LineLimits = LineLimits {
    bytes_max: REQUEST_BYTES_MAX,
    time_max: Duration::from_secs(5),
};

/// Names in one request: less than [`REQUEST_BYTES_MAX`] even if all names have the greatest
/// length.
pub const NAMES_PER_REQUEST_MAX: usize = 200;

/// Names in one line of an answer: a quarter of a megabyte.
const NAMES_PER_ANSWER_MAX: usize = 1000;

/// Connections at once: operators' commands and a health check.
const CONNECTIONS_MAX: usize = 32;

/// Steps of a watched check that wait for a slow terminal.
const STEPS_WAITING_MAX: usize = 4096;

/// Serves requests with what the process has: always a writer, and the loop if it is the daemon.
#[derive(Debug, Clone)]
pub struct Handler {
    services: Arc<HandlerServices>,
    daemon: Option<(mpsc::Sender<Order>, Arc<Live>)>,
    /// For readings and walks; `None` in a command without a daemon, which makes none.
    running: Option<Services>,
    sources: Arc<[Source]>,
}

#[derive(Debug)]
pub(crate) struct HandlerServices {
    pub(crate) writer: Writer,
    pub(crate) gate: NameGate,
    pub(crate) clock: Arc<dyn crate::ground::clock::Clock>,
    pub(crate) calendar: Calendar,
}

impl Handler {
    pub fn with_daemon(services: &Services, orders: mpsc::Sender<Order>, live: Arc<Live>) -> Self {
        let handler = Self::alone(
            services.writer.clone(),
            services.gate.clone(),
            services.clock.clone(),
            services.calendar,
        );
        Self {
            daemon: Some((orders, live)),
            running: Some(services.clone()),
            ..handler
        }
    }

    /// Adds the public lists that it can read.
    pub fn with_sources(self, sources: &[Source]) -> Self {
        Self {
            sources: sources.into(),
            ..self
        }
    }

    /// A handler for a command that holds the database itself.
    pub fn alone(
        writer: Writer,
        gate: NameGate,
        clock: Arc<dyn crate::ground::clock::Clock>,
        calendar: Calendar,
    ) -> Self {
        Self {
            services: Arc::new(HandlerServices {
                writer,
                gate,
                clock,
                calendar,
            }),
            daemon: None,
            running: None,
            sources: Arc::default(),
        }
    }

    /// Serves one request; the last answer sent is not a `step`.
    pub async fn handle(&self, request: Request, answers: &mpsc::Sender<Answer>) {
        let last = match request {
            Request::Add { names } => self.add(&names).await.map(Answer::Added),
            Request::OptOut {
                host,
                by,
                undo,
                reason,
            } => self
                .opt_out(&host, by, undo, reason.as_deref())
                .await
                .map(Answer::Done),
            Request::Check { host } => self.check(host, answers).await.map(Answer::Done),
            Request::Dump { force } => self.dump(force).await.map(Answer::Done),
            Request::ReloadAdmission {} => self.reload_admission().await.map(Answer::Done),
            Request::DecideGroup {
                domain,
                verb,
                reason,
            } => self
                .decide_group(&domain, verb, &self.ruling(decisions::OPERATOR, &reason))
                .await
                .map(|(id, words)| {
                    Answer::Done(format!(
                        "{words}\n`fedicensus decisions undo g{id}` undoes it"
                    ))
                }),
            Request::UndoGroupDecision { id } => {
                let undone = self.undo_group_decision(id, decisions::OPERATOR).await;
                undone.map(Answer::Done)
            }
            Request::UndoHostDecision { id } => {
                let undone = self.undo_host_decision(id, decisions::OPERATOR).await;
                undone.map(Answer::Done)
            }
            Request::ResumeSource { name } => self.resume_source(&name).await.map(Answer::Done),
            Request::SourceNames { url } => {
                let told = self.source_names(&url, answers).await;
                told.map(Answer::Done)
            }
            Request::Discover { host } => self.discover(&host, answers).await.map(Answer::Done),
            Request::Live {} => self.live().map(|live| Answer::Live(Box::new(live))),
        };
        // The client may have disconnected.
        answers.send(last.unwrap_or_else(Answer::Failed)).await.ok();
    }

    pub(crate) async fn add(&self, names: &[String]) -> Result<AddReport, String> {
        let mut report = AddReport::default();
        let mut admitted = Vec::new();
        let rule = self.services.gate.names();
        for name in names.iter().take(NAMES_PER_REQUEST_MAX) {
            match rule.admit(name.trim()) {
                Ok(host) => admitted.push(host),
                Err(refusal) => report
                    .refused
                    .push((protocol::escaped(name.as_bytes(), 200), refusal.to_string())),
            }
        }
        let brought = self
            .services
            .gate
            .brought(admitted, self.services.clock.now());
        for (host, brought) in brought.await.map_err(in_words)? {
            match brought {
                Brought::New => report.taken.push(host),
                Brought::Known => report.known.push(host),
                Brought::Refused(refusal) => {
                    report.refused.push((host.into(), refusal.to_string()));
                }
            }
        }
        if let Some((orders, _)) = &self.daemon {
            // Without this, the loop looks within a second.
            orders.try_send(Order::Look).ok();
        }
        Ok(report)
    }

    /// Passes a submitted host to the gate. A key's hash and its domain vouch for it, or the host
    /// itself.
    pub(crate) async fn submit(
        &self,
        host: &Host,
        vouched: Option<(KeyHash, &Host)>,
    ) -> Result<Submitted, String> {
        let now = self.services.clock.now();
        let submitted = self.services.gate.submitted(host, vouched, now).await;
        let submitted = submitted.map_err(in_words)?;
        if submitted == Submitted::New
            && let Some((orders, _)) = &self.daemon
        {
            // Without this, the loop looks within a second.
            orders.try_send(Order::Look).ok();
        }
        Ok(submitted)
    }

    /// The canonical name, if the census admits it.
    pub(crate) fn admit(&self, host: &Host) -> Result<Host, admission::Refusal> {
        self.services.gate.names().admit_host(host.clone())
    }

    /// Whether the operator's deny-list excludes the host.
    pub(crate) fn denies(&self, host: &Host) -> Result<(), admission::gate::Refusal> {
        self.services.gate.denies(host)
    }

    /// Whether the host may be asked for anything: no one has opted it out or held it.
    pub(crate) async fn may_be_asked(&self, host: &Host) -> Result<bool, String> {
        let may = self.services.writer.may_be_asked(host).await;
        may.map_err(in_words)
    }

    pub(crate) fn services(&self) -> &HandlerServices {
        &self.services
    }

    pub(crate) fn registered_domain(&self, host: &Host) -> String {
        self.services.gate.names().registered_domain(host)
    }

    pub(crate) async fn check(
        &self,
        host: Host,
        answers: &mpsc::Sender<Answer>,
    ) -> Result<String, String> {
        let Some((orders, _)) = &self.daemon else {
            return Err(NO_DAEMON.to_owned());
        };
        let (watcher, mut steps) = mpsc::channel(STEPS_WAITING_MAX);
        orders
            .send(Order::Check {
                host: host.clone(),
                watcher,
            })
            .await
            .map_err(|_ended| ENDING.to_owned())?;
        let mut last = String::new();
        while let Some(step) = steps.recv().await {
            answers
                .send(Answer::Step(step.clone()))
                .await
                .map_err(|_gone| "nobody listens".to_owned())?;
            last = step;
        }
        if last.starts_with("not checked") {
            Err(last)
        } else {
            Ok(last)
        }
    }

    pub(crate) async fn dump(&self, force: bool) -> Result<String, String> {
        let Some((orders, _)) = &self.daemon else {
            return Err(NO_DAEMON.to_owned());
        };
        let (answer, outcome) = oneshot::channel();
        let force = if force { Force::Yes } else { Force::No };
        orders
            .send(Order::Dump { force, answer })
            .await
            .map_err(|_ended| ENDING.to_owned())?;
        let names = outcome.await.map_err(|_ended| ENDING.to_owned())??;
        Ok(format!("published {names} names"))
    }

    /// Fails without a daemon, because nothing is in force then.
    async fn reload_admission(&self) -> Result<String, String> {
        if self.daemon.is_none() {
            return Err(NO_DAEMON.to_owned());
        }
        let outcome = self.services.gate.reload().await;
        crate::admit::gate::tell_reload(&outcome);
        let words = outcome?;
        // The deny-list may be longer.
        self.order(Order::Unlist).await?;
        Ok(format!("in force: {words}"))
    }

    pub(crate) async fn resume_source(&self, name: &str) -> Result<String, String> {
        let resumed = self.services.writer.resume_source(name).await;
        match resumed.map_err(in_words)? {
            Some(Memory {
                paused: Some(_), ..
            }) => Ok(format!(
                "{name}: resumed; it is read within minutes, and all its names are taken"
            )),
            Some(_) => Ok(format!("{name} is not paused: nothing to do")),
            None => Err(format!(
                "{}: no source of this name was ever read; `fedicensus sources list` shows them",
                protocol::escaped(name.as_bytes(), 200)
            )),
        }
    }

    async fn source_names(
        &self,
        url: &str,
        answers: &mpsc::Sender<Answer>,
    ) -> Result<String, String> {
        let services = self.running.as_ref().ok_or_else(|| NO_DAEMON.to_owned())?;
        let names = lists::once::names(url, &self.sources, services).await?;
        let count = names.len();
        let names: Vec<Host> = names.into_iter().collect();
        for some in names.chunks(NAMES_PER_ANSWER_MAX) {
            let sent = answers.send(Answer::Names(some.to_vec())).await;
            sent.map_err(|_gone| "nobody listens".to_owned())?;
        }
        Ok(format!("{count} names"))
    }

    async fn discover(
        &self,
        host: &Host,
        answers: &mpsc::Sender<Answer>,
    ) -> Result<String, String> {
        let services = self.running.as_ref().ok_or_else(|| NO_DAEMON.to_owned())?;
        let (walk, new) = match visit(host, services).await {
            Visit::Walked { walk, new } => (walk, new),
            Visit::Left(why) => return Err(format!("{host} was not walked: {why}")),
            Visit::Deferred { why, retry_after } => {
                let seconds = retry_after.as_secs().saturating_add(1);
                return Err(format!("not now ({why:?}): try again in {seconds} s"));
            }
            Visit::Offline => return Err("there is no network".to_owned()),
            Visit::Fault(fault) => return Err(fault.to_string()),
        };
        for found in &new {
            let sent = answers.send(Answer::Step(format!("new: {found}"))).await;
            sent.map_err(|_gone| "nobody listens".to_owned())?;
        }
        Ok(format!(
            "{host}: {}; {} requests, {} posts, {} hosts named, {} of them new",
            walk.outcome.in_words(),
            walk.requests,
            walk.posts,
            walk.hosts.len(),
            new.len()
        ))
    }

    /// The current state of the loop and the gate.
    pub(crate) fn live(&self) -> Result<LiveState, String> {
        let (_, live) = self.daemon.as_ref().ok_or_else(|| NO_DAEMON.to_owned())?;
        let now = self.services.clock.now();
        Ok(LiveState {
            clock_trouble: self.services.clock.trouble(),
            admission: Some(Box::new(self.services.gate.shown())),
            ..live.state(now)
        })
    }
}

/// The error message if no daemon runs.
pub const NO_DAEMON: &str = "no daemon is running here; start `fedicensus run` first";
const ENDING: &str = "the daemon is shutting down";

fn in_words(error: StoreError) -> String {
    error.to_string()
}

#[derive(Debug)]
pub struct ControlSocket(Listener);

impl ControlSocket {
    /// Creates the socket.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Self(socket::listen(path, socket::OWN_USER)?))
    }

    /// Serves it until `shutdown`, and creates it again if someone removes it.
    ///
    /// # Errors
    /// None; it is a `Result` so that it can be joined with the loop.
    pub async fn serve(self, handler: Handler, shutdown: CancellationToken) -> anyhow::Result<()> {
        let talk = move |stream| {
            let handler = handler.clone();
            async move { converse(stream, &handler).await }
        };
        socket::serve(self.0, CONNECTIONS_MAX, talk, &shutdown).await;
        Ok(())
    }
}

async fn converse(stream: UnixStream, handler: &Handler) -> anyhow::Result<()> {
    let Connection {
        mut reader,
        mut writer,
    } = Connection::from(stream);
    let line = local_socket::read_line(&mut reader, REQUEST_LIMITS).await;
    let request = line.and_then(|line| Ok(serde_json::from_slice(&line)?));
    let (answers, mut outgoing) = mpsc::channel(64);
    let serve = async {
        match request {
            Ok(request) => handler.handle(request, &answers).await,
            Err(error) => {
                let why = format!("not a request: {:#}", anyhow::Error::from(error));
                answers.send(Answer::Failed(why)).await.ok();
            }
        }
        drop(answers);
    };
    let send = async {
        while let Some(answer) = outgoing.recv().await {
            let line = serde_json::to_vec(&answer)?;
            // A terminal may be paused for as long as its user likes.
            local_socket::write_line(&mut writer, line, Duration::MAX).await?;
        }
        anyhow::Ok(())
    };
    tokio::join!(serve, send).1
}

/// Serves a request without a daemon, with the handler of a database that the caller holds
/// exclusively.
pub async fn serve_alone(handler: Handler, request: Request) -> Answer {
    let (answers, mut outgoing) = mpsc::channel(64);
    let serve = async move {
        handler.handle(request, &answers).await;
    };
    let last = async {
        let mut last = Answer::Failed("no answer".to_owned());
        while let Some(answer) = outgoing.recv().await {
            last = answer;
        }
        last
    };
    tokio::join!(serve, last).1
}
