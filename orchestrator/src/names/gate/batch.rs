//! A number of names decided on and written together.
//!
//! In: names that some source named. Out: their rows with the counters that they moved and the changes of who waits, in one transaction or none at
//! all. Refused: nothing by itself; when the store fails, all that was counted is given back and who waited waits.

use std::collections::BTreeMap;

use admission::counters::Row;
use admission::gate::Refusal;
use admission::waiting::{Change, Naming};
use admission::{
    Candidate as Asked, DomainName, Names, Pass, Room, SourceId, Subject, Terms, Waiter, Waiting,
};
use census::time::Timestamp;
use store::{Admission, Candidate, StoreError, Writer};

use super::book::{Book, LONG_BATCH_MAX, seconds};

/// Changes among those who wait that one transaction writes: each of a batch's names may take another's place, and as many may be too old.
const CHANGES_MAX: usize = 4 * LONG_BATCH_MAX;

/// A name that asks to enter.
#[derive(Debug)]
pub(super) struct Asking {
    candidate: Candidate,
    name: DomainName,
    domain: String,
    shared_suffix: Option<String>,
    source: SourceId,
    kind: Kind,
}

/// Whether it is named now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// By its own registered domain.
    NamedByItsOwn,
    /// By somebody else.
    NamedByOthers,
    /// No: it waits, and its turn has come.
    Retried,
}

impl Asking {
    pub(super) fn named(
        candidate: Candidate,
        names: &Names,
        source: SourceId,
        source_domain: &str,
    ) -> Self {
        let mut asking = Self::retried(candidate, names, source);
        asking.kind = if asking.domain == source_domain {
            Kind::NamedByItsOwn
        } else {
            Kind::NamedByOthers
        };
        asking
    }

    pub(super) fn retried(candidate: Candidate, names: &Names, source: SourceId) -> Self {
        let name = DomainName::from(&candidate.host);
        Self {
            domain: names.registered_domain(&candidate.host),
            shared_suffix: names.suffixes.shared_suffix(&name).map(str::to_owned),
            source,
            kind: Kind::Retried,
            name,
            candidate,
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
            source: self.source,
            is_independent: self.kind == Kind::NamedByOthers,
        }
    }
}

/// What a batch moved, as long as it is not written.
#[derive(Default)]
pub(super) struct Moved {
    passed: Vec<(Candidate, Pass)>,
    /// Who waited and is let in, with the registered domain.
    left: Vec<(DomainName, String, Waiter)>,
    /// Somebody vouched for them: forgotten names come back.
    brings_back: bool,
}

impl Moved {
    /// By a host that somebody vouched for.
    pub(super) fn proven(candidate: Candidate, pass: Pass) -> Self {
        Self {
            passed: vec![(candidate, pass)],
            left: Vec::new(),
            brings_back: true,
        }
    }

    /// The name waits no more.
    fn leave(&mut self, waiting: &mut Waiting, name: DomainName, domain: String) {
        if let Some(waiter) = waiting.waiter(name.as_str()).copied() {
            waiting.remove(name.as_str());
            self.left.push((name, domain, waiter));
        }
    }
}

impl Book {
    /// Goes to the window that holds `now`.
    pub(super) fn enter(&mut self, now: Timestamp) {
        let before = self.counters.window_start_s();
        self.counters.enter(seconds(now));
        if self.counters.window_start_s() != before {
            (self.refused, self.passed_over) = (0, 0);
            self.unwritten.clear();
        }
    }

    /// Whether anything could come of asking the store about a name: it has room, or would wait.
    pub(super) fn is_worth_asking(&mut self, one: &Asking, terms: &Terms, now: Timestamp) -> bool {
        let subject = Subject::Source(one.source);
        let is_worth = match terms.look(&self.counters, one.asked(), subject) {
            Ok(()) => true,
            Err(Refusal::NoRoom(_)) => self.waiting.would_change(&one.naming(), seconds(now)),
            Err(Refusal::Denied(_) | Refusal::Banned { .. } | Refusal::NoRule(_)) => {
                // It may have waited under the rules of before.
                self.waiting.remove(one.name.as_str());
                false
            }
        };
        if !is_worth {
            self.passed_over = self.passed_over.saturating_add(1);
        }
        is_worth
    }

    /// What has no room for a name that waits; nothing when it may be decided on.
    pub(super) fn lacks(&self, one: &Asking, terms: &Terms) -> Option<Room> {
        match terms.look(&self.counters, one.asked(), Subject::Source(one.source)) {
            Err(Refusal::NoRoom(room)) => Some(room),
            Ok(()) | Err(Refusal::Denied(_) | Refusal::Banned { .. } | Refusal::NoRule(_)) => None,
        }
    }

    /// Decides on those of the names that are not known, and writes what came of it. Gives how many are in now.
    pub(super) async fn decide(
        &mut self,
        asking: Vec<Asking>,
        terms: &Terms,
        writer: &Writer,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let unknown = self.only_unknown(asking, writer).await?;
        self.let_in(unknown, terms, writer, now).await
    }

    /// As [`Book::decide`], for names that are not known.
    pub(super) async fn let_in(
        &mut self,
        unknown: Vec<Asking>,
        terms: &Terms,
        writer: &Writer,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut moved = Moved::default();
        for one in unknown {
            let subject = Subject::Source(one.source);
            match terms.decide(&mut self.counters, one.asked(), subject, seconds(now)) {
                Ok(pass) => {
                    moved.leave(&mut self.waiting, one.name, one.domain);
                    moved.passed.push((one.candidate, pass));
                }
                // Who waits already goes on waiting.
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

    /// Leaves the names that are neither known nor forgotten; the others wait no more. The store is asked for those alone that memory is not sure of.
    async fn only_unknown(
        &mut self,
        asking: Vec<Asking>,
        writer: &Writer,
    ) -> Result<Vec<Asking>, StoreError> {
        // Decided once: names are learned meanwhile.
        let asking: Vec<_> = asking
            .into_iter()
            .map(|one| (writer.is_new(&one.candidate.host), one))
            .collect();
        let unsure = asking.iter().filter(|(is_new, _)| !is_new);
        let unsure: Vec<_> = unsure.map(|(_, one)| one.candidate.host.clone()).collect();
        // In the order in which they were asked for.
        let mut unknown = writer.unknown(unsure).await?.into_iter().peekable();
        let mut kept = Vec::new();
        for (is_new, one) in asking {
            let host = &one.candidate.host;
            if is_new || unknown.next_if(|next| next == host).is_some() {
                kept.push(one);
            } else {
                self.waiting.remove(one.name.as_str());
            }
        }
        Ok(kept)
    }

    /// Writes what a proven submission moved; should the name wait, it does no more. Gives how many are in now.
    pub(super) async fn write_proven(
        &mut self,
        mut moved: Moved,
        name: &DomainName,
        domain: String,
        writer: &Writer,
    ) -> Result<u64, StoreError> {
        moved.leave(&mut self.waiting, name.clone(), domain);
        self.write(moved, writer).await
    }

    /// One more name was refused.
    pub(super) fn count_refusal(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    async fn write(&mut self, moved: Moved, writer: &Writer) -> Result<u64, StoreError> {
        let waiting = self.waiting.changes(CHANGES_MAX);
        if moved.passed.is_empty() && waiting.is_empty() && self.unwritten.is_empty() {
            return Ok(0);
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

    /// The counters to write, each once, as they are now.
    fn rows(&self, moved: &Moved) -> Vec<Row> {
        let keyed = |row: Row| ((row.table, row.id), row);
        let mut rows: BTreeMap<_, _> = self.unwritten.iter().copied().map(keyed).collect();
        for (_, pass) in &moved.passed {
            rows.extend(pass.rows(&self.counters).map(keyed));
        }
        rows.into_values().collect()
    }

    fn written(&mut self, moved: Moved, made: &[bool]) -> u64 {
        self.unwritten.clear();
        let mut admitted: u64 = 0;
        for ((_, pass), made) in moved.passed.into_iter().zip(made) {
            if *made {
                admitted = admitted.saturating_add(1);
            } else {
                // It came in by word of mouth since it was looked up, and costs nothing. A crash before the next write counts it all the same,
                // which lets nothing more through.
                let rows = self.counters.take_back(pass);
                self.unwritten.extend(rows);
            }
        }
        admitted
    }

    /// Nothing of it is on disk: all is as before. What was unwritten before still is.
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
