//! The closed loop: everything that can wake the daemon is one `Wake`.
//!
//! It takes what is due (①), runs checks (② to ④), keeps failures in doubt until they are confirmed, settles (⑤, ⑥) and publishes (⑦).

mod canaries;
mod dumps;
mod live;
mod taking;
mod verdicts;
mod writes;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use census::state::{Record, Verdict};
use census::time::{Calendar, Timestamp};
use dump::Force;
use gateway::control::Wish;
use protocol::Host;
use store::{Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::check::{Check, Ended};
use crate::config::Config;
use crate::confirm::Confirm;
use crate::door::Brought;
use crate::due::{Due, EarlyAsks};
use crate::fault::{Fault, Faulters, Lately};
use crate::outage::Outage;
use crate::publish::round::Done;
use crate::publish::signature;
use crate::silence::Silence;
use crate::strain;
use crate::tools::Tools;
use crate::under_way::UnderWay;

use canaries::Canaries;
use dumps::Dumps;

pub use live::{Live, LiveState, Pace};

/// The loop looks around at least this often: for what has waited too long, for outages, for the dump.
const TICK: Duration = Duration::from_secs(1);

/// Checks that ended, and writes, that are taken in within one round besides what woke it: a portion of starts at the fastest, twice over.
const CAUGHT_UP_MAX: usize = 100;

/// While checks are under way and none has ended for this long, the parts are asked whether they are well: one that hangs says nothing by itself.
const QUIET_MAX: Duration = Duration::from_secs(30);

/// A clock that moved this much against the monotonic one has been set.
const CLOCK_JUMP_MIN: Duration = Duration::from_secs(120);

/// Where the kernel tells of the machine, in a container too.
const PROC: &str = "/proc";

/// Orders that wait at most; whoever gives one waits for its answer.
pub const ORDERS_MAX: usize = 16;

/// At its end the daemon gives the hosts in flight back; what is not written by then is found in flight at the next start.
const RELEASE_WITHIN: Duration = Duration::from_secs(10);

/// What the control socket asks of the loop.
#[derive(Debug)]
pub enum Order {
    /// Names came in: look for what is due.
    Look,
    /// The host opted out by word of mouth.
    LeaveAlone {
        /// The host.
        host: Host,
    },
    /// Check this host now and tell each step; the channel closes at the end.
    Check {
        /// The host.
        host: Host,
        /// Where the steps go.
        watcher: mpsc::Sender<String>,
    },
    /// Publish now.
    Dump {
        /// Whether a list that lost too many names goes out.
        force: Force,
        /// The outcome: names, or why not.
        answer: oneshot::Sender<Result<u64, String>>,
    },
}

/// All that can wake the daemon.
enum Wake {
    Tick,
    Due,
    Shutdown,
    CheckEnded(Finished),
    Written(writes::Outcome),
    Dumped(Done),
    Order(Order),
}

/// Why a host is asked now.
enum Asked {
    /// It is due.
    InTurn,
    /// Somebody wants to watch.
    ByName(mpsc::Sender<String>),
    /// Those whose failures wait need a witness.
    Canary(Wish),
}

/// A check that ended, with its host still in flight.
struct Finished {
    record: Box<Record>,
    check: Check,
    ended: Ended,
}

/// What waits for confirmation.
#[derive(Debug)]
enum InDoubt {
    /// A verdict of the failing kind.
    Verdict(Box<Record>, Verdict),
    /// A fault of this one check: counted against the host only when others are checked well.
    Fault(Box<Record>, String, Lately),
}

impl InDoubt {
    fn record(&self) -> &Record {
        match self {
            Self::Verdict(record, _) | Self::Fault(record, _, _) => record,
        }
    }

    /// Its reason, or the verdict when it has none.
    fn reason(&self) -> String {
        match self {
            Self::Verdict(_, verdict) => {
                let (word, reason) = crate::explain::verdict_words(verdict);
                if reason.is_empty() {
                    word.to_owned()
                } else {
                    reason
                }
            }
            Self::Fault(..) => "fault".to_owned(),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Verdict(_, verdict) => {
                let (word, reason) = crate::explain::verdict_words(verdict);
                format!("{word} {reason}").trim().to_owned()
            }
            Self::Fault(_, note, _) => note.clone(),
        }
    }
}

/// The trusted daemon.
#[derive(Debug)]
pub struct Daemon {
    tools: Tools,
    store: Store,
    config: Config,
    due: Due,
    under_way: UnderWay,
    early: EarlyAsks,
    checks: JoinSet<Finished>,
    /// With the task that checks it, until that has ended.
    in_flight: HashMap<Host, Option<AbortHandle>>,
    writes: JoinSet<writes::Outcome>,
    /// Hosts whose row the store would not write: they are released when it writes again.
    stuck: Vec<Host>,
    confirm: Confirm<InDoubt>,
    faulters: Faulters,
    silence: Silence,
    canaries: Canaries,
    outage: Outage,
    live: Arc<Live>,
    orders: mpsc::Receiver<Order>,
    dumps: Dumps,
    clock_offset_ms: i64,
    /// What was last said of the machine's clock.
    clock_trouble: Option<String>,
    /// When a check last ended, or the parts were last asked.
    quiet_since: tokio::time::Instant,
    started: tokio::time::Instant,
    ticker: tokio::time::Interval,
}

impl Daemon {
    /// Takes up where the last life ended: what it left in flight is due again, the seeds are there, stale files are gone.
    ///
    /// # Errors
    /// When the store or the public directory can't be used.
    pub async fn new(
        config: Config,
        tools: Tools,
        store: Store,
        live: Arc<Live>,
        orders: mpsc::Receiver<Order>,
    ) -> anyhow::Result<Self> {
        dump::clear_stale(&config.public_dir).context("cannot publish")?;
        site::clear_stale(&config.public_dir).context("cannot publish")?;
        // While somebody looks; later a key that can't be used keeps nothing from being published.
        signature::keys(&config.data_dir).context("cannot sign what is published")?;
        let now = tools.now();
        let interrupted = tools
            .writer
            .recover(now, tools.dice.seed(), tools.calendar)
            .await?;
        if interrupted > 0 {
            tracing::info!(
                interrupted,
                "checks that the last life left behind are due again"
            );
        }
        let names = tools.door.names();
        let seeds = config
            .seeds
            .iter()
            .filter_map(|host| match names.admit_host(host.clone()) {
                Ok(host) => Some(host),
                Err(refusal) => {
                    tracing::warn!(%host, %refusal, "this seed is not admitted");
                    None
                }
            });
        let seeds = seeds.collect();
        for (host, brought) in tools.door.brought(seeds, now).await? {
            if let Brought::Refused(refusal) = brought {
                tracing::warn!(%host, %refusal, "this seed is not admitted");
            }
        }
        let published = store.reader()?.last_dump()?;
        if let Some(published) = published {
            say_odd_time(now, published.at);
            tools.clock.was_at(published.at);
        }
        let dumps = Dumps::new(now, published.map(|dump| dump.names));
        let started = tokio::time::Instant::now();
        let mut ticker = tokio::time::interval(TICK);
        ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Ok(Self {
            due: Due::new(config.starts_per_second),
            under_way: UnderWay::default(),
            early: EarlyAsks::default(),
            checks: JoinSet::new(),
            in_flight: HashMap::new(),
            writes: JoinSet::new(),
            stuck: Vec::new(),
            confirm: Confirm::new(now),
            faulters: Faulters::default(),
            silence: Silence::default(),
            canaries: Canaries::new(config.canaries.clone()),
            outage: Outage::default(),
            live,
            orders,
            dumps,
            clock_offset_ms: now.0,
            clock_trouble: None,
            quiet_since: started,
            started,
            ticker,
            tools,
            store,
            config,
        })
    }

    /// Runs until `shutdown`.
    ///
    /// # Errors
    /// When the store is closed under it: nothing can be done without.
    pub async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        loop {
            self.fill().await;
            self.show();
            match self.wake(&shutdown).await {
                // A look at an outage may wait long for an answer; the end must not.
                Wake::Tick => tokio::select! {
                    ticked = self.tick() => ticked?,
                    () = shutdown.cancelled() => break,
                },
                // The loop takes what is due each time round.
                Wake::Due => {}
                Wake::CheckEnded(finished) => self.ended(finished),
                Wake::Written(outcome) => self.written(outcome)?,
                Wake::Dumped(done) => self.dumped(done),
                Wake::Order(order) => self.obey(order).await,
                Wake::Shutdown => break,
            }
            self.catch_up()?;
        }
        self.release_all().await;
        self.store.close();
        Ok(())
    }

    async fn wake(&mut self, shutdown: &CancellationToken) -> Wake {
        let waits_for_due = self.room().free > 0;
        let until_due = self.due.look_at().since(self.tools.now());
        tokio::select! {
            biased;
            () = shutdown.cancelled() => Wake::Shutdown,
            // Before all that comes in a steady stream: a busy census must still publish and obey.
            _ = self.ticker.tick() => Wake::Tick,
            Some(outcome) = self.dumps.running.join_next() => match outcome {
                Ok(done) => Wake::Dumped(done),
                Err(_panicked) => Wake::Tick,
            },
            Some(order) = self.orders.recv() => Wake::Order(order),
            Some(outcome) = self.writes.join_next() => match outcome {
                Ok(outcome) => Wake::Written(outcome),
                Err(_panicked) => Wake::Tick,
            },
            Some(ended) = self.checks.join_next() => match ended {
                Ok(finished) => Wake::CheckEnded(finished),
                Err(_panicked) => Wake::Tick,
            },
            () = tokio::time::sleep(until_due), if waits_for_due => Wake::Due,
        }
    }

    /// What has ended and was written besides is taken in as well before the store is asked for what is due: a round for each of them would be
    /// as many transactions, each with its sync.
    fn catch_up(&mut self) -> anyhow::Result<()> {
        for _ in 0..CAUGHT_UP_MAX {
            match self.checks.try_join_next() {
                Some(Ok(finished)) => self.ended(finished),
                Some(Err(_panicked)) => {}
                None => break,
            }
        }
        for _ in 0..CAUGHT_UP_MAX {
            match self.writes.try_join_next() {
                Some(Ok(outcome)) => self.written(outcome)?,
                Some(Err(_panicked)) => {}
                None => break,
            }
        }
        Ok(())
    }

    fn ended(&mut self, finished: Finished) {
        self.quiet_since = tokio::time::Instant::now();
        self.conclude(finished);
    }

    /// Somebody asked us to leave this host alone: a check of it ends at once, and no list of before that goes out after.
    fn leave_alone(&mut self, host: Host) {
        if let Some(task) = self.in_flight.get_mut(&host).and_then(Option::take) {
            task.abort();
            self.give_back_soon(host, "it was asked for to be left alone");
        }
        if !self.dumps.running.is_empty() {
            self.order_dump(Force::No, None);
        }
    }

    async fn tick(&mut self) -> anyhow::Result<()> {
        let now = self.tools.now();
        self.watch_clock(now).await;
        self.tools.places.strained(strain::look(Path::new(PROC)));
        match self.store.is_in_place() {
            Ok(()) => {}
            // Whoever watches this process starts a new one, which opens the new file.
            Err(error @ StoreError::Replaced { .. }) => anyhow::bail!("{error}"),
            Err(error) => self.fail_everything(&Fault::Store(error)),
        }
        self.confirm
            .expire(now)
            .into_iter()
            .for_each(|failure| self.drop_unconfirmed(failure));
        self.listen_for_silence(now);
        if self.outage.wants_look(now) {
            self.look_at_outage(now).await;
        }
        self.ask_the_quiet().await;
        if !self.outage.is_on() {
            self.ask_canaries(now).await;
        }
        self.publish_due(now);
        Ok(())
    }

    /// A part that hangs keeps its checks until their longest time is over; whoever looks meanwhile should be told.
    async fn ask_the_quiet(&mut self) {
        if self.outage.is_on() || self.checks.is_empty() || self.quiet_since.elapsed() < QUIET_MAX {
            return;
        }
        if let Some(what) = self.trouble().await {
            self.pause(what);
        }
        self.quiet_since = tokio::time::Instant::now();
    }

    async fn watch_clock(&mut self, now: Timestamp) {
        let trouble = self.tools.clock.trouble();
        match &trouble {
            Some(what) if self.clock_trouble.is_none() => tracing::error!(what, "the clock"),
            None if self.clock_trouble.is_some() => {
                tracing::info!("the census goes by this machine's clock again");
            }
            Some(_) | None => {}
        }
        self.clock_trouble = trouble;
        let expected = Timestamp(self.clock_offset_ms).plus(self.started.elapsed());
        let drift = now.since(expected).max(expected.since(now));
        if drift < CLOCK_JUMP_MIN {
            return;
        }
        tracing::warn!(
            drift_s = drift.as_secs(),
            "the clock was set, or this machine slept; due times further away than the longest interval are brought back"
        );
        self.clock_offset_ms = now.minus(self.started.elapsed()).0;
        let ordinary = self.tools.calendar.dump_interval(self.tools.dice.jitter());
        self.dumps.clock_was_set(now, ordinary);
        self.due.poke();
        self.confirm.clock_was_set(now);
        if let Err(error) = self.tools.writer.clamp(now, self.tools.calendar).await {
            self.fail_everything(&Fault::Store(error));
        }
    }

    /// Starts a check of a named host, whatever its due time; says why not.
    async fn take_by_name(
        &mut self,
        host: &Host,
        now: Timestamp,
        asked: Asked,
    ) -> Result<(), String> {
        let host = self
            .tools
            .door
            .names()
            .admit_host(host.clone())
            .map_err(|refusal| format!("{host}: {refusal}"))?;
        let brought = self.tools.door.brought(vec![host.clone()], now).await;
        for (host, brought) in brought.map_err(|error| error.to_string())? {
            if let Brought::Refused(refusal) = brought {
                return Err(format!("{host}: {refusal}"));
            }
        }
        let taken = self
            .tools
            .writer
            .take_one(&host, now, self.tools.dice.jitter(), self.tools.calendar)
            .await;
        match taken {
            Ok(Some(taken)) => {
                self.start(taken, asked);
                Ok(())
            }
            Ok(None) => Err(format!(
                "{host} opted out or is held by a moderator; it is not asked"
            )),
            Err(StoreError::InFlight { .. }) => Err(format!(
                "{host} is being checked at this moment, or waits for confirmation"
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Look => self.due.poke(),
            Order::LeaveAlone { host } => self.leave_alone(host),
            Order::Check { host, watcher } => {
                let now = self.tools.now();
                if self.outage.is_on() {
                    let what = self
                        .outage
                        .describe()
                        .map(|(what, _)| what)
                        .unwrap_or_default();
                    watcher
                        .try_send(format!("not checked, because of an outage: {what}"))
                        .ok();
                } else if let Err(why_not) = self
                    .take_by_name(&host, now, Asked::ByName(watcher.clone()))
                    .await
                {
                    watcher.try_send(format!("not checked: {why_not}")).ok();
                }
            }
            Order::Dump { force, answer } => {
                self.order_dump(force, Some(answer));
            }
        }
    }

    fn show(&self) {
        let (allowed, bounds) = self.tools.places.allowed();
        let pace = Pace {
            checks_allowed: allowed,
            checks_min: bounds.least,
            checks_max: bounds.most,
            starts_per_second: self.due.rate(),
            under_way: self.under_way.by_name(),
        };
        self.live.show(
            self.tools.now(),
            self.in_flight.len(),
            pace,
            self.confirm.waiting(),
            self.outage.describe(),
            self.silence.describe(),
        );
    }
}

/// The census can't know which of two clocks was right; whoever starts it may.
fn say_odd_time(now: Timestamp, last_dump: Timestamp) {
    let last = crate::explain::rfc3339(last_dump);
    if last_dump > now.plus(CLOCK_JUMP_MIN) {
        tracing::error!(
            last,
            "the last list is of a time that has not come yet: is this machine's clock right? Once it is set past that list, the census goes by it at once"
        );
    } else if now.since(last_dump) > Calendar::REAL.unlisted_after() {
        tracing::warn!(
            last,
            "the last list is weeks old: the census was off, or this machine's clock is ahead. A list that lost many names is held back"
        );
    }
}
