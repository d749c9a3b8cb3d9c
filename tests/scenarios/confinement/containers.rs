//! What only containers guarantee: confinement (invariant I1), effective limits, an engine that
//! disappears and returns.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tests::{Engine, EngineApi, Listed, Need, Options, Watch, World};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

const SOON: Duration = tests::PATIENCE;

/// The engine; without one the test is skipped: see [`tests::skip`].
pub(crate) fn engine() -> anyhow::Result<Option<EngineApi>> {
    match Engine::from_environment() {
        Engine::Socket(socket) => EngineApi::connect(&socket).map(Some),
        Engine::Process => {
            tests::skip(
                Need::Engine,
                "only containers promise this; set FEDICENSUS_LAB_ENGINE to an engine's socket",
            );
            Ok(None)
        }
    }
}

/// Ids of this world's containers, running or not.
pub(crate) fn containers_of(world: &World, engine: &EngineApi) -> anyhow::Result<Vec<String>> {
    let label = format!("org.fedicensus={}", world.setting("instance"));
    engine.containers(&[&label], Listed::All)
}

pub(crate) fn checks_of(world: &World, engine: &EngineApi) -> anyhow::Result<Vec<String>> {
    let label = format!("org.fedicensus={}", world.setting("instance"));
    engine.containers(&[&label, "org.fedicensus.host"], Listed::All)
}

fn running_check(world: &World, engine: &EngineApi) -> anyhow::Result<Option<Value>> {
    let label = format!("org.fedicensus={}", world.setting("instance"));
    // Only a check's container has a host; the probe has none.
    let labels = [label.as_str(), "org.fedicensus.host"];
    let running = engine.containers(&labels, Listed::Running)?;
    let Some(id) = running.first() else {
        return Ok(None);
    };
    let inspected = engine.inspect(id)?;
    Ok((inspected["State"]["Running"] == true).then_some(inspected))
}

/// Invariant I1, by the engine's own description of a running check.
#[tokio::test(flavor = "multi_thread")] // I1
async fn a_running_check_is_confined_entirely() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
    let world = World::start(Options::new(&["drip.lab.test"])).await?;
    let mut found = None;
    world
        .until("a check runs", SOON, |world| {
            found = running_check(world, &engine)?;
            Ok(found.is_some())
        })
        .await?;
    let container = found.context("a check")?;
    let mut differences = as_the_engine_tells(&container);
    let network = container.pointer("/HostConfig/NetworkMode");
    let network = network.and_then(Value::as_str).unwrap_or_default();
    if network != "none" {
        differences.push(format!("network: {network}"));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let pid = container["State"]["Pid"].as_u64().context("a pid")?;
    // The checker lowers its own limits first, which takes it a moment.
    world
        .until("the kernel confines it", SOON, |_| {
            let differences = as_the_kernel_tells(pid)?;
            ensure!(differences.is_empty(), "{}", differences.join("\n"));
            Ok(true)
        })
        .await?;
    no_way_out(pid)
}

/// Where the engine's description of a check differs from what it should be.
fn as_the_engine_tells(container: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let mut expect = |pointer: &str, holds: &dyn Fn(&Value) -> bool| {
        let found = container.pointer(pointer).unwrap_or(&Value::Null);
        if !holds(found) {
            differences.push(format!("{pointer}: {found}"));
        }
    };
    let exactly = json!({
        "ReadonlyRootfs": true, "Privileged": false,
        "Memory": 64 << 20, "MemorySwap": 64 << 20, "PidsLimit": 16, "NanoCpus": 500_000_000, "IpcMode": "none",
        "AutoRemove": false, "PublishAllPorts": false,
    });
    for (key, value) in exactly.as_object().into_iter().flatten() {
        expect(&format!("/HostConfig/{key}"), &|found| found == value);
    }
    // Engines write "none" as null or as an empty list.
    for key in ["CapAdd", "Devices"] {
        expect(&format!("/HostConfig/{key}"), &|found| {
            found.as_array().is_none_or(Vec::is_empty)
        });
    }
    expect("/HostConfig/RestartPolicy/Name", &|found| {
        ["", "no"].contains(&found.as_str().unwrap_or_default())
    });
    expect("/HostConfig/LogConfig/Type", &|found| found == "none");
    expect("/HostConfig/SecurityOpt", &|found| {
        let options = found.to_string();
        options.contains("no-new-privileges")
            && options.contains("seccomp=")
            && !options.contains("unconfined")
    });
    for folder in ["tmp", "run", "var~1tmp"] {
        expect(&format!("/HostConfig/Tmpfs/~1{folder}"), &|found| {
            let options = found.as_str().unwrap_or_default();
            options.split(',').any(|option| option == "ro")
        });
    }
    expect("/Config/User", &|found| found == "64321:64321");
    expect("/Config/Cmd", &|found| {
        let words = found.as_array().into_iter().flatten();
        let words: Vec<_> = words.filter_map(|word| word.as_str()).collect();
        let &[egress, directory, roots, end, host] = &words[..] else {
            return false;
        };
        (egress, roots, end, host) == ("--egress", "--extra-roots", "--", "drip.lab.test")
            && directory.starts_with("/egress/")
    });
    expect("/Config/Labels/org.fedicensus.host", &|found| {
        found == "drip.lab.test"
    });
    expect("/Mounts", &|found| {
        let mounts = found.as_array().into_iter().flatten();
        let mut binds = mounts.filter(|mount| mount["Type"] != "tmpfs");
        let egress = binds.next();
        egress.is_some_and(|bind| bind["Destination"] == "/egress" && bind["RW"] == false)
            && binds.next().is_none()
    });
    differences
}

/// Where the kernel's description of a check's process differs from what it should be. Engines
/// describe capabilities and open files in different ways, and Podman does not set the number of
/// open files that it describes.
fn as_the_kernel_tells(pid: u64) -> anyhow::Result<Vec<String>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_default().trim().to_owned()
    };
    let mut differences = Vec::new();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        if field(set) != "0000000000000000" {
            differences.push(format!("{set} {}", field(set)));
        }
    }
    for (name, value) in [("NoNewPrivs:", "1"), ("Seccomp:", "2")] {
        if field(name) != value {
            differences.push(format!("{name} {}", field(name)));
        }
    }
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .unwrap_or_default();
    let numbers: Vec<&str> = files.split_whitespace().take(2).collect();
    if numbers != ["64", "64"] {
        differences.push(format!("open files: {files}"));
    }
    Ok(differences)
}

/// Its network namespace has only the loopback: no address, no route.
fn no_way_out(pid: u64) -> anyhow::Result<()> {
    let net = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{file}"));
    let interfaces = net("dev")?;
    let names: Vec<_> = interfaces
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(str::trim)
        // Every namespace has these if the host has loaded their modules; without an address they
        // lead nowhere.
        .filter(|name| {
            ![
                "sit0", "tunl0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0",
                "ip6gre0",
            ]
            .contains(name)
        })
        .collect();
    assert_eq!(names, ["lo"]);
    assert_eq!(net("route")?.lines().count(), 1, "only the heading");
    let six: Vec<_> = net("if_inet6")
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.ends_with("lo"))
        .map(str::to_owned)
        .collect();
    assert!(six.is_empty(), "{six:?}");
    Ok(())
}

/// A proxy between the launcher and the engine that can be removed.
struct NameGate {
    listener: JoinHandle<()>,
    path: PathBuf,
}

impl NameGate {
    fn open(path: PathBuf, engine: PathBuf) -> anyhow::Result<Self> {
        let socket = UnixListener::bind(&path)?;
        let listener = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut near, _)) = socket.accept().await {
                let engine = engine.clone();
                connections.spawn(async move {
                    if let Ok(mut far) = UnixStream::connect(engine).await {
                        tokio::io::copy_bidirectional(&mut near, &mut far)
                            .await
                            .ok();
                    }
                });
            }
        });
        Ok(Self { listener, path })
    }

    async fn shut(self) {
        self.listener.abort();
        self.listener.await.ok();
        std::fs::remove_file(self.path).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_goes_away_and_comes_back_costs_nobody_anything() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
    let mut options = Options::new(&[]);
    options.crowd = 12;
    options.seeds = lab::crowd::Crowd::new(12, 1).names().collect();
    options.interval_divisor = 5000;
    let mut world = World::prepare(options).await?;
    let path = world.path("engine.sock");
    world.set("engine_socket", &path.display().to_string());
    for role in [
        tests::Role::Gateway,
        tests::Role::Launcher,
        tests::Role::Run,
    ] {
        world.begin(role).await?;
    }
    let outage = |world: &World| Ok(world.status()?["daemon"]["outage"].is_object());
    world
        .until("there is no engine, and the daemon says so", SOON, outage)
        .await?;
    assert_eq!(
        world
            .reader()?
            .counts()?
            .by_state
            .iter()
            .map(|(_, count)| count)
            .sum::<u64>(),
        12,
        "all are known"
    );

    let gate = NameGate::open(path.clone(), engine.socket().to_owned())?;
    let alive = |world: &World| {
        let counts = world.reader()?.counts()?;
        Ok(counts
            .by_state
            .iter()
            .any(|(state, count)| state.as_str() == "alive" && *count == 12))
    };
    world
        .until("the engine was found and all live", SOON, alive)
        .await?;

    let mut orphans = Vec::new();
    world
        .until("checks run", SOON, |world| {
            orphans = containers_of(world, &engine)?;
            Ok(!orphans.is_empty())
        })
        .await?;
    let names = lab::crowd::Crowd::new(12, 1).names();
    let mut watch = Watch::begin(&world, &format!("{} stopped", engine.kind()), names)?;
    gate.shut().await;
    world
        .until("the engine has gone, and the daemon says so", SOON, outage)
        .await?;
    let gate = NameGate::open(path, engine.socket().to_owned())?;
    watch.over(&world)?;
    world
        .until("the outage is over", SOON, |world| {
            Ok(world.status()?["daemon"]["outage"].is_null())
        })
        .await?;
    world
        .until("no container of the first life is left", SOON, |world| {
            let there = containers_of(world, &engine)?;
            Ok(!there.iter().any(|id| orphans.contains(id)))
        })
        .await?;
    watch.recovers(&world, SOON).await?;
    for name in lab::crowd::Crowd::new(12, 1).names() {
        let stored = world.host(&name)?.context("known")?;
        assert!(
            stored.history.iter().all(|entry| entry.verdict == "alive"),
            "{name}: {:?}",
            stored.history
        );
    }
    drop(world);
    gate.shut().await;
    Ok(())
}
