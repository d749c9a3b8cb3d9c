//! Decides on a number of names and writes them together.
//!
//! The rows of the names, the counters that they changed and the changes to the waiting names are
//! written in one transaction. If the store fails, all counts are undone and the waiting names
//! still wait.

use std::collections::BTreeMap;

use admission::counters::Row;
use admission::gate::Refusal;
use admission::waiting::{Change, Naming};
use admission::{
    Candidate as Asked, DomainName, Names, Pass, Room, SourceId, Subject, Terms, Waiter, Waiting,
};
use census::time::Timestamp;
use protocol::Host;
use store::{Admission, Candidate, StoreError, Writer};

use super::line;
use super::state::{GateState, LONG_BATCH_MAX, Origin, YOUNG_NAMES_MAX, seconds};

/// Most changes to waiting names in one transaction: each name of a batch may replace another, and
/// as many may expire.
const CHANGES_MAX: usize = 4 * LONG_BATCH_MAX;

/// A name that requests admission.
#[derive(Debug)]
pub(super) struct Asking {
    host: Host,
    name: DomainName,
    domain: String,
    shared_suffix: Option<String>,
    source: Source,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Named now, by a host of the same registered domain.
    NamedByItsOwn,
    /// Named now, by another source.
    NamedByOthers,
    /// Not named now: it waited, and its turn has come.
    Retried,
}

/// Which source's counter a name needs room in, and whether it needs any.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) id: SourceId,
    pub(super) is_bounded: bool,
}

impl Source {
    fn subject(self) -> Subject<'static> {
        if self.is_bounded {
            Subject::Source(self.id)
        } else {
            Subject::Operators(self.id)
        }
    }
}

impl Asking {
    pub(super) fn named(host: Host, names: &Names, source: Source, source_domain: &str) -> Self {
        let mut asking = Self::retried(host, names, source.id);
        asking.source = source;
        asking.kind = if asking.domain == source_domain {
            Kind::NamedByItsOwn
        } else {
            Kind::NamedByOthers
        };
        asking
    }

    pub(super) fn retried(host: Host, names: &Names, id: SourceId) -> Self {
        let name = DomainName::from(&host);
        Self {
            domain: names.registered_domain(&host),
            shared_suffix: names.suffixes.shared_suffix(&name).map(str::to_owned),
            source: Source {
                id,
                is_bounded: true,
            },
            kind: Kind::Retried,
            name,
            host,
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            name: &self.name,
            shared_suffix: self.shared_suffix.as_deref(),
        }
    }

    fn naming(&self) -> Naming<'_> {
        Naming {
            name: self.name.as_str(),
            domain: &self.domain,
            source: self.source.id,
            is_independent: self.kind == Kind::NamedByOthers,
        }
    }
}

/// The changes of a batch before they are written.
#[derive(Default)]
pub(super) struct Moved {
    passed: Vec<(Candidate, Pass)>,
    /// Names that waited and are admitted, with their registered domains.
    left: Vec<(DomainName, String, Waiter)>,
    /// A submitter vouched for the names: forgotten names are admitted again.
    brings_back: bool,
}

impl Moved {
    /// The changes for a host that a submitter vouched for.
    pub(super) fn proven(candidate: Candidate, pass: Pass) -> Self {
        Self {
            passed: vec![(candidate, pass)],
            left: Vec::new(),
            brings_back: true,
        }
    }

    fn leave(&mut self, waiting: &mut Waiting, name: DomainName, domain: String) {
        if let Some(waiter) = waiting.waiter(name.as_str()).copied() {
            waiting.remove(name.as_str());
            self.left.push((name, domain, waiter));
        }
    }
}

impl GateState {
    /// Moves to the window that contains `now`. Returns whether it is another one.
    pub(super) fn enter(&mut self, now: Timestamp) -> bool {
        let before = self.counters.window_start_s();
        self.counters.enter(seconds(now));
        let is_another = self.counters.window_start_s() != before;
        if is_another {
            (self.refused, self.passed_over, self.beyond_total) = (0, 0, 0);
            self.unwritten.clear();
        }
        is_another
    }

    /// The source of names that a server or list of this registered domain named.
    pub(super) fn source(&self, domain: &str, origin: Origin, writer: &Writer) -> Source {
        let (known, _bytes) = writer.recognised();
        let is_young = self.young_left_s > 0 && known < YOUNG_NAMES_MAX;
        Source {
            id: self.counters.source(domain),
            is_bounded: !(is_young && origin == Origin::Operators),
        }
    }

    /// Whether looking the name up in the store can change anything: it has room, or would wait.
    pub(super) fn is_worth_asking(&mut self, one: &Asking, terms: &Terms, now: Timestamp) -> bool {
        let subject = one.source.subject();
        let is_worth = match terms.look(&self.counters, one.asked(), subject) {
            Ok(()) => true,
            Err(Refusal::NoRoom(_)) => self.waiting.would_change(&one.naming(), seconds(now)),
            Err(Refusal::Denied(_) | Refusal::Banned { .. } | Refusal::NoRule(_)) => {
                // It may have waited under the former rules.
                self.waiting.remove(one.name.as_str());
                false
            }
        };
        if !is_worth {
            self.passed_over = self.passed_over.saturating_add(1);
        }
        is_worth
    }

    /// Which limit has no room for a waiting name; `None` if the name can be decided on.
    pub(super) fn lacks(&self, one: &Asking, terms: &Terms) -> Option<Room> {
        match terms.look(&self.counters, one.asked(), one.source.subject()) {
            Err(Refusal::NoRoom(room)) => Some(room),
            Ok(()) | Err(Refusal::Denied(_) | Refusal::Banned { .. } | Refusal::NoRule(_)) => None,
        }
    }

    /// Decides on the names that are not known, and writes the result. Returns those
    /// admitted.
    pub(super) async fn decide(
        &mut self,
        asking: Vec<Asking>,
        terms: &Terms,
        writer: &Writer,
        now: Timestamp,
    ) -> Result<Vec<Host>, StoreError> {
        let unknown = self.only_unknown(asking, writer).await?;
        self.let_in(unknown, terms, writer, now).await
    }

    /// Like [`GateState::decide`], for names that are not known.
    pub(super) async fn let_in(
        &mut self,
        unknown: Vec<Asking>,
        terms: &Terms,
        writer: &Writer,
        now: Timestamp,
    ) -> Result<Vec<Host>, StoreError> {
        let mut moved = Moved::default();
        for one in unknown {
            let subject = one.source.subject();
            match terms.decide(&mut self.counters, one.asked(), subject, seconds(now)) {
                Ok(pass) => {
                    let number = pass.of_source(&self.counters);
                    let start_s = self.counters.window_start_s().unwrap_or_default();
                    let waiter = self.waiting.waiter(one.name.as_str());
                    let candidate = Candidate {
                        due: line::place(start_s, number, waiter),
                        host: one.host,
                        first_seen: now,
                    };
                    moved.leave(&mut self.waiting, one.name, one.domain);
                    moved.passed.push((candidate, pass));
                }
                // A waiting name continues to wait.
                Err(Refusal::NoRoom(_)) if one.kind == Kind::Retried => {}
                Err(Refusal::NoRoom(room)) => {
                    self.count_refusal();
                    self.waiting.name(&one.naming(), room, seconds(now));
                }
                Err(Refusal::Denied(_) | Refusal::Banned { .. } | Refusal::NoRule(_)) => {
                    self.count_refusal();
                    self.waiting.remove(one.name.as_str());
                }
            }
        }
        self.write(moved, writer).await
    }

    /// Returns the names that are neither known nor forgotten; the other names stop waiting. Only
    /// names that memory is unsure about are looked up in the store.
    async fn only_unknown(
        &mut self,
        asking: Vec<Asking>,
        writer: &Writer,
    ) -> Result<Vec<Asking>, StoreError> {
        // Decided once, because names are learned in the meantime.
        let asking: Vec<_> = asking
            .into_iter()
            .map(|one| (writer.is_new(&one.host), one))
            .collect();
        let unsure = asking.iter().filter(|(is_new, _)| !is_new);
        let unsure: Vec<_> = unsure.map(|(_, one)| one.host.clone()).collect();
        // The answer is in the order of the request.
        let mut unknown = writer.unknown(unsure).await?.into_iter().peekable();
        let mut kept = Vec::new();
        for (is_new, one) in asking {
            let host = &one.host;
            if is_new || unknown.next_if(|next| next == host).is_some() {
                kept.push(one);
            } else {
                self.waiting.remove(one.name.as_str());
            }
        }
        Ok(kept)
    }

    /// Writes the changes of a proven submission; the name stops waiting. Returns it
    /// unless it was known.
    pub(super) async fn write_proven(
        &mut self,
        mut moved: Moved,
        name: &DomainName,
        domain: String,
        writer: &Writer,
    ) -> Result<Vec<Host>, StoreError> {
        moved.leave(&mut self.waiting, name.clone(), domain);
        self.write(moved, writer).await
    }

    pub(super) fn count_refusal(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    async fn write(&mut self, moved: Moved, writer: &Writer) -> Result<Vec<Host>, StoreError> {
        let waiting = self.waiting.changes(CHANGES_MAX);
        if moved.passed.is_empty() && waiting.is_empty() && self.unwritten.is_empty() {
            return Ok(Vec::new());
        }
        let candidates = moved.passed.iter().map(|(candidate, _)| candidate.clone());
        let admission = Admission {
            candidates: candidates.collect(),
            counters: self.rows(&moved),
            window_start_s: self.counters.window_start_s(),
            waiting: waiting.clone(),
            brings_back: moved.brings_back,
        };
        match writer.admit(admission).await {
            Ok(made) => Ok(self.written(moved, &made)),
            Err(error) => {
                self.undo(moved, waiting);
                Err(error)
            }
        }
    }

    /// The counters to write, each once, with their current values.
    fn rows(&self, moved: &Moved) -> Vec<Row> {
        let keyed = |row: Row| ((row.table, row.id), row);
        let mut rows: BTreeMap<_, _> = self.unwritten.iter().copied().map(keyed).collect();
        for (_, pass) in &moved.passed {
            rows.extend(pass.rows(&self.counters).map(keyed));
        }
        rows.into_values().collect()
    }

    fn written(&mut self, moved: Moved, made: &[bool]) -> Vec<Host> {
        self.unwritten.clear();
        let mut admitted = Vec::new();
        for ((candidate, pass), made) in moved.passed.into_iter().zip(made) {
            if *made {
                admitted.push(candidate.host);
            } else {
                // It was admitted by other means since the look-up, and costs nothing. A crash
                // before the next write still counts it, which admits nothing more.
                let rows = self.counters.take_back(pass);
                self.unwritten.extend(rows);
            }
        }
        admitted
    }

    /// Undoes changes of which nothing is on disk. Counters that were unwritten before still are.
    fn undo(&mut self, moved: Moved, waiting: Vec<Change>) {
        for (_, pass) in moved.passed {
            self.counters.take_back(pass);
        }
        for (name, domain, waiter) in moved.left {
            self.waiting.put(name.as_str(), &domain, waiter);
        }
        self.waiting.not_written(waiting);
    }
}
