//! The shell around the scheduler: everything that can wake the daemon becomes an [`Event`], and
//! each [`scheduler::Command`] becomes work.
//!
//! Everything that takes time runs in a task and ends in an event, so the loop never waits for a
//! disk, a socket or a container.

mod carry_out;
mod checks;
mod clock_watch;
mod orders;
mod parts;
mod pressure;
mod publishing;
mod running;
mod slot_desk;
mod snapshot;
mod state;
mod take;

use std::hash::RandomState;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use scheduler::event::Trigger;
use scheduler::{Event, LastList, Scheduler, Settings};
use store::{Store, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::check::services::Services;
use crate::check::slot_queue::Signal;
use crate::config::Config;
use crate::ground::fault::Fault;
use crate::publish::round::Done;
use crate::publish::{Publisher, signature};

use carry_out::hour::Hour;
use clock_watch::ClockWatch;
use orders::Ordered;
use parts::store_trouble;
use running::Running;
use slot_desk::SlotDesk;
use state::Publishing;

pub use checks::COUNTS_LATER;
pub use orders::{ORDERS_MAX, Order};
pub use snapshot::{Live, LiveState, Pace, troubles};
pub use state::Daemon;
pub use take::{read_demand, read_load};

/// Longest time between two looks at the machine, the clock, the database's file, and whatever has
/// waited too long.
const TICK: Duration = Duration::from_secs(1);

/// Pause before due hosts are counted again when none was due: candidates are admitted while checks
/// run, and some of them are due at once.
const COUNT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Where the kernel describes the machine, in a container too.
const PROC: &str = "/proc";

/// Time to release the hosts in flight at shutdown. The next start finds those that were not
/// released in flight.
const RELEASE_WITHIN: Duration = Duration::from_secs(10);

fn settings(config: &Config, services: &Services, published: Option<LastList>) -> Settings {
    Settings {
        containers: config.checks,
        opens_max: config.opens_max,
        starts_per_second: config.starts_per_second,
        canaries: config.canaries.clone(),
        has_second_way: services.second_gateway.is_some(),
        peers_every: services.peers_every,
        calendar: config.calendar,
        published,
        publish_interval: services.calendar.dump_interval(services.random.jitter()),
        count_again_after: COUNT_AGAIN_AFTER,
        look_around_every: TICK,
        name_key: RandomState::new(),
    }
}

impl Daemon {
    /// Continues where the last run ended: hosts left in flight become due again, the seeds are
    /// admitted, and stale files are removed.
    pub async fn new(
        config: Config,
        publisher: Publisher,
        services: Services,
        store: Store,
        live: Arc<Live>,
        orders: mpsc::Receiver<Order>,
        signals: mpsc::Receiver<Signal>,
    ) -> anyhow::Result<Self> {
        ::publish::tidy(&config.public_dir).context("cannot publish")?;
        // Now, while the operator is watching; later, an unusable key stops no publication.
        signature::keys(&config.data_dir).context("cannot sign what is published")?;
        let now = services.now();
        let interrupted = services
            .writer
            .recover(now, services.random.seed(), services.calendar)
            .await?;
        if interrupted > 0 {
            tracing::info!(
                interrupted,
                "checks that the last run did not finish are due again"
            );
        }
        if services.second_gateway.is_none() {
            services.writer.forget_ways().await?;
        }
        take::admit_seeds(&config.seeds, &services, now).await?;
        let reader = store.reader()?;
        let (published, first) = (reader.last_dump()?, reader.first_dump(1)?);
        if let Some(published) = published {
            clock_watch::log_odd_time(now, published.at);
            services.clock.was_at(published.at);
            live.listed(published.at);
        }
        let published = published.map(|dump| LastList { first, at: dump.at });
        let settings = settings(&config, &services, published);
        let mut ticker = tokio::time::interval(TICK);
        ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut daemon = Self {
            scheduler: Scheduler::new(settings, now),
            checks: Running::default(),
            reader: Arc::new(Mutex::new(reader)),
            work: JoinSet::new(),
            asks: JoinSet::new(),
            publishing: Publishing::default(),
            desk: SlotDesk::default(),
            signals,
            orders,
            ordered: JoinSet::new(),
            watcher: None,
            live,
            clock: ClockWatch::start(now),
            looks: pressure::Looks::default(),
            hour: Hour::start(now, services.calendar),
            ticker,
            services,
            store,
            config,
            publisher,
        };
        // The list at the start covers hosts that withdrew just before the end. They don't wait
        // for the clock.
        if published.is_some_and(|last| last.at > now)
            && crate::publish::names_withdrawn(&daemon.config.public_dir, &daemon.store.reader()?)
        {
            daemon.handle(Event::Withdrawn);
        }
        Ok(daemon)
    }

    /// Runs until `shutdown`.
    ///
    /// # Errors
    /// The store is closed, its file was replaced, or a task panicked: the daemon can't continue.
    pub async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        self.handle(Event::Tick);
        while let Some(wake) = self.wake(&shutdown).await? {
            match wake {
                Wake::Tick => self.tick()?,
                Wake::Event(event) => self.handle(event),
                Wake::Signal(signal) => {
                    if let Some(event) = self.desk.receive(signal, &self.checks) {
                        self.handle(event);
                    }
                }
                Wake::Order(order) => self.obey(order),
                Wake::CheckEnded(finished) => self.check_ended(finished),
                Wake::Ordered(ordered) => self.start_ordered(ordered),
                Wake::Published(done) => {
                    let event = self.published(done);
                    self.handle(event);
                }
            }
        }
        self.release_all().await;
        self.store.close();
        Ok(())
    }

    /// The next event; `None` at the end.
    async fn wake(&mut self, shutdown: &CancellationToken) -> anyhow::Result<Option<Wake>> {
        loop {
            let now = self.services.now();
            let until_tick = self.scheduler.wakes_at(now).since(now);
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(None),
                // Before all that arrives in a steady stream: a busy census must still publish and
                // obey.
                _ = self.ticker.tick() => return Ok(Some(Wake::Tick)),
                Some(order) = self.orders.recv() => return Ok(Some(Wake::Order(order))),
                Some(done) = self.publishing.next() => return Ok(Some(Wake::Published(done))),
                Some(event) = self.desk.returned() => return Ok(Some(Wake::Event(event))),
                Some(signal) = self.signals.recv() => return Ok(Some(Wake::Signal(signal))),
                Some(joined) = self.ordered.join_next() => {
                    return Ok(Some(Wake::Ordered(joined.context("a task of the daemon panicked")?)));
                }
                Some(joined) = self.asks.join_next() => {
                    return Ok(Some(Wake::Event(joined.context("a task of the daemon panicked")??)));
                }
                Some(joined) = self.work.join_next() => {
                    return Ok(Some(Wake::Event(joined.context("a task of the daemon panicked")??)));
                }
                Some(ended) = self.checks.next() => {
                    // `None` is a check that was aborted.
                    if let Some(finished) = ended {
                        return Ok(Some(Wake::CheckEnded(finished)));
                    }
                }
                () = tokio::time::sleep(until_tick) => return Ok(Some(Wake::Event(Event::Tick))),
            }
        }
    }

    /// Carries out the scheduler's commands for an event.
    fn handle(&mut self, event: Event) {
        let now = self.services.now();
        for command in self.scheduler.on(event, now) {
            self.carry_out(command, now);
        }
        let snapshot = self.scheduler.snapshot();
        self.live.show(now, snapshot);
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Look => self.handle(Event::RowsChanged),
            Order::LeaveAlone { host } => self.handle(Event::OptedOut { host }),
            Order::Unlist => self.handle(Event::Withdrawn),
            Order::Check { host, watcher } => self.check_now(host, watcher),
            Order::Dump { force, answer } => self.publish_now(force, answer),
        }
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        self.watch_clock();
        let meters = &self.services.meters;
        if let Some(line) = self.hour.line(self.services.now(), || meters.ended()) {
            tracing::info!("{line}");
        }
        let (pressure, cause) = self.looks.look(Path::new(PROC));
        self.live.pressed(pressure, cause);
        self.handle(Event::Pressure(pressure));
        match self.store.location().check() {
            Ok(()) => {}
            // The supervisor starts a new process, which opens the new file.
            Err(error @ StoreError::Replaced { .. }) => anyhow::bail!("{error}"),
            Err(error) => {
                let what = Fault::Store(error).to_string();
                self.handle(Event::PartFailed { what });
            }
        }
        self.handle(Event::Tick);
        self.show_trouble();
        Ok(())
    }

    fn watch_clock(&mut self) {
        let now = self.services.now();
        self.clock.log_trouble(self.services.clock.trouble());
        let Some(jump) = self.clock.jump(now) else {
            return;
        };
        tracing::warn!(
            drift_s = jump.as_secs(),
            "the clock was set, or this machine slept; due times beyond the longest interval were brought forward"
        );
        self.live.resumed(now);
        self.handle(Event::ClockSet);
        let (writer, calendar) = (self.services.writer.clone(), self.services.calendar);
        let location = self.store.location().clone();
        self.asks.spawn(async move {
            Ok(match writer.clamp(now, calendar).await {
                Ok(_clamped) => Event::RowsChanged,
                Err(error) => Event::PartFailed {
                    what: store_trouble(error, &location)?,
                },
            })
        });
    }

    /// Ends all checks and releases their hosts. Dropping a check ends its container and its
    /// egress.
    async fn release_all(&mut self) {
        tracing::info!(
            in_flight = self.scheduler.in_flight().count(),
            "shutting down"
        );
        self.publishing.cancel.cancel();
        self.checks.end_all().await;
        self.asks.shutdown().await;
        let writing = async {
            while let Some(joined) = self.ordered.join_next().await {
                if let Ok(Ordered {
                    taken: Ok(taken), ..
                }) = joined
                {
                    let trigger = Trigger::Manual;
                    let taken = Event::TakenOne { taken, trigger };
                    drop(self.scheduler.on(taken, self.services.now()));
                }
            }
            while let Some(joined) = self.work.join_next().await {
                if let Ok(Ok(event)) = joined {
                    // The scheduler's further commands are dropped: nothing is started any more.
                    drop(self.scheduler.on(event, self.services.now()));
                }
            }
            for host in self.scheduler.in_flight() {
                let due = self.services.again_soon();
                let note = Some("interrupted because the census ended".to_owned());
                self.services.writer.release(host, due, note).await.ok();
            }
        };
        if tokio::time::timeout(RELEASE_WITHIN, writing).await.is_err() {
            tracing::warn!("the database is slow; some hosts will be in flight at the next start");
        }
    }
}

enum Wake {
    Tick,
    Event(Event),
    Signal(Signal),
    Order(Order),
    CheckEnded(running::Finished),
    Published(Done),
    Ordered(Ordered),
}
