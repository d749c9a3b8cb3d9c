//! How long the steps of a container take, and what could be left out (`bench/README.md`).
//!
//! It needs an engine and the checker's image. For each way of launching it prints the containers
//! per second and the processor time of each, at several numbers in parallel, compared with the way
//! in use; and the duration of each of the engine's answers.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use bench::shared::direct::Slots;
use bench::shared::measure::{Cost, Start};
use bench::shared::median::median;
use bench::shared::processes::{self, PARTS, Processes};
use bench::shared::stage::INSTANCE;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, RemoveContainerOptionsBuilder,
    StartContainerOptions, WaitContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use clap::Parser;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use launcher::engine::ContainerId;
use launcher::engine::EngineKind;
use launcher::engine::create::create_body;
use launcher::spec::{Network, Spec};
use launcher::{BollardEngine, Engine as _};
use protocol::CheckId;
use tokio::task::JoinSet;

/// The client's timeout for an answer, in seconds.
const ENGINE_TIMEOUT_S: u64 = 120;

/// Compares ways to launch a container that looks at its limits and ends.
#[derive(Debug, Parser)]
#[command(name = "bench-launch", version)]
struct Arguments {
    /// The engine's socket
    #[arg(long, default_value = "/var/run/docker.sock")]
    engine: PathBuf,
    /// The checker's image
    #[arg(long, default_value = "localhost/fedicensus-checker:latest")]
    image: String,
    /// Containers in each run
    #[arg(long, default_value_t = 60)]
    containers: u32,
    /// Runs of each way, in turns
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Containers at the same time
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8")]
    in_flight: Vec<usize>,
    /// Ways to compare the one in use with
    #[arg(long, value_enum, value_delimiter = ',')]
    ways: Vec<Way>,
}

/// How a container is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
enum Way {
    /// As the launcher does it on Docker: in the network namespace of its slot's holder.
    InUse,
    /// With a network namespace of its own.
    OwnNamespace,
    /// By the runtime crun, which the engine has to know by this name.
    Crun,
    /// Below a control group that is made once.
    CgroupParent,
    /// Without waiting for the removal of those before, and all of a run removed at its end.
    RemovedLast,
    /// The first to be killed when the machine runs out of memory.
    OomScoreAdj,
    /// Without stderr.
    StdoutOnly,
    /// Removed before the next one starts in its place.
    RemovedInTurn,
    /// Without a list of system calls of our own.
    EnginesProfile,
    /// Without covers over the engine's writable folders.
    NoCovers,
    /// With a cover over what Docker leaves writable, and over nothing else.
    FewerCovers,
    /// Without limits of memory, processes and CPU.
    NoLimits,
    /// With the engine's own interprocess namespace and its shared memory.
    OwnIpc,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::InUse => "in use",
            Self::OwnNamespace => "own network namespace",
            Self::Crun => "crun",
            Self::CgroupParent => "one parent control group",
            Self::RemovedLast => "removed at the end",
            Self::OomScoreAdj => "OOM score",
            Self::StdoutOnly => "stdout only",
            Self::RemovedInTurn => "removed in turn",
            Self::EnginesProfile => "the engine's seccomp profile",
            Self::NoCovers => "no covers",
            Self::FewerCovers => "one cover",
            Self::NoLimits => "no limits",
            Self::OwnIpc => "IPC namespace",
        }
    }

    /// Its network namespace, if it uses a slot with this holder.
    fn network(self, holder: &ContainerId) -> Network {
        match self {
            Self::OwnNamespace => Network::Own,
            _ => Network::Slot(holder.clone()),
        }
    }

    fn apply(self, body: &mut ContainerCreateBody) -> Result<()> {
        let host = body.host_config.as_mut().context("no host configuration")?;
        match self {
            Self::InUse
            | Self::OwnNamespace
            | Self::RemovedInTurn
            | Self::RemovedLast
            | Self::StdoutOnly => {}
            Self::Crun => host.runtime = Some("crun".to_owned()),
            Self::CgroupParent => host.cgroup_parent = Some(format!("/{INSTANCE}")),
            Self::OomScoreAdj => host.oom_score_adj = Some(1000),
            Self::EnginesProfile => {
                host.security_opt = Some(vec!["no-new-privileges:true".to_owned()]);
            }
            Self::NoCovers => host.tmpfs = None,
            Self::FewerCovers => {
                let covers = host.tmpfs.iter_mut();
                covers.for_each(|covers| covers.retain(|path, _| path == "/dev/mqueue"));
            }
            Self::NoLimits => {
                (host.memory, host.memory_swap) = (None, None);
                (host.pids_limit, host.nano_cpus) = (None, None);
            }
            Self::OwnIpc => host.ipc_mode = Some("private".to_owned()),
        }
        Ok(())
    }
}

/// Seconds of each of the engine's answers, in order.
type Laps = HashMap<&'static str, Vec<f64>>;

struct Bench {
    docker: Docker,
    kind: EngineKind,
    settings: launcher::Settings,
    next: AtomicU32,
    laps: Mutex<Laps>,
    slots: Slots,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let identity = BollardEngine::new(&arguments.engine).identify().await?;
    let socket = arguments.engine.to_str().context("the socket's path")?;
    let docker = Docker::connect_with_unix(socket, ENGINE_TIMEOUT_S, API_DEFAULT_VERSION)?
        .negotiate_version()
        .await?;
    let settings = launcher::Settings {
        image: arguments.image.clone(),
        instance: INSTANCE.to_owned(),
        ..launcher::Settings::default()
    };
    let most = arguments.in_flight.iter().copied().max().unwrap_or(1);
    let bench = Bench {
        slots: Slots::start(&docker, identity.kind, &settings, most).await?,
        docker,
        kind: identity.kind,
        settings,
        next: AtomicU32::new(1),
        laps: Mutex::default(),
    };
    let compared = compare(&arguments, &bench).await;
    bench.slots.end(&bench.docker).await?;
    compared
}

async fn compare(arguments: &Arguments, bench: &Bench) -> Result<()> {
    let mut ways = vec![Way::InUse];
    ways.extend(arguments.ways.iter().filter(|way| **way != Way::InUse));
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| in flight | way | containers/s | / in use | CPU s each | / in use |\n|---|---|---|---|---|---|"
    )?;
    let processes = Processes {
        engine: processes::daemons(&arguments.engine).await?,
        ..Processes::default()
    };
    for in_flight in &arguments.in_flight {
        let mut costs: HashMap<Way, Vec<Cost>> = HashMap::new();
        // A warm-up that is not measured.
        bench.run(Way::InUse, 4, *in_flight).await?;
        bench.laps().clear();
        for _ in 0..arguments.runs {
            for way in &ways {
                let start = Start::now(&processes)?;
                bench.run(*way, arguments.containers, *in_flight).await?;
                let cost = start.cost_of(usize::try_from(arguments.containers)?)?;
                costs.entry(*way).or_default().push(cost);
            }
        }
        let middle =
            |way: Way, of: fn(&Cost) -> f64| median(costs.get(&way).into_iter().flatten().map(of));
        let rate: fn(&Cost) -> f64 = |cost| cost.rate;
        let cpu: fn(&Cost) -> f64 = |cost| cost.cpu_seconds;
        for way in &ways {
            writeln!(
                out,
                "| {in_flight} | {} | {:.2} | {:.2} | {:.3} | {:.2} |",
                way.name(),
                middle(*way, rate),
                middle(*way, rate) / middle(Way::InUse, rate),
                middle(*way, cpu),
                middle(*way, cpu) / middle(Way::InUse, cpu),
            )?;
        }
        let in_use = costs.get(&Way::InUse).map_or(&[][..], Vec::as_slice);
        writeln!(
            out,
            "| {in_flight} | in use, CPU s each | {} ||||",
            by_part(in_use)
        )?;
        let laps = bench.laps();
        let mut calls: Vec<_> = laps.iter().collect();
        calls.sort_by_key(|(call, _)| **call);
        let calls: Vec<String> = calls
            .into_iter()
            .map(|(call, seconds)| {
                format!("{call} {:.0}", median(seconds.iter().copied()) * 1000.0)
            })
            .collect();
        writeln!(
            out,
            "| {in_flight} | in use, ms an answer | {} ||||",
            calls.join(", ")
        )?;
    }
    Ok(())
}

/// Seconds of processor time per container by part, and the idle fraction of the machine.
fn by_part(costs: &[Cost]) -> String {
    let part = |part: usize| {
        let of = costs.iter();
        median(of.filter_map(|cost| cost.cpu_seconds_by_part.get(part).copied()))
    };
    let parts: Vec<String> = PARTS
        .iter()
        .enumerate()
        .map(|(number, name)| format!("{name} {:.3}", part(number)))
        .collect();
    let idle = median(costs.iter().map(|cost| cost.idle)) * 100.0;
    format!("{}; {idle:.0} % of the machine idle", parts.join(", "))
}

impl Bench {
    fn laps(&self) -> MutexGuard<'_, Laps> {
        self.laps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Launches this many containers, and waits until the last one is removed.
    async fn run(&self, way: Way, containers: u32, in_flight: usize) -> Result<()> {
        let removals = tokio::sync::Mutex::new(JoinSet::new());
        let last = tokio::sync::Mutex::new(Vec::new());
        stream::iter(0..containers)
            .map(|_| async {
                let holder = self.slots.take()?;
                let launched = self.launch(way, &holder).await;
                self.slots.give_back(holder);
                let id = launched?;
                if way == Way::RemovedInTurn {
                    self.remove(&id).await?;
                } else if way == Way::RemovedLast {
                    last.lock().await.push(id);
                } else {
                    let docker = self.docker.clone();
                    let removal = async move { remove(&docker, &id).await };
                    removals.lock().await.spawn(removal);
                }
                anyhow::Ok(())
            })
            .buffer_unordered(in_flight)
            .try_collect::<()>()
            .await?;
        for id in last.into_inner() {
            self.remove(&id).await?;
        }
        while let Some(removed) = removals.lock().await.join_next().await {
            removed??;
        }
        Ok(())
    }

    /// Runs one container from create to its end, without removing it.
    async fn launch(&self, way: Way, holder: &ContainerId) -> Result<String> {
        let docker = &self.docker;
        let mut lap = Instant::now();
        let mut laps = Vec::new();
        let mut took = |call: &'static str| {
            laps.push((call, lap.elapsed().as_secs_f64()));
            lap = Instant::now();
        };
        let body = self.body(way, holder)?;
        let id = docker
            .create_container(None::<CreateContainerOptions>, body)
            .await?
            .id;
        took("1 create");
        let both = AttachContainerOptionsBuilder::default()
            .stdout(true)
            .stderr(way != Way::StdoutOnly)
            .stream(true);
        let attached = docker.attach_container(&id, Some(both.build())).await?;
        took("2 attach");
        docker
            .start_container(&id, None::<StartContainerOptions>)
            .await?;
        took("3 start");
        let mut printed = Vec::new();
        let mut output = attached.output;
        while let Some(piece) = output.next().await {
            printed.extend_from_slice(&piece?.into_bytes());
        }
        took("4 output");
        let options = WaitContainerOptionsBuilder::default().condition("not-running");
        let mut wait = docker.wait_container(&id, Some(options.build()));
        let code = wait.next().await.context("no exit code")??.status_code;
        took("5 wait");
        ensure!(code == 0, "exit code {code}");
        if !printed.starts_with(b"{") {
            bail!("it printed {}", String::from_utf8_lossy(&printed));
        }
        if way == Way::InUse {
            for (call, seconds) in laps {
                self.laps().entry(call).or_default().push(seconds);
            }
        }
        Ok(id)
    }

    fn next(&self) -> CheckId {
        CheckId::from_random(self.next.fetch_add(1, Ordering::Relaxed).into())
    }

    fn body(&self, way: Way, holder: &ContainerId) -> Result<ContainerCreateBody> {
        let (settings, network) = (&self.settings, way.network(holder));
        let spec = Spec::probe(settings, &settings.image, &self.next(), network);
        let mut body = create_body(&spec, self.kind);
        way.apply(&mut body)?;
        Ok(body)
    }

    async fn remove(&self, id: &str) -> Result<()> {
        remove(&self.docker, id).await
    }
}

async fn remove(docker: &Docker, id: &str) -> Result<()> {
    let force = RemoveContainerOptionsBuilder::default().force(true);
    docker.remove_container(id, Some(force.build())).await?;
    Ok(())
}
