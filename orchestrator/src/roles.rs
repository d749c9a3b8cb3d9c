//! The long-lived roles: daemon, launcher, gateways, intake, console, push service. Each runs until
//! SIGTERM or SIGINT.

mod open_files;

use std::path::Path;
use std::sync::Arc;

use ::push::process::Node;
use anyhow::Context;
use census::time::rfc3339;
use files::{Lock, ServeError};
use launcher::BollardEngine;
use protocol::egress::Way;
use scheduler::slots::concurrency::Bounds;
use store::Store;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::admit::gate::{self, NameGate};
use crate::check::services::Services;
use crate::check::slot_queue::SlotQueue;
use crate::config::Config;
use crate::daemon::{Daemon, Live, ORDERS_MAX};
use crate::discover::lists;
use crate::discover::walks;
use crate::ground::clock::{Clock, Random, SteadyClock, SystemClock};
use crate::groups;
use crate::serve::console::{ConsoleHandler, ConsoleServer};
use crate::serve::control::{ControlSocket, Handler};
use crate::serve::intake::proofs::Visits;
use crate::serve::intake::{IntakeHandler, IntakeServer};
use crate::serve::metrics::survey::Places;
use crate::serve::metrics::{MetricsServer, Source, Surveyor};
use crate::serve::push::{PushHandler, PushServer};

/// Takes the lock of the one process that serves the database or socket at `path`.
pub(crate) fn serve_alone(role: &str, path: &Path) -> Result<Lock, ServeError> {
    Lock::serve(path, role, &rfc3339(SystemClock.now()))
}

/// Tries waiting names again until `shutdown`.
fn waiting_names(
    services: &Services,
    shutdown: CancellationToken,
) -> impl Future<Output = anyhow::Result<()>> + use<> {
    let (gate, calendar) = (services.gate.clone(), services.calendar);
    let (clock, random) = (services.clock.clone(), services.random.clone());
    gate::retry::keep(gate, clock, random, calendar, shutdown)
}

pub(crate) async fn run(config: &Config) -> anyhow::Result<()> {
    config.require_contact()?;
    warn_lab_mode(config);
    let (sources, publisher) = (config.sources()?, config.publisher()?);
    let _serving = serve_alone("run", &config.database())?;
    let shutdown = until_signal()?;
    open_files::raise();
    let store = store::open(&config.database())?;
    let clock: Arc<dyn Clock> = Arc::new(SteadyClock::start());
    let (slots, signals) = SlotQueue::new();
    let services = config.services(
        store.writer(),
        gate(config, &store).await?,
        clock.clone(),
        Random::from_os(),
        slots,
    );
    let live = Arc::new(Live::new(clock.now(), services.meters.clone()));
    let (orders, waiting_orders) = mpsc::channel(ORDERS_MAX);
    let handler = Handler::with_daemon(&services, orders, live.clone()).with_sources(&sources);
    let intake = intake_server(config, &store, &services, &handler)?;
    let console = console_server(config, &store, &services, &handler)?;
    let push = push_server(config, &services)?;
    let metrics = metrics_server(config, &store, &services, &handler)?;
    let waiting = waiting_names(&services, shutdown.clone());
    let grouped = groups::keep(services.clone(), shutdown.clone());
    let lists = lists::keep::keep(
        services.clone(),
        sources,
        config.suffix_list.clone(),
        shutdown.clone(),
    );
    let (state, seen) = (live.clone(), clock.clone());
    let walking = walks::keep::keep(
        services.clone(),
        move || state.state(seen.now()).is_quiet(),
        config.walks_per_hour,
        shutdown.clone(),
    );
    let reloads = reload_on_hangup(services.gate.clone(), shutdown.clone())?;
    let daemon = Daemon::new(
        config.clone(),
        publisher,
        services,
        store,
        live,
        waiting_orders,
        signals,
    )
    .await?;
    let control = ControlSocket::open(&config.control_socket())?;
    let control = control.serve(handler, shutdown.clone());
    let Bounds { least, most } = config.checks;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), database = %config.database().display(), "the census runs, {least} to {most} checks at once");
    // When one fails, the process ends, and its supervisor starts a new one.
    tokio::try_join!(
        control,
        if_there(intake.map(|server| server.serve(shutdown.clone()))),
        if_there(console.map(|server| server.serve(shutdown.clone()))),
        if_there(push.map(|server| server.serve(shutdown.clone()))),
        if_there(metrics.map(|server| server.serve(shutdown.clone()))),
        waiting,
        grouped,
        lists,
        walking,
        reloads,
        daemon.run(shutdown.clone())
    )?;
    Ok(())
}

/// Serves at a socket, if it is open.
async fn if_there(serving: Option<impl Future<Output = anyhow::Result<()>>>) -> anyhow::Result<()> {
    match serving {
        Some(serving) => serving.await,
        None => Ok(()),
    }
}

fn intake_server(
    config: &Config,
    store: &Store,
    services: &Services,
    handler: &Handler,
) -> anyhow::Result<Option<IntakeServer>> {
    let Some(path) = &config.intake_socket else {
        return Ok(None);
    };
    let proofs = Arc::new(Visits::new(services.clone()));
    let gateway = services.gateway.clone();
    let answers = IntakeHandler::new(handler.clone(), store.reader()?, proofs, gateway);
    IntakeServer::open(path, answers).map(Some)
}

fn console_server(
    config: &Config,
    store: &Store,
    services: &Services,
    handler: &Handler,
) -> anyhow::Result<Option<ConsoleServer>> {
    let Some(path) = &config.console_socket else {
        return Ok(None);
    };
    let (reader, services) = (store.reader()?, services.clone());
    let answers = ConsoleHandler::new(handler.clone(), reader, services, config.data_dir.clone());
    ConsoleServer::open(path, answers).map(Some)
}

fn push_server(config: &Config, services: &Services) -> anyhow::Result<Option<PushServer>> {
    let Some(path) = &config.push_socket else {
        return Ok(None);
    };
    let push_services = config.push_services.clone().into();
    let handler = PushHandler::new(services.clone(), push_services);
    PushServer::open(path, Arc::new(handler)).map(Some)
}

fn metrics_server(
    config: &Config,
    store: &Store,
    services: &Services,
    handler: &Handler,
) -> anyhow::Result<Option<MetricsServer>> {
    let Some(path) = &config.metrics_socket else {
        return Ok(None);
    };
    let places = Places {
        database: config.database(),
        public: config.public_dir.clone(),
    };
    let surveyor = Surveyor::new(store.reader()?, places, services.clock.clone());
    let source = Source::new(handler.clone(), services, surveyor);
    MetricsServer::open(path, Arc::new(source)).map(Some)
}

/// The gate with these settings. A file that can't be put in force is an error: a census with other
/// rules than its operator wrote would do damage.
pub(crate) async fn gate(config: &Config, store: &Store) -> anyhow::Result<NameGate> {
    let (files, writer) = (config.admission.clone(), store.writer());
    // Before the first name joins its group.
    writer.set_group_threshold(config.group_threshold).await?;
    Ok(NameGate::open(writer, config.names()?, files).await?)
}

/// SIGHUP reloads the rules. It is caught from here on, before the daemon reports that it runs.
fn reload_on_hangup(
    gate: NameGate,
    shutdown: CancellationToken,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>>> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                _ = hangup.recv() => gate::tell_reload(&gate.reload().await),
            }
        }
    })
}

pub(crate) async fn launcher(config: &Config) -> anyhow::Result<()> {
    let settings = config.launcher_settings.clone();
    let _serving = serve_alone("launcher", &settings.socket)?;
    let shutdown = until_signal()?;
    let engine = BollardEngine::new(config.engine_socket.clone());
    launcher::serve(settings, engine, shutdown)
        .await
        .context("launcher")?;
    Ok(())
}

pub(crate) async fn gateway(config: &Config, way: Way) -> anyhow::Result<()> {
    let (role, settings) = match way {
        Way::First => ("gateway", config.gateway_settings.clone()),
        Way::Second => ("second-gateway", config.second_gateway_settings.clone()),
    };
    let _serving = serve_alone(role, &settings.control_socket)?;
    if way == Way::Second {
        std::fs::create_dir_all(&settings.egress_root).context("the egress volume")?;
    }
    let shutdown = until_signal()?;
    open_files::raise();
    gateway::serve(settings, shutdown).await.context(role)
}

pub(crate) async fn intake(config: &Config) -> anyhow::Result<()> {
    let _serving = serve_alone("intake", &config.intake_settings.socket)?;
    let shutdown = until_signal()?;
    let clock = SystemClock;
    let now =
        Arc::new(move || token::UnixSeconds(u64::try_from(clock.now().0 / 1000).unwrap_or(0)));
    let settings = config.intake_settings.clone();
    ::intake::serve(settings, Arc::new(config.names()?), now, shutdown)
        .await
        .context("intake")?;
    Ok(())
}

/// Takes the locks of a push service's database for one of its nodes, or for all.
pub(crate) fn serve_push(role: &str, config: &Config, node: Node) -> Result<Vec<Lock>, ServeError> {
    let parts = node.parts(&config.push_settings.database);
    parts.iter().map(|part| serve_alone(role, part)).collect()
}

pub(crate) async fn push(config: &Config, node: Node) -> anyhow::Result<()> {
    config.require_contact()?;
    config.require_push_address()?;
    let role = match node {
        Node::Push => "push",
        Node::Connect => "push connect",
        Node::Endpoint => "push endpoint",
    };
    let _serving = serve_push(role, config, node)?;
    let _listening = serve_alone(role, config.push_settings.socket_of(node))?;
    let shutdown = until_signal()?;
    open_files::raise();
    let now = Arc::new(|| SystemClock.now().0);
    ::push::process::run(config.push_settings.clone(), node, now, shutdown)
        .await
        .context("push service")?;
    Ok(())
}

pub(crate) async fn console(config: &Config) -> anyhow::Result<()> {
    let _serving = serve_alone("console", &config.console_settings.accounts)?;
    let _listening = serve_alone("console", &config.console_settings.socket)?;
    let shutdown = until_signal()?;
    open_files::raise();
    let now = Arc::new(|| since_epoch(SystemClock.now()));
    ::console::serve(config.console_settings.clone(), now, shutdown)
        .await
        .context("console")?;
    Ok(())
}

fn warn_lab_mode(config: &Config) {
    if config.reserved == admission::Reserved::AllowInLab {
        tracing::warn!("LAB MODE: names below .test and .example are admitted");
    }
    if config.calendar.divisor != 1 {
        tracing::warn!(
            divisor = config.calendar.divisor,
            "LAB MODE: all intervals are shortened"
        );
    }
    if config.admission.test_domain == admission::TestDomain::Allow {
        tracing::warn!("{}", gate::TEST_DOMAIN_WARNING);
    }
}

/// A moment in the type of the limiter and the accounts.
pub(crate) fn since_epoch(now: census::time::Timestamp) -> limiter::login::record::Timestamp {
    let ms = u64::try_from(now.0).unwrap_or_default();
    limiter::login::record::Timestamp(std::time::Duration::from_millis(ms))
}

fn until_signal() -> anyhow::Result<CancellationToken> {
    let shutdown = CancellationToken::new();
    let (mut term, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let token = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        token.cancel();
    });
    Ok(shutdown)
}
