//! Step 6 of 7: changes become rows.
//!
//! Any number of tasks send requests through a bounded queue. Each is answered after the commit
//! that holds it (invariant I6). A request that fails does not affect the others of its batch.
//!
//! One thread (`queue/thread.rs`) owns the only connection that writes. It commits the waiting
//! requests, up to a bound, as one transaction: an fsync costs the same for one verdict as for a
//! hundred. `queue/handle.rs` has the handle that all requests use.

use std::time::Duration;

use census::class::PerClass;
use census::state::{OptedOutBy, Record};
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::Change;
use protocol::Host;

use crate::db::error::StoreError;
use crate::queue::handle::Writer;
use crate::tables::admitted::{self, Admission, Remembered};
use crate::tables::dumps::{self, DumpRecord};
use crate::tables::hosts::add::{ADD_MAX, AddedAs};
use crate::tables::hosts::commit::Committed;
use crate::tables::hosts::opt_out::{OptIn, OptOut, Park, ParkedCursor};
use crate::tables::hosts::take::Taken;
use crate::tables::hosts::{add, commit, opt_out, recovery, take};

impl Writer {
    /// Takes due hosts, at most `wanted` of each class, the longest due first. Sets each host's
    /// next ordinary due time and marks it in flight, in one transaction.
    ///
    /// Takes at most one host per jitter, and at most 1000. Hosts that exceed the pace of their
    /// group are postponed in the same transaction. Examines at most 1000 hosts, so more may be due
    /// when it returns fewer than wanted.
    pub async fn take_due(
        &self,
        now: Timestamp,
        wanted: PerClass<u32>,
        jitters: Vec<Jitter>,
        calendar: Calendar,
    ) -> Result<Vec<Taken>, StoreError> {
        self.call(move |c| take::take_due(c, now, wanted, &jitters, calendar))
            .await
    }

    /// Takes one host, whatever its due time. Otherwise as [`Writer::take_due`].
    ///
    /// - `Ok(Some(taken))` if it is in flight from now on
    /// - `Ok(None)` if there is no such host
    ///
    /// # Errors
    /// - [`StoreError::InFlight`] if it is being checked already
    /// - [`StoreError::NeverAsked`] if an owner or a moderator opted it out, or if it is parked
    /// - [`StoreError::GroupDenied`] if the operator denies its group
    /// - another error if the database fails
    ///
    /// The pace of its group does not matter, since somebody asks for this host.
    pub async fn take_one(
        &self,
        host: &Host,
        now: Timestamp,
        jitter: Jitter,
        calendar: Calendar,
    ) -> Result<Option<Taken>, StoreError> {
        let host = host.clone();
        self.call(move |c| take::take_one(c, &host, now, jitter, calendar))
            .await
    }

    /// Writes a change: the row and its history. The host is no longer in flight, and its
    /// interruptions, faults and last note are cleared. All of it is written or nothing. The target
    /// of a move is not added: the gate decides about it.
    ///
    /// An opt-out by an owner or a moderator, or a hold, that was made since the check began
    /// remains in force: see [`Committed::overruled`].
    /// [`StoreError::Unknown`] if the host has no row, or a database error.
    pub async fn commit(&self, change: Change) -> Result<Committed, StoreError> {
        self.call(move |c| commit::commit(c, &change)).await
    }

    /// Ends a check without a verdict (deferred, offline, fault, unconfirmed, interrupted): the
    /// host is no longer in flight and is due at `due`, unless it is never checked. `note` replaces
    /// the last one, for explanations; it is cut at 300 bytes.
    pub async fn release(
        &self,
        host: &Host,
        due: Timestamp,
        note: Option<String>,
    ) -> Result<(), StoreError> {
        let host = host.clone();
        self.call(move |c| commit::release(c, &host, due, note.as_deref()))
            .await
    }

    /// Counts a fault that affected only this host's check. Returns the number of consecutive
    /// faults. A verdict resets it.
    pub async fn count_fault(&self, host: &Host) -> Result<u32, StoreError> {
        let host = host.clone();
        self.call(move |c| commit::count_fault(c, &host)).await
    }

    /// Whether a name is known or forgotten, according to memory: then nothing needs to be done.
    /// `false` says nothing: it is also returned now and then for a known name, and the database
    /// decides ([`Writer::unknown`]).
    pub fn recognises(&self, host: &Host) -> bool {
        self.known.recognises(host)
    }

    /// Whether a name is neither known nor forgotten, according to memory, unless it is being added
    /// right now; in that case [`Writer::admit`] does nothing. Always `false` while the names are
    /// being loaded at a start.
    pub fn is_new(&self, host: &Host) -> bool {
        self.known.is_new(host)
    }

    /// Number of names that are recognised, and the bytes of memory that they take.
    pub fn recognised(&self) -> (usize, usize) {
        (self.known.names(), self.known.bytes())
    }

    /// The names that are neither known nor forgotten, in their order. Writes nothing. Takes 500
    /// names per transaction.
    pub async fn unknown(&self, hosts: Vec<Host>) -> Result<Vec<Host>, StoreError> {
        let mut unknown = Vec::new();
        for chunk in hosts.chunks(ADD_MAX) {
            let asked = chunk.to_vec();
            let found = self.call(move |c| admitted::unknown(c, &asked)).await?;
            let mut left = found.iter().peekable();
            for host in chunk {
                if left.next_if(|next| *next == host).is_none() {
                    self.known.learn(host);
                }
            }
            unknown.extend(found);
        }
        Ok(unknown)
    }

    /// Adds names that the gate has room for, the changed counters, and changes among waiting
    /// names: all of it or nothing. Known names stay unchanged, and forgotten ones stay out.
    /// Returns, for each name, whether it was new. The caller bounds the size.
    pub async fn admit(&self, admission: Admission) -> Result<Vec<bool>, StoreError> {
        let candidates = admission.candidates.iter();
        let hosts: Vec<Host> = candidates.map(|one| one.host.clone()).collect();
        let names = self.names();
        let made = self
            .call(move |c| admitted::admit(c, &admission, names.as_deref()))
            .await?;
        // After the commit. Names without a new row were known or are forgotten.
        hosts.iter().for_each(|host| self.known.learn(host));
        Ok(made)
    }

    /// Moves hosts that wait for their first check up by `step`.
    pub async fn move_up(&self, hosts: Vec<Host>, step: Duration) -> Result<(), StoreError> {
        self.call(move |c| admitted::move_up(c, &hosts, step)).await
    }

    /// The census ran for this long. Returns the seconds for which it stays young.
    pub async fn grow_older(&self, ran: Duration) -> Result<u32, StoreError> {
        self.call(move |c| admitted::grow_older(c, ran)).await
    }

    /// All state of the gate that is still valid.
    pub async fn remembered(&self) -> Result<Remembered, StoreError> {
        self.call(admitted::remembered).await
    }

    /// Adds names by hand, due at once. Known ones stay unchanged, forgotten and parked ones come
    /// back. Takes 500 names per transaction.
    ///
    /// # Errors
    /// Fails on a database error; some of the names may have been added already.
    pub async fn add_now(
        &self,
        hosts: Vec<Host>,
        now: Timestamp,
    ) -> Result<Vec<(Host, AddedAs)>, StoreError> {
        let mut added = Vec::with_capacity(hosts.len());
        for chunk in hosts.chunks(ADD_MAX) {
            let (chunk, names) = (chunk.to_vec(), self.names());
            let add = move |c: &_| add::add_now(c, &chunk, now, names.as_deref());
            added.extend(self.call(add).await?);
        }
        added.iter().for_each(|(host, _)| self.known.learn(host));
        Ok(added)
    }

    /// Adds hosts as their records say, for simulations and benchmarks. Known ones stay unchanged,
    /// forgotten ones come back. Takes 500 hosts per transaction.
    ///
    /// # Errors
    /// Fails on a database error; some of the hosts may have been added already.
    pub async fn import(&self, records: Vec<Record>) -> Result<Vec<(Host, AddedAs)>, StoreError> {
        let mut added = Vec::with_capacity(records.len());
        for chunk in records.chunks(ADD_MAX) {
            let chunk = chunk.to_vec();
            added.extend(self.call(move |c| add::import(c, &chunk)).await?);
        }
        added.iter().for_each(|(host, _)| self.known.learn(host));
        Ok(added)
    }

    /// Whether a host may be checked at all: not if an owner or a moderator opted it out, or if it
    /// is parked.
    pub async fn may_be_asked(&self, host: &Host) -> Result<bool, StoreError> {
        let host = host.clone();
        self.call(move |c| opt_out::may_be_asked(c, &host)).await
    }

    /// Opts a host out, known or not.
    pub async fn opt_out(
        &self,
        host: &Host,
        by: OptedOutBy,
        now: Timestamp,
    ) -> Result<OptOut, StoreError> {
        let named = host.clone();
        let done = self
            .call(move |c| opt_out::opt_out(c, &named, by, now))
            .await?;
        self.known.learn(host);
        Ok(done)
    }

    /// Takes back the opt-out of the party `by`.
    pub async fn opt_in(
        &self,
        host: &Host,
        by: OptedOutBy,
        now: Timestamp,
    ) -> Result<OptIn, StoreError> {
        let host = host.clone();
        self.call(move |c| opt_out::opt_in(c, &host, by, now)).await
    }

    /// Parks a host whose name is no longer admitted: it is kept and never checked.
    pub async fn park(&self, host: &Host, now: Timestamp) -> Result<Park, StoreError> {
        let named = host.clone();
        let done = self.call(move |c| opt_out::park(c, &named, now)).await?;
        self.known.learn(host);
        Ok(done)
    }

    /// Brings back every parked host that `admits` accepts, due within the hour: as alive if that
    /// was its last verdict, otherwise as discovered. Examines 500 hosts per transaction. Returns
    /// the number of hosts that came back.
    ///
    /// # Errors
    /// Fails on a database error; some hosts may be back already, and the next call finds the
    /// others.
    pub async fn unpark(
        &self,
        admits: impl Fn(&Host) -> bool + Clone + Send + 'static,
        now: Timestamp,
        jitter_seed: u64,
        calendar: Calendar,
    ) -> Result<u64, StoreError> {
        let (mut from, mut all) = (Some(ParkedCursor::default()), 0_u64);
        while let Some(cursor) = from {
            let admits = admits.clone();
            let portion = self
                .call(move |c| opt_out::unpark(c, cursor, &admits, now, jitter_seed, calendar))
                .await?;
            all = all.saturating_add(portion.0);
            from = portion.1;
        }
        Ok(all)
    }

    /// Repairs the traces of a crash, a clock jump or new rules for names. Runs at start, before
    /// the first check. Returns the number of interrupted checks. They are due again within the
    /// hour, or at their ordinary time after the third interruption in a row.
    pub async fn recover(
        &self,
        now: Timestamp,
        jitter_seed: u64,
        calendar: Calendar,
    ) -> Result<u64, StoreError> {
        self.clamp(now, calendar).await?;
        self.call(move |c| recovery::recover(c, now, jitter_seed, calendar))
            .await
    }

    /// Brings back due times that are further away than the longest interval, after a clock jump.
    /// Returns their number. Takes 2000 per transaction.
    /// Fails on a database error; some due times may be brought back already.
    pub async fn clamp(&self, now: Timestamp, calendar: Calendar) -> Result<u64, StoreError> {
        let mut all = 0_u64;
        loop {
            let brought = self
                .call(move |c| recovery::clamp(c, now, calendar))
                .await?;
            all = all.saturating_add(brought.into());
            if brought < recovery::CLAMPED_MAX {
                return Ok(all);
            }
        }
    }

    /// Writes and syncs a page without changing anything, to test whether the disk accepts writes.
    pub async fn try_write(&self) -> Result<(), StoreError> {
        self.call(recovery::try_write).await
    }

    /// Stores that a dump was published.
    pub async fn record_dump(&self, dump: DumpRecord) -> Result<(), StoreError> {
        self.call(move |c| dumps::record(c, dump)).await
    }
}

#[cfg(test)]
mod tests;
