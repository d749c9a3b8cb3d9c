//! The daemon's socket for the moderators' console: it returns what moderators look at, and carries
//! out their decisions.
//!
//! The console may be taken over. So every field is checked again here, moderators' names are
//! bounded, long work runs one at a time, and no other requests exist.

mod acts;
mod day_budget;
mod views;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::console::wire::{self, Answer, CARDS_MAX, GroupList, ROWS_MAX, Request};
use protocol::Host;
use store::{LogCursor, Reader, StoreError, Which};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use self::day_budget::DayBudget;
use crate::check::services::Services;
use crate::groups;
use crate::groups::facts::{self, MEMBERS_MAX};
use crate::inspect::explain::look_up;
use crate::inspect::status::{self, SourceShown};
use crate::serve::control::Handler;
use crate::serve::read;
use crate::serve::socket::{Server, Talk};

/// Time limit for a line: the console writes its request and reads the answer at once.
const LINE_WITHIN: Duration = Duration::from_secs(10);

/// Checks and publications in progress for the console. A second one is refused.
const LONG_ORDERS_MAX: usize = 1;

pub type ConsoleServer = Server<ConsoleHandler>;

#[derive(Debug, Clone)]
pub struct ConsoleHandler {
    handler: Handler,
    reader: Arc<Mutex<Reader>>,
    services: Services,
    data_dir: Arc<Path>,
    long_orders: Arc<Semaphore>,
    budget: Arc<Mutex<DayBudget>>,
}

impl Talk for ConsoleHandler {
    /// There are few moderators.
    const CONNECTIONS_MAX: usize = 16;

    async fn talk(self, stream: UnixStream) -> anyhow::Result<()> {
        let answer = |request| self.answer(request);
        Ok(local_socket::answer_one(stream, LINE_WITHIN, answer).await?)
    }
}

impl ConsoleHandler {
    /// Uses the handler that serves commands, and a separate reader.
    pub fn new(handler: Handler, reader: Reader, services: Services, data_dir: PathBuf) -> Self {
        Self {
            handler,
            reader: Arc::new(Mutex::new(reader)),
            services,
            data_dir: data_dir.into(),
            long_orders: Arc::new(Semaphore::new(LONG_ORDERS_MAX)),
            budget: Arc::default(),
        }
    }

    pub async fn answer(&self, request: Request) -> Answer {
        let answered = match request {
            Request::Status {} => self.status().await,
            Request::Groups { which, skip } => self.groups(which, skip).await,
            Request::Group { domain } => self.group(&domain).await,
            Request::Waiting { after } => self.waiting(after).await,
            Request::Sources {} => self.sources().await,
            Request::Publication {} => self.publication().await,
            Request::Host { host } => self.host(&host).await,
            Request::Decisions { cursor } => self.decisions(cursor).await,
            Request::Act(act) => self.act(act).await.map(Answer::Done),
        };
        answered.unwrap_or_else(Answer::Failed)
    }

    async fn status(&self) -> Result<Answer, String> {
        let now = self.services.now();
        let mut status = read(&self.reader, move |reader| status::read(reader, now)).await?;
        let services = &self.services;
        let second = services.second_gateway.as_ref();
        status
            .ask_parts(&services.gateway, second, &services.launcher)
            .await;
        let live = self.handler.live()?;
        let publication_trouble = live.dump_trouble.clone();
        let names_waiting = live.admission.as_ref().map_or(0, |shown| shown.waiting);
        status.daemon = Some(live);
        let paused = status
            .sources
            .iter()
            .filter(|source| source.paused.is_some());
        Ok(Answer::Status {
            groups_held: status.groups_held,
            names_waiting,
            sources_paused: u64::try_from(paused.count()).unwrap_or(u64::MAX),
            publication_trouble,
            lines: views::lines(&status.text(&self.data_dir)),
        })
    }

    async fn groups(&self, which: wire::Which, skip: u32) -> Result<Answer, String> {
        let which = views::which(which);
        let fetched = ROWS_MAX.saturating_add(1);
        let cards_max = match which {
            Which::Held => CARDS_MAX,
            Which::Decided => 0,
        };
        let (now, calendar) = (self.services.now(), self.services.calendar);
        let (found, facts) = read(&self.reader, move |reader| {
            let found = reader.groups_to_review(which, skip, fetched)?;
            let facts = found.iter().take(cards_max).map(|stored| {
                let members = reader.members(&stored.domain, MEMBERS_MAX, now, calendar)?;
                Ok(facts::facts(stored, &members, now))
            });
            let facts = facts.collect::<Result<Vec<_>, StoreError>>()?;
            Ok((found, facts))
        })
        .await?;
        let (rows, has_more) = views::page(found.iter().map(views::group));
        Ok(Answer::Groups(GroupList {
            rows,
            facts,
            has_more,
        }))
    }

    async fn group(&self, domain: &str) -> Result<Answer, String> {
        let domain = groups::registered(&self.services.gate.names(), domain)?;
        let (now, calendar) = (self.services.now(), self.services.calendar);
        let (group, members, decisions) = read(&self.reader, {
            let domain = domain.clone();
            move |reader| {
                Ok((
                    reader.group(&domain)?,
                    reader.members(&domain, MEMBERS_MAX, now, calendar)?,
                    reader.group_decisions(&domain)?,
                ))
            }
        })
        .await?;
        let page = views::group_page(domain, group, members, decisions, now);
        Ok(Answer::Group(Box::new(page)))
    }

    async fn waiting(&self, after: String) -> Result<Answer, String> {
        let fetched = ROWS_MAX.saturating_add(1);
        let found = read(&self.reader, move |reader| {
            reader.waiting_names(&after, fetched)
        })
        .await?;
        let (rows, has_more) = views::page(found.into_iter().map(views::waiting));
        Ok(Answer::Waiting { rows, has_more })
    }

    async fn sources(&self) -> Result<Answer, String> {
        let memories = read(&self.reader, Reader::sources).await?;
        let sources = memories.iter().map(|(name, memory)| {
            let shown = SourceShown::new(name, memory);
            wire::Source {
                name: name.clone(),
                text: shown.text(),
                is_paused: shown.paused.is_some(),
            }
        });
        Ok(Answer::Sources(sources.collect()))
    }

    async fn publication(&self) -> Result<Answer, String> {
        let last = read(&self.reader, Reader::last_dump).await?;
        Ok(Answer::Publication(wire::Publication {
            last: last.map(|dump| (census::time::rfc3339(dump.at), dump.names)),
            trouble: self.handler.live()?.dump_trouble,
        }))
    }

    async fn host(&self, text: &str) -> Result<Answer, String> {
        let host = host(text)?;
        let (now, calendar) = (self.services.now(), self.services.calendar);
        let terms = self.services.gate.terms();
        let (explanation, stored) = read(&self.reader, move |reader| {
            let explanation = look_up(reader, &host, &terms.deny, now, calendar)?;
            Ok((explanation, reader.record(&host)?))
        })
        .await?;
        Ok(Answer::Host(views::host_page(
            &explanation,
            stored.as_ref(),
        )))
    }

    async fn decisions(&self, cursor: Option<wire::Cursor>) -> Result<Answer, String> {
        let cursor =
            cursor.map(|wire::Cursor { group_id, host_id }| LogCursor { group_id, host_id });
        let page = read(&self.reader, move |reader| {
            reader.decisions(cursor, ROWS_MAX)
        })
        .await?;
        Ok(Answer::Decisions {
            rows: page.rows.into_iter().map(views::decision).collect(),
            next: page
                .next
                .map(|LogCursor { group_id, host_id }| wire::Cursor { group_id, host_id }),
        })
    }

    /// Parses a host as typed or pasted; the census must know the host.
    async fn known_host(&self, text: &str) -> Result<Host, String> {
        let host = host(text)?;
        let stored = read(&self.reader, {
            let host = host.clone();
            move |reader| reader.record(&host)
        })
        .await?;
        match stored {
            Some(_) => Ok(host),
            None => Err(format!(
                "{host}: the census does not know this host; `fedicensus add` adds it"
            )),
        }
    }
}

/// Parses a host as typed or pasted.
fn host(text: &str) -> Result<Host, String> {
    Host::parse(protocol::pasted(text))
        .map_err(|error| format!("{}: {error}", protocol::escaped(text.as_bytes(), 200)))
}
