//! The closed loop: everything that can wake the daemon is one [`Wake`].
//!
//! It takes what is due (①), runs checks (② to ④), keeps failures in doubt until they are confirmed, settles (⑤, ⑥) and publishes (⑦).

mod live;
mod writes;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use census::state::{Record, Verdict};
use census::time::Timestamp;
use dump::Force;
use protocol::Host;
use store::{Store, StoreError, Taken};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::check::{self, Check, Ended};
use crate::config::Config;
use crate::confirm::{Confirm, Doubt, Outcome};
use crate::due::Due;
use crate::fault::{Fault, Reach};
use crate::outage::Outage;
use crate::publish::{PublishError, publish};
use crate::tools::Tools;

pub use live::{Live, LiveState};

/// The loop looks around at least this often: for what has waited too long, for outages, for the dump.
const TICK: Duration = Duration::from_secs(1);

/// A dump that failed is tried again after this.
const DUMP_AGAIN_AFTER: Duration = Duration::from_secs(300);

/// A clock that moved this much against the monotonic one has been set.
const CLOCK_JUMP_MIN: Duration = Duration::from_secs(120);

/// Orders that wait at most; whoever gives one waits for its answer.
pub const ORDERS_MAX: usize = 16;

/// A host whose failure is in doubt is asked again after this and up to twice as much: when its paces allow it, and while what was shown to
/// work still does.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// At its end the daemon gives the hosts in flight back; what is not written by then is found in flight at the next start.
const RELEASE_WITHIN: Duration = Duration::from_secs(10);

/// What the control socket asks of the loop.
#[derive(Debug)]
pub enum Order {
    /// Names came in: look for what is due.
    Look,
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
    Dumped(Result<u64, PublishError>),
    Order(Order),
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
    Fault(Box<Record>, String),
}

impl InDoubt {
    fn record(&self) -> &Record {
        match self {
            Self::Verdict(record, _) | Self::Fault(record, _) => record,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Verdict(_, verdict) => {
                let (word, reason) = crate::explain::verdict_words(verdict);
                format!("{word} {reason}").trim().to_owned()
            }
            Self::Fault(_, note) => note.clone(),
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
    checks: JoinSet<Finished>,
    in_flight: HashSet<Host>,
    writes: JoinSet<writes::Outcome>,
    /// Hosts whose row the store would not write: they are released when it writes again.
    stuck: Vec<Host>,
    confirm: Confirm<InDoubt>,
    next_canary: usize,
    outage: Outage,
    live: Arc<Live>,
    orders: mpsc::Receiver<Order>,
    dumping: JoinSet<Result<u64, PublishError>>,
    dump_waiters: Vec<oneshot::Sender<Result<u64, String>>>,
    next_dump: Timestamp,
    clock_offset_ms: i64,
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
        let seeds =
            config
                .seeds
                .iter()
                .filter_map(|host| match tools.names.admit_host(host.clone()) {
                    Ok(host) => Some(host),
                    Err(refusal) => {
                        tracing::warn!(%host, %refusal, "this seed is not admitted");
                        None
                    }
                });
        let seeds = seeds.collect();
        tools.writer.add_now(seeds, now).await?;
        let started = tokio::time::Instant::now();
        let mut ticker = tokio::time::interval(TICK);
        ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Ok(Self {
            due: Due::new(),
            checks: JoinSet::new(),
            in_flight: HashSet::new(),
            writes: JoinSet::new(),
            stuck: Vec::new(),
            confirm: Confirm::new(now),
            next_canary: 0,
            outage: Outage::default(),
            live,
            orders,
            dumping: JoinSet::new(),
            dump_waiters: Vec::new(),
            next_dump: now,
            clock_offset_ms: now.0,
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
                Wake::Tick => self.tick().await,
                // The loop takes what is due each time round.
                Wake::Due => {}
                Wake::CheckEnded(finished) => self.conclude(finished),
                Wake::Written(outcome) => self.written(outcome)?,
                Wake::Dumped(outcome) => self.dumped(outcome),
                Wake::Order(order) => self.obey(order).await,
                Wake::Shutdown => break,
            }
        }
        self.release_all().await;
        self.store.close();
        Ok(())
    }

    async fn wake(&mut self, shutdown: &CancellationToken) -> Wake {
        let waits_for_due = self.room() > 0 && !self.outage.is_on();
        let until_due = self.due.look_at().since(self.tools.now());
        tokio::select! {
            biased;
            () = shutdown.cancelled() => Wake::Shutdown,
            // Before all that comes in a steady stream: a busy census must still publish.
            _ = self.ticker.tick() => Wake::Tick,
            Some(outcome) = self.writes.join_next() => match outcome {
                Ok(outcome) => Wake::Written(outcome),
                Err(_panicked) => Wake::Tick,
            },
            Some(ended) = self.checks.join_next() => match ended {
                Ok(finished) => Wake::CheckEnded(finished),
                Err(_panicked) => Wake::Tick,
            },
            Some(outcome) = self.dumping.join_next() => match outcome {
                Ok(outcome) => Wake::Dumped(outcome),
                Err(_panicked) => Wake::Tick,
            },
            Some(order) = self.orders.recv() => Wake::Order(order),
            () = tokio::time::sleep(until_due), if waits_for_due => Wake::Due,
        }
    }

    /// How many more hosts may be opened.
    fn room(&self) -> u32 {
        u32::try_from(self.config.opens_max.saturating_sub(self.checks.len())).unwrap_or(u32::MAX)
    }

    /// ① Takes what is due and starts its checks.
    async fn fill(&mut self) {
        if self.outage.is_on() {
            return;
        }
        match self.due.take(self.room(), &self.tools, &self.store).await {
            Ok(taken) => taken.into_iter().for_each(|taken| self.start(taken, None)),
            Err(error) => self.fail_everything(&Fault::Store(error)),
        }
    }

    fn start(&mut self, taken: Taken, watcher: Option<mpsc::Sender<String>>) {
        let check = Check::new(&taken.record, &self.tools, watcher);
        self.in_flight.insert(check.host.clone());
        let tools = self.tools.clone();
        self.checks.spawn(async move {
            let ended = check::run(&check, &tools).await;
            Finished {
                record: Box::new(taken.record),
                check,
                ended,
            }
        });
    }

    /// What an ended check means: settle it, doubt it, or give the host back.
    fn conclude(
        &mut self,
        Finished {
            record,
            check,
            ended,
        }: Finished,
    ) {
        let host = check.host.clone();
        let now = self.tools.now();
        let duration_ms = now.since(check.began).as_millis();
        match ended {
            Ended::Verdict {
                verdict,
                witness,
                doubt,
            } => {
                let (word, reason) = crate::explain::verdict_words(&verdict);
                tracing::info!(%host, check.id = %check.id, verdict = word, reason, duration_ms, "checked");
                self.live.count(word, now);
                if let Some(witness) = witness {
                    for (failure, outcome) in self.confirm.alive(&host, witness, now) {
                        match outcome {
                            Outcome::Counts => self.settle_confirmed(failure),
                            Outcome::AskAgain => self.ask_again(failure, now),
                        }
                    }
                }
                if verdict.is_failing() {
                    check.step(|| format!("verdict: {word} {reason}; it counts once other hosts have come out alive"));
                    self.doubt(InDoubt::Verdict(record, verdict), doubt, check.began, now);
                } else {
                    check.step(|| format!("verdict: {word} {reason}"));
                    self.write(host, writes::Write::Settle(record, verdict));
                }
            }
            Ended::Deferred { why, retry_after } => {
                tracing::debug!(%host, ?why, retry_after_ms = retry_after.as_millis(), "deferred");
                check.step(|| "deferred: no verdict, asked again soon".to_owned());
                let due = now.plus(writes::spread(retry_after, self.tools.dice.jitter()));
                self.give_back(
                    host,
                    due,
                    &format!("put off: {}", crate::explain::deferral_words(why)),
                );
            }
            Ended::Offline => {
                check.step(|| "offline: no verdict, asked again soon".to_owned());
                self.pause("the gateway has no network".to_owned());
                self.give_back_soon(host, "we had no network");
            }
            Ended::Fault(fault) => {
                check.step(|| format!("fault of ours, nothing counted: {fault}"));
                self.fault(record, &check, &fault, now);
            }
        }
    }

    fn fault(&mut self, record: Box<Record>, check: &Check, fault: &Fault, now: Timestamp) {
        let host = record.host.clone();
        self.live.count("fault", now);
        match fault.reach() {
            Reach::Everything => {
                self.fail_everything(fault);
                self.give_back_soon(host, &fault.to_string());
            }
            Reach::ThisCheck => {
                tracing::warn!(%host, check.id = %check.id, %fault, "a check failed on our side; nothing is counted");
                self.doubt(
                    InDoubt::Fault(record, fault.to_string()),
                    Doubt {
                        families: Vec::new(),
                        dns: false,
                    },
                    check.began,
                    now,
                );
            }
        }
    }

    fn doubt(&mut self, failure: InDoubt, doubt: Doubt, began: Timestamp, now: Timestamp) {
        let host = failure.record().host.clone();
        if let Some(oldest) = self.confirm.fail(host, failure, doubt, began, now) {
            self.drop_unconfirmed(oldest);
        }
    }

    /// Others have lived, but not close enough to tell an outage of ours from its failure.
    fn ask_again(&mut self, failure: InDoubt, now: Timestamp) {
        let note = format!(
            "failed once ({}); asked again, now that another host has answered",
            failure.words()
        );
        let due = now.plus(writes::spread(ASK_AGAIN_AFTER, self.tools.dice.jitter()));
        self.give_back(failure.record().host.clone(), due, &note);
    }

    /// Others have lived close by, or it failed again after others had lived: it was them.
    fn settle_confirmed(&mut self, failure: InDoubt) {
        match failure {
            InDoubt::Verdict(record, verdict) => {
                self.write(record.host.clone(), writes::Write::Settle(record, verdict))
            }
            InDoubt::Fault(record, note) => self.write(
                record.host.clone(),
                writes::Write::CountFault { record, note },
            ),
        }
    }

    /// Nobody came out alive in time, so it may have been us.
    fn drop_unconfirmed(&mut self, failure: InDoubt) {
        let note = format!(
            "not counted, because no other host answered: {}",
            failure.words()
        );
        self.give_back_soon(failure.record().host.clone(), &note);
    }

    async fn tick(&mut self) {
        let now = self.tools.now();
        self.watch_clock(now).await;
        self.confirm
            .expire(now)
            .into_iter()
            .for_each(|failure| self.drop_unconfirmed(failure));
        if self.outage.wants_look(now) {
            self.look_at_outage(now).await;
        }
        if !self.outage.is_on() && self.confirm.wants_canary(now) {
            self.ask_canary(now).await;
        }
        if now >= self.next_dump {
            self.start_dump(Force::No);
        }
    }

    async fn watch_clock(&mut self, now: Timestamp) {
        let expected = Timestamp(self.clock_offset_ms).plus(self.started.elapsed());
        let drift = now.since(expected).max(expected.since(now));
        if drift < CLOCK_JUMP_MIN {
            return;
        }
        tracing::warn!(
            drift_s = drift.as_secs(),
            "the clock was set; due times further away than the longest interval are brought back"
        );
        self.clock_offset_ms = now.minus(self.started.elapsed()).0;
        self.next_dump = self
            .next_dump
            .min(now.plus(self.tools.calendar.dump_interval(self.tools.dice.jitter())));
        self.due.poke();
        if let Err(error) = self.tools.writer.clamp(now, self.tools.calendar).await {
            self.fail_everything(&Fault::Store(error));
        }
    }

    async fn ask_canary(&mut self, now: Timestamp) {
        let count = self.config.canaries.len();
        for _ in 0..count {
            let index = self.next_canary % count;
            self.next_canary = self.next_canary.wrapping_add(1);
            let Some(host) = self.config.canaries.get(index).cloned() else {
                return;
            };
            if self.take_by_name(&host, now, None).await.is_ok() {
                tracing::info!(%host, waiting = self.confirm.waiting(), "failures wait and nobody has answered for a minute: asking a canary");
                return;
            }
        }
    }

    /// Starts a check of a named host, whatever its due time; says why not.
    async fn take_by_name(
        &mut self,
        host: &Host,
        now: Timestamp,
        watcher: Option<mpsc::Sender<String>>,
    ) -> Result<(), String> {
        let host = self
            .tools
            .names
            .admit_host(host.clone())
            .map_err(|refusal| format!("{host}: {refusal}"))?;
        self.tools
            .writer
            .add_now(vec![host.clone()], now)
            .await
            .map_err(|error| error.to_string())?;
        let taken = self
            .tools
            .writer
            .take_one(&host, now, self.tools.dice.jitter(), self.tools.calendar)
            .await;
        match taken {
            Ok(Some(taken)) => {
                self.start(taken, watcher);
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
                } else if let Err(why_not) =
                    self.take_by_name(&host, now, Some(watcher.clone())).await
                {
                    watcher.try_send(format!("not checked: {why_not}")).ok();
                }
            }
            Order::Dump { force, answer } => {
                self.dump_waiters.push(answer);
                self.start_dump(force);
            }
        }
    }

    /// ⑦ Publishes, unless a dump is being written already.
    fn start_dump(&mut self, force: Force) {
        if !self.dumping.is_empty() {
            return;
        }
        let now = self.tools.now();
        self.next_dump = now.plus(self.tools.calendar.dump_interval(self.tools.dice.jitter()));
        let (directory, calendar) = (self.config.public_dir.clone(), self.tools.calendar);
        let reader = self.store.reader();
        let writer = self.tools.writer.clone();
        self.dumping.spawn(async move {
            let reader = reader?;
            let published = tokio::task::spawn_blocking(move || {
                publish(&reader, &directory, now, calendar, force)
            });
            let names = published.await.map_err(|_panicked| StoreError::Closed)??;
            writer.record_dump(now, names).await?;
            Ok(names)
        });
    }

    fn dumped(&mut self, outcome: Result<u64, PublishError>) {
        let now = self.tools.now();
        let outcome = match outcome {
            Ok(names) => {
                tracing::info!(names, "published");
                Ok(names)
            }
            Err(error) => {
                tracing::error!(%error, "no new list was published; the old one stands");
                self.next_dump = now.plus(DUMP_AGAIN_AFTER);
                Err(error.to_string())
            }
        };
        self.live.dumped(&outcome);
        for waiter in self.dump_waiters.drain(..) {
            // Who asked may have gone away.
            waiter.send(outcome.clone()).ok();
        }
    }

    fn show(&self) {
        self.live.show(
            self.in_flight.len(),
            self.confirm.waiting(),
            self.outage.describe(),
        );
    }
}
