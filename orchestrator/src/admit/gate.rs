//! The only gate through which names enter, whatever their source.
//!
//! The gate takes names in canonical form and their source. It writes the rows of new hosts in one
//! transaction with the counters that they changed; other names wait. Names that the operator bans
//! are refused, and so are names without room under the rules and limits. A known name costs
//! nothing.
//!
//! One lock covers deciding and writing, so that no two decisions use the same room. A decision is
//! written before the next one, or undone: memory and disk differ at most by what the last failed
//! write held.
//!
//! A flood is cheap. Names that memory recognises, and names with neither room nor a place to wait,
//! are decided in memory only. So a peers list of known hosts takes no lock, no transaction and no
//! look-up, except for one name in 64, which is looked up as a spot check.

mod batch;
mod held;
mod line;
mod novelty;
pub mod retry;
mod state;
mod submitted;
mod view;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use admission::counters::RowError;
use admission::gate::Refusal;
use admission::{Counters, DomainName, Names, Terms, Waiting};
use census::time::{Jitter, Timestamp};
use protocol::Host;
use store::{AddedAs, Remembered, StoreError, Writer};
use thiserror::Error;
use tokio::sync::Notify;

use self::batch::Asking;
use self::held::HeldGroups;
use self::line::Line;
use self::novelty::Novelty;
use self::state::{BATCH_MAX, GateState, LONG_BATCH_MAX};
use crate::admit::policy::{Files, TermsError};

pub use self::state::Origin;
pub use self::submitted::Submitted;
pub use self::view::{GateView, TEST_DOMAIN_WARNING, why_it_waits};

/// A list of this many names is long: from this length on, larger batches gain a quarter.
const LONG_LIST_MIN: usize = 20_000;

/// Why the gate can't open.
#[derive(Debug, Error)]
pub enum GateError {
    /// The rules or lists can't be put in force.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The store can't return what the gate remembered.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the database's counters of admissions: {0}")]
    Counters(#[from] RowError),
}

/// The result for a name that the operator brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Brought {
    New,
    Known,
    /// The operator's own lists ban it.
    Refused(Refusal),
}

/// The gate. Cheap to clone: all clones share one state.
#[derive(Debug, Clone)]
pub struct NameGate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    writer: Writer,
    names: RwLock<Arc<Names>>,
    files: Files,
    terms: RwLock<Arc<Terms>>,
    state: tokio::sync::Mutex<GateState>,
    line: Mutex<Line>,
    novelty: Mutex<Novelty>,
    shown: Mutex<GateView>,
    held: RwLock<Arc<HeldGroups>>,
    /// Signals that rules, lists or suffixes were reloaded.
    reloaded: Notify,
}

impl NameGate {
    /// Opens the gate: reads the files in force, and what the last process remembered.
    pub async fn open(writer: Writer, names: Names, files: Files) -> Result<Self, GateError> {
        let terms = files.read()?;
        writer.set_hosters(hosters(&terms)).await?;
        let remembered = writer.remembered().await?;
        Ok(Self::new(
            writer,
            Arc::new(names),
            files,
            terms,
            remembered,
        )?)
    }

    fn new(
        writer: Writer,
        names: Arc<Names>,
        files: Files,
        terms: Terms,
        remembered: Remembered,
    ) -> Result<Self, RowError> {
        writer.group_by(Arc::clone(&names));
        let mut counters = Counters::resume(remembered.hash_key, remembered.window_start_s);
        for row in remembered.counters {
            counters.put(row)?;
        }
        let mut waiting = Waiting::default();
        for (name, waiter) in &remembered.waiting {
            // A name that is no longer valid has no registered domain; it is dropped at its turn.
            let domain = Host::parse(name).map(|host| names.registered_domain(&host));
            waiting.put(name, domain.as_deref().unwrap_or(name), *waiter);
        }
        let state = GateState {
            counters,
            waiting,
            unwritten: Vec::new(),
            refused: 0,
            passed_over: 0,
            beyond_total: 0,
            young_left_s: remembered.young_left_s,
        };
        let gate = Self(Arc::new(Shared {
            writer,
            shown: Mutex::new(GateView::of(&state, &files, &terms)),
            names: RwLock::new(names),
            files,
            terms: RwLock::new(Arc::new(terms)),
            held: RwLock::default(),
            state: tokio::sync::Mutex::new(state),
            line: Mutex::default(),
            novelty: Mutex::default(),
            reloaded: Notify::new(),
        }));
        Ok(gate)
    }

    /// The rule for names. A reload that brings another list of suffixes replaces it.
    pub fn names(&self) -> Arc<Names> {
        let names = self.0.names.read();
        Arc::clone(&names.unwrap_or_else(PoisonError::into_inner))
    }

    /// The rules, lists and limits in force.
    pub fn terms(&self) -> Arc<Terms> {
        let terms = self.0.terms.read();
        Arc::clone(&terms.unwrap_or_else(PoisonError::into_inner))
    }

    /// The gate's part of `status`.
    pub fn shown(&self) -> GateView {
        let shown = self.0.shown.lock();
        shown.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the operator's deny-list covers a host, and by which line.
    pub fn denies(&self, host: &Host) -> Result<(), Refusal> {
        let listed = self.terms().deny.covers_text(host.as_str());
        listed.map_or(Ok(()), |listed| Err(Refusal::Denied(listed)))
    }

    /// Admits the names that are new and have room. Names without room may wait. Of known names,
    /// new hosts that wait for their first check move up, and for held-back ones the store notes
    /// that `by` names them.
    ///
    /// # Errors
    /// A fault of ours; some of the names may be admitted already, and the others are not counted.
    pub async fn named(
        &self,
        hosts: Vec<Host>,
        by: &Host,
        origin: Origin,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.novelty().listed(hosts.len());
        let names = self.names();
        let source_domain = names.registered_domain(by);
        let ahead = self.line().move_up(hosts.iter(), &source_domain, &names);
        if !ahead.is_empty() {
            self.0.writer.move_up(ahead, line::STEP).await?;
        }
        let is_known = |host: &Host| self.0.writer.recognises(host);
        let (known, hosts): (Vec<_>, Vec<_>) = hosts.into_iter().partition(is_known);
        let held = self.held().to_note(&known);
        if !held.is_empty() {
            let noted = self.0.writer.note_namings(held, &source_domain, now);
            noted.await?;
        }
        if hosts.is_empty() {
            return Ok(());
        }
        let hosts = by_name(hosts);
        let gate = self.clone();
        let batch_max = if hosts.len() < LONG_LIST_MIN {
            BATCH_MAX
        } else {
            LONG_BATCH_MAX
        };
        // In a separate task: a check that is ended while it waits must not leave counts behind
        // without their names.
        let task = tokio::spawn(async move {
            let mut hosts = hosts.into_iter();
            loop {
                let batch: Vec<_> = hosts.by_ref().take(batch_max).collect();
                if batch.is_empty() {
                    return Ok(());
                }
                gate.named_batch(batch, &source_domain, origin, now).await?;
            }
        });
        task.await.map_err(|_ended| StoreError::Closed)?
    }

    async fn named_batch(
        &self,
        hosts: Vec<Host>,
        source_domain: &str,
        origin: Origin,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut state = self.0.state.lock().await;
        let terms = self.terms();
        self.enter_window(&mut state, now);
        let source = state.source(source_domain, origin, &self.0.writer);
        let names = self.names();
        let mut asking = Vec::new();
        for host in hosts {
            let one = Asking::named(host, &names, source, source_domain);
            if state.is_worth_asking(&one, &terms, now) {
                asking.push(one);
            }
        }
        let outcome = state.decide(asking, &terms, &self.0.writer, now).await;
        if let (false, Ok(admitted)) = (source.is_bounded, &outcome) {
            let count = u32::try_from(admitted.len()).unwrap_or(u32::MAX);
            state.beyond_total = state.beyond_total.saturating_add(count);
        }
        self.show(&state, &terms);
        let admitted = outcome?;
        self.novelty().came_in(admitted.len());
        let mut line = self.line();
        for host in admitted {
            line.join(&host, source_domain, &names);
        }
        Ok(())
    }

    /// Whether the peers list of a host that responds for the first time is read, by chance while
    /// lists bring nothing new.
    pub fn reads_first_list(&self, chance: Jitter) -> bool {
        self.novelty().reads(chance)
    }

    fn novelty(&self) -> std::sync::MutexGuard<'_, Novelty> {
        self.0
            .novelty
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self) -> std::sync::MutexGuard<'_, Line> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter_window(&self, state: &mut GateState, now: Timestamp) {
        if state.enter(now) {
            self.line().clear();
        }
    }

    /// Admits the operator's names, due at once. They need no room, but names that the operator
    /// bans are refused.
    pub async fn brought(
        &self,
        hosts: Vec<Host>,
        now: Timestamp,
    ) -> Result<Vec<(Host, Brought)>, StoreError> {
        let mut state = self.0.state.lock().await;
        let terms = self.terms();
        let (mut outcome, mut welcome) = (Vec::with_capacity(hosts.len()), Vec::new());
        for host in hosts {
            match terms.bans(&DomainName::from(&host)) {
                Ok(()) => welcome.push(host),
                Err(refusal) => outcome.push((host, Brought::Refused(refusal))),
            }
        }
        for (host, added_as) in self.0.writer.add_now(welcome, now).await? {
            // If a crash leaves the row that says it waits, its turn finds the name known.
            state.waiting.remove(host.as_str());
            let brought = match added_as {
                AddedAs::New => Brought::New,
                AddedAs::Known => Brought::Known,
            };
            outcome.push((host, brought));
        }
        self.show(&state, &terms);
        Ok(outcome)
    }

    /// Reads rules, lists and public suffixes again, all or nothing. Returns what is in force now,
    /// as text.
    pub async fn reload(&self) -> Result<String, String> {
        let files = self.0.files.clone();
        let read = tokio::task::spawn_blocking(move || {
            let terms = files.read().map_err(|error| error.to_string())?;
            let names = files.names().map_err(|error| error.to_string())?;
            Ok((Arc::new(terms), names))
        });
        let (terms, names) = match read.await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                let error: String = error;
                return Err(format!(
                    "{error}\nnothing was changed: the former rules stay in force"
                ));
            }
            Err(_panicked) => return Err("the rules could not be read".to_owned()),
        };
        let state = self.0.state.lock().await;
        let put = self.0.writer.set_hosters(hosters(&terms)).await;
        put.map_err(|error| error.to_string())?;
        let words = self.0.files.in_words(&terms);
        {
            let place = self.0.terms.write();
            *place.unwrap_or_else(PoisonError::into_inner) = Arc::clone(&terms);
        }
        // A comparison shows at once whether anything must be done again.
        if self.names().suffixes != names.suffixes {
            let (place, names) = (self.0.names.write(), Arc::new(names));
            self.0.writer.group_by(Arc::clone(&names));
            *place.unwrap_or_else(PoisonError::into_inner) = names;
        }
        self.show(&state, &terms);
        drop(state);
        self.0.reloaded.notify_one();
        Ok(words)
    }

    fn show(&self, state: &GateState, terms: &Terms) {
        let shown = GateView::of(state, &self.0.files, terms);
        let place = self.0.shown.lock();
        *place.unwrap_or_else(PoisonError::into_inner) = shown;
    }
}

fn hosters(terms: &Terms) -> Vec<String> {
    terms.hosters.names().map(ToString::to_string).collect()
}

/// Logs the result of a reload.
pub fn tell_reload(outcome: &Result<String, String>) {
    match outcome {
        Ok(in_force) => tracing::info!(in_force, "admission rules read again"),
        Err(error) => tracing::error!(error, "the admission rules can't be used"),
    }
}

/// Each name once, sorted: the names of a transaction then share pages of the index, so each writes
/// less (`bench/RESULTS.md`).
///
/// The order starts at the first name of the list and wraps around, so that alphabetically early
/// names are not always the first to find room.
fn by_name(mut hosts: Vec<Host>) -> Vec<Host> {
    let first = hosts.first().cloned();
    hosts.sort_unstable();
    // A repeated name would take room twice.
    hosts.dedup();
    let start = hosts.partition_point(|host| Some(host) < first.as_ref());
    hosts.rotate_left(start);
    hosts
}
