//! Tries waiting names again: when a window begins, after a reload, and every ten minutes. Each
//! time, parked hosts whose names are admitted again return first, and held groups are read again.
//!
//! Admits the names that have room now: the most often named first, then those that have waited for
//! longest. Names that were not named for a long time are dropped. A fault of ours ends the round,
//! and the next one follows ten minutes later.

use std::sync::Arc;
use std::time::Duration;

use admission::Room;
use census::time::{Calendar, Timestamp};
use protocol::Host;
use store::StoreError;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::NameGate;
use super::batch::Asking;
use super::state::{BATCH_MAX, seconds};
use crate::ground::clock::{Clock, Random};

/// Interval between looks at the clock: a new window's room is used within a minute.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Interval between tries within a window, in seconds: counts that were undone, and what a source
/// left unused, make room too.
const TRY_EVERY_SECONDS: u64 = 600;

#[derive(Debug, Default)]
pub(super) struct Rounds {
    last_s: Option<u64>,
    window_start_s: Option<u64>,
}

impl Rounds {
    /// Whether a round is due. If so, the round begins.
    pub(super) fn begin(&mut self, window_start_s: Option<u64>, now_s: u64) -> bool {
        let is_new_window = self.window_start_s != window_start_s;
        // After a clock was set back, the names must not wait until it has caught up.
        let is_long_ago = |last: u64| now_s.abs_diff(last) >= TRY_EVERY_SECONDS;
        let is_due = is_new_window || self.last_s.is_none_or(is_long_ago);
        if is_due {
            (self.last_s, self.window_start_s) = (Some(now_s), window_start_s);
        }
        is_due
    }

    /// Makes a round due at the next look.
    pub(super) fn hurry(&mut self) {
        self.last_s = None;
    }
}

/// Tries names again until `shutdown`.
///
/// # Errors
/// None; it is a `Result` so that it can be joined with the loop.
pub async fn keep(
    gate: NameGate,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    calendar: Calendar,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut rounds = Rounds::default();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = gate.0.reloaded.notified() => rounds.hurry(),
            _ = look.tick() => {}
        }
        let now = clock.now();
        if let Err(error) = gate.grow_older(LOOK_EVERY).await {
            tracing::warn!(%error, "how long the census has run could not be stored");
        }
        if !rounds.begin(gate.enter(now).await, seconds(now)) {
            continue;
        }
        let unparked = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            unparked = gate.unpark(now, random.seed(), calendar) => unparked,
        };
        match unparked {
            Ok(0) => {}
            Ok(hosts) => tracing::info!(
                hosts,
                "parked hosts are checked again: their names are admitted again"
            ),
            Err(error) => {
                tracing::warn!(%error, "parked hosts could not be read; the next try is in ten minutes")
            }
        }
        if let Err(error) = gate.refresh_held().await {
            tracing::warn!(%error, "held groups could not be read; the next try is in ten minutes");
        }
        let round = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            round = gate.try_waiting(now) => round,
        };
        match round {
            Ok(0) => {}
            Ok(admitted) => tracing::info!(admitted, "waiting names were admitted"),
            Err(error) => tracing::warn!(%error, "waiting names could not be tried again"),
        }
    }
}

impl NameGate {
    /// Unparks the hosts whose names the list of suffixes in force admits. Returns the number of
    /// hosts.
    async fn unpark(
        &self,
        now: Timestamp,
        jitter_seed: u64,
        calendar: Calendar,
    ) -> Result<u64, StoreError> {
        let names = self.names();
        let admits = move |host: &Host| names.admit_host(host.clone()).is_ok();
        self.0
            .writer
            .unpark(admits, now, jitter_seed, calendar)
            .await
    }

    /// The census ran for this long. A young one grows older from its first list with a name on.
    pub async fn grow_older(&self, ran: Duration) -> Result<(), StoreError> {
        let mut state = self.0.state.lock().await;
        if state.young_left_s > 0 {
            state.young_left_s = self.0.writer.grow_older(ran).await?;
        }
        Ok(())
    }

    /// Moves to the window that contains `now`; returns its start.
    async fn enter(&self, now: Timestamp) -> Option<u64> {
        let mut state = self.0.state.lock().await;
        self.enter_window(&mut state, now);
        self.show(&state, &self.terms());
        state.counters.window_start_s()
    }

    /// One round over all waiting names, batch by batch, so that names that arrive meanwhile are
    /// decided on in between. Returns the number of names admitted.
    pub async fn try_waiting(&self, now: Timestamp) -> Result<u64, StoreError> {
        let (mut after, mut admitted) = (None, 0_u64);
        loop {
            let mut state = self.0.state.lock().await;
            let terms = self.terms();
            self.enter_window(&mut state, now);
            state.waiting.drop_old(BATCH_MAX, seconds(now));
            let portion = state.waiting.next(after.as_ref(), BATCH_MAX);
            let names = self.names();
            let (mut asking, mut is_full) = (Vec::new(), false);
            for (rank, waiter) in &portion {
                let Ok(host) = Host::parse(rank.name()) else {
                    state.waiting.remove(rank.name());
                    continue;
                };
                let one = Asking::retried(host, &names, waiter.source);
                match state.lacks(&one, &terms) {
                    None => asking.push(one),
                    Some(Room::Total) => {
                        is_full = true;
                        break;
                    }
                    Some(Room::Rule | Room::Source | Room::SharedSuffix) => {}
                }
            }
            let decided = state.decide(asking, &terms, &self.0.writer, now).await;
            self.show(&state, &terms);
            let count = u64::try_from(decided?.len()).unwrap_or(u64::MAX);
            admitted = admitted.saturating_add(count);
            after = portion.last().map(|(rank, _)| rank.clone());
            if is_full || after.is_none() {
                return Ok(admitted);
            }
            drop(state);
            tokio::task::yield_now().await;
        }
    }
}
