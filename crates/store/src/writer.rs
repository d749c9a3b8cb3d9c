//! Step 6 of 7: changes become rows.
//!
//! Any number of tasks send requests through a bounded queue. Each is answered after the commit
//! that holds it (invariant I6). A request that fails leaves the others of its batch alone.
//!
//! One thread (`writer/thread.rs`) owns the only connection that writes. It commits the waiting
//! requests, up to a bound, as one transaction: an fsync costs the same for one verdict as for a
//! hundred. `writer/handle.rs` has the handle that all requests go through.

use census::class::PerClass;
use census::state::{OptedOutBy, Record};
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::Change;
use protocol::Host;

use crate::db::error::StoreError;
use crate::tables::admitted::{self, Admission, Remembered};
use crate::tables::dumps::{self, DumpRecord};
use crate::tables::hosts::add::{ADD_MAX, AddedAs};
use crate::tables::hosts::commit::Committed;
use crate::tables::hosts::opt_out::{OptIn, OptOut, Park, ParkedCursor};
use crate::tables::hosts::take::Taken;
use crate::tables::hosts::{add, commit, opt_out, recovery, take};
use crate::writer::handle::Writer;

mod batch;
pub(crate) mod handle;
pub(crate) mod thread;

impl Writer {
    /// Takes hosts that are due, of each class `wanted` at most, those first that have been due for
    /// longest: gives each its ordinary next due time and marks it in flight, in one transaction.
    ///
    /// Never more than there are `jitters` (one a host), or than 1000. A paced group gives no more
    /// than its pace allows: its other hosts are put off in the same transaction. It looks at 1000
    /// hosts at most, so more may be due when it gives fewer than are wanted.
    ///
    /// # Errors
    /// A fault of ours; nothing was taken.
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

    /// Takes one host whatever its due time, otherwise as [`Writer::take_due`].
    ///
    /// - `Ok(Some(taken))` if it is in flight from now on
    /// - `Ok(None)` if there is no such host
    ///
    /// # Errors
    /// [`StoreError::InFlight`] when it is being checked already, [`StoreError::NeverAsked`] when it opted out by word of mouth or is parked,
    /// [`StoreError::GroupDenied`] when the operator denies its group; else a fault of ours. What its group has used up of its pace does not count: somebody
    /// wants to know.
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

    /// Writes a change: the row and its history; the host is no longer in flight, and its interruptions, faults and last note are cleared. All of it
    /// or nothing. The candidate that it names is for the gate to let in.
    ///
    /// An opt-out by word of mouth or a hold that came in since the check began stands: see
    /// [`Committed::overruled`].
    ///
    /// # Errors
    /// [`StoreError::Unknown`] when there is no such row; else a fault of ours.
    pub async fn commit(&self, change: Change) -> Result<Committed, StoreError> {
        self.call(move |c| commit::commit(c, &change)).await
    }

    /// Ends a check that said nothing about its host (deferred, offline, fault, unconfirmed, interrupted): it is no longer in flight and due at `due`,
    /// unless it is never asked. A `note` (at most 300 bytes, the rest is cut) replaces the last one, for explanations.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] when there is no such row; else a fault of ours.
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

    /// Counts a fault that only this host's check ran into; gives how many there were in a row. A verdict sets it back.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] when there is no such row; else a fault of ours.
    pub async fn count_fault(&self, host: &Host) -> Result<u32, StoreError> {
        let host = host.clone();
        self.call(move |c| commit::count_fault(c, &host)).await
    }

    /// Whether a name is surely known or forgotten, by memory alone: nothing is to be done about it. Of one that is not recognised nothing follows, and
    /// now and then that is said of one that is known: the database has the last word ([`Writer::unknown`]).
    pub fn recognises(&self, host: &Host) -> bool {
        self.known.recognises(host)
    }

    /// Whether a name is surely neither known nor forgotten, by memory alone, unless it comes in at this moment: then [`Writer::admit`] does nothing for
    /// it. While the names are still being read, at a start, no name is.
    pub fn is_new(&self, host: &Host) -> bool {
        self.known.is_new(host)
    }

    /// How many names are recognised, and the bytes of memory that this takes.
    pub fn recognised(&self) -> (usize, usize) {
        (self.known.names(), self.known.bytes())
    }

    /// Those of the names that are neither known nor forgotten, in their order. Writes nothing. 500 names a transaction.
    ///
    /// # Errors
    /// A fault of ours.
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

    /// Adds names that the gate has room for, with the counters that they moved and what changed
    /// among those who wait: all of it or nothing. Known names are not touched, forgotten ones stay
    /// out. Gives, for each name, whether it was new. The caller bounds how much it is.
    ///
    /// # Errors
    /// A fault of ours; nothing was written.
    pub async fn admit(&self, admission: Admission) -> Result<Vec<bool>, StoreError> {
        let candidates = admission.candidates.iter();
        let hosts: Vec<Host> = candidates.map(|one| one.host.clone()).collect();
        let made = self.call(move |c| admitted::admit(c, &admission)).await?;
        // Committed. Those of which no row was made were known, or are forgotten.
        hosts.iter().for_each(|host| self.known.learn(host));
        Ok(made)
    }

    /// All that the gate wrote which still counts.
    ///
    /// # Errors
    /// A fault of ours.
    pub async fn remembered(&self) -> Result<Remembered, StoreError> {
        self.call(admitted::remembered).await
    }

    /// Adds names by hand, due at once; known ones are not touched, forgotten and parked ones come
    /// back. 500 names a transaction.
    ///
    /// # Errors
    /// A fault of ours; some of the names may be in already.
    pub async fn add_now(
        &self,
        hosts: Vec<Host>,
        now: Timestamp,
    ) -> Result<Vec<(Host, AddedAs)>, StoreError> {
        let mut added = Vec::with_capacity(hosts.len());
        for chunk in hosts.chunks(ADD_MAX) {
            let chunk = chunk.to_vec();
            added.extend(self.call(move |c| add::add_now(c, &chunk, now)).await?);
        }
        added.iter().for_each(|(host, _)| self.known.learn(host));
        Ok(added)
    }

    /// Adds hosts as another crawler knew them, due when their records say; known ones are not touched, forgotten ones come back. 500 a transaction.
    ///
    /// # Errors
    /// A fault of ours; some of the hosts may be in already.
    pub async fn import(&self, records: Vec<Record>) -> Result<Vec<(Host, AddedAs)>, StoreError> {
        let mut added = Vec::with_capacity(records.len());
        for chunk in records.chunks(ADD_MAX) {
            let chunk = chunk.to_vec();
            added.extend(self.call(move |c| add::import(c, &chunk)).await?);
        }
        added.iter().for_each(|(host, _)| self.known.learn(host));
        Ok(added)
    }

    /// Whether a host may be asked at all: one that opted out by word of mouth, or is parked, may not.
    ///
    /// # Errors
    /// A fault of ours.
    pub async fn may_be_asked(&self, host: &Host) -> Result<bool, StoreError> {
        let host = host.clone();
        self.call(move |c| opt_out::may_be_asked(c, &host)).await
    }

    /// Opts a host out, known or not.
    ///
    /// # Errors
    /// A fault of ours.
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

    /// Takes an opt-out back, for whoever made it.
    ///
    /// # Errors
    /// A fault of ours.
    pub async fn opt_in(
        &self,
        host: &Host,
        by: OptedOutBy,
        now: Timestamp,
    ) -> Result<OptIn, StoreError> {
        let host = host.clone();
        self.call(move |c| opt_out::opt_in(c, &host, by, now)).await
    }

    /// Parks a host whose name is no longer admitted: it is kept and never asked.
    ///
    /// # Errors
    /// A fault of ours.
    pub async fn park(&self, host: &Host, now: Timestamp) -> Result<Park, StoreError> {
        let named = host.clone();
        let done = self.call(move |c| opt_out::park(c, &named, now)).await?;
        self.known.learn(host);
        Ok(done)
    }

    /// Brings back every parked host that `admits` accepts, due within the hour: as alive if that
    /// was its last verdict, otherwise as discovered. Looks at 500 a transaction. Gives the number
    /// of hosts that came back.
    ///
    /// # Errors
    /// A fault of ours; some may be back already, and the next call finds the others.
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

    /// Mends at start, before the first check is taken, what a crash, a jump of the clock or new rules of names left behind. Gives how many checks had
    /// been interrupted: they are due again within the hour, the third time in a row at their ordinary time.
    ///
    /// # Errors
    /// A fault of ours; some of it may be done.
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

    /// Brings due times back that lie further away than the longest interval, after the clock has jumped. Gives how many. 2000 a transaction.
    ///
    /// # Errors
    /// A fault of ours; some may be brought back already.
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

    /// Writes a page and syncs it, without changing anything: whether the disk takes writes.
    ///
    /// # Errors
    /// A fault of ours.
    pub async fn try_write(&self) -> Result<(), StoreError> {
        self.call(recovery::try_write).await
    }

    /// Remembers that a dump of so many names was published.
    ///
    /// # Errors
    /// A fault of ours.
    pub async fn record_dump(&self, at: Timestamp, names: u64) -> Result<(), StoreError> {
        let dump = DumpRecord { at, names };
        self.call(move |c| dumps::record(c, dump)).await
    }
}

#[cfg(test)]
mod tests;
