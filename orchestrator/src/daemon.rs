//! The closed loop: everything that can wake the daemon is one `Wake`.
//!
//! It takes what is due (①), runs checks (② to ④), keeps failures in doubt until they are confirmed, settles (⑤, ⑥) and publishes (⑦).

mod dumps;
mod live;
mod verdicts;
mod writes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use census::state::{ParkedWhy, Record, Verdict};
use census::time::Timestamp;
use dump::Force;
use protocol::Host;
use store::{Store, StoreError, Taken};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::check::{self, Check, Ended};
use crate::config::Config;
use crate::confirm::Confirm;
use crate::due::Due;
use crate::fault::Fault;
use crate::outage::Outage;
use crate::publish::PublishError;
use crate::tools::Tools;

use dumps::Dumps;

pub use live::{Live, LiveState};

/// The loop looks around at least this often: for what has waited too long, for outages, for the dump.
const TICK: Duration = Duration::from_secs(1);

/// A clock that moved this much against the monotonic one has been set.
const CLOCK_JUMP_MIN: Duration = Duration::from_secs(120);

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
    /// With the task that checks it, until that has ended.
    in_flight: HashMap<Host, Option<AbortHandle>>,
    writes: JoinSet<writes::Outcome>,
    /// Hosts whose row the store would not write: they are released when it writes again.
    stuck: Vec<Host>,
    confirm: Confirm<InDoubt>,
    next_canary: usize,
    outage: Outage,
    live: Arc<Live>,
    orders: mpsc::Receiver<Order>,
    dumps: Dumps,
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
        let published = store.reader()?.last_dump()?.map(|dump| dump.names);
        let dumps = Dumps::new(now, published);
        let started = tokio::time::Instant::now();
        let mut ticker = tokio::time::interval(TICK);
        ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Ok(Self {
            due: Due::new(),
            checks: JoinSet::new(),
            in_flight: HashMap::new(),
            writes: JoinSet::new(),
            stuck: Vec::new(),
            confirm: Confirm::new(now),
            next_canary: 0,
            outage: Outage::default(),
            live,
            orders,
            dumps,
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
                // A look at an outage may wait long for an answer; the end must not.
                Wake::Tick => tokio::select! {
                    () = self.tick() => {}
                    () = shutdown.cancelled() => break,
                },
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
            // Before all that comes in a steady stream: a busy census must still publish and obey.
            _ = self.ticker.tick() => Wake::Tick,
            Some(outcome) = self.dumps.running.join_next() => match outcome {
                Ok(outcome) => Wake::Dumped(outcome),
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
            Ok(taken) => {
                for taken in taken {
                    self.start_if_admitted(taken).await;
                }
            }
            Err(error) => self.fail_everything(&Fault::Store(error)),
        }
    }

    /// The rule for names may have changed since this one came in: then it is parked, and never stops the daemon (design §8).
    async fn start_if_admitted(&mut self, taken: Taken) {
        let host = taken.record.host.clone();
        let Err(refusal) = self.tools.names.admit_host(host.clone()) else {
            self.start(taken, None);
            return;
        };
        tracing::warn!(%host, %refusal, "no longer a name for the census: parked");
        self.in_flight.insert(host.clone(), None);
        let now = self.tools.now();
        match self
            .tools
            .writer
            .park(&host, ParkedWhy::InvalidName, now)
            .await
        {
            Ok(_parked) => self.give_back(host, now, "its name is no longer admitted"),
            Err(error) => {
                self.stuck.push(host);
                self.fail_everything(&Fault::Store(error));
            }
        }
    }

    fn start(&mut self, taken: Taken, watcher: Option<mpsc::Sender<String>>) {
        let check = Check::new(&taken.record, &self.tools, watcher);
        let host = check.host.clone();
        let tools = self.tools.clone();
        let task = self.checks.spawn(async move {
            let ended = check::run(&check, &tools).await;
            Finished {
                record: Box::new(taken.record),
                check,
                ended,
            }
        });
        self.in_flight.insert(host, Some(task));
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
        if now >= self.dumps.next {
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
        let ordinary = self.tools.calendar.dump_interval(self.tools.dice.jitter());
        self.dumps.next = self.dumps.next.min(now.plus(ordinary));
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
                } else if let Err(why_not) =
                    self.take_by_name(&host, now, Some(watcher.clone())).await
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
        self.live.show(
            self.tools.now(),
            self.in_flight.len(),
            self.confirm.waiting(),
            self.outage.describe(),
        );
    }
}
