//! `cargo xtask ci`: what has to pass before a change is taken, the same on a laptop and in CI.
//!
//! The whole of it needs a container engine and a compose tool and fails without them: what was not run must not look like what passed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::browser;
use crate::confinement;
use crate::deny;
use crate::engine::{Belongings, Engine};
use crate::fuzz;
use crate::rootless;
use crate::step::{Beside, Outcome, Summary, output, passes, say, target_folder};

/// How much of it.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    /// Everything.
    Whole,
    /// What needs no engine.
    Fast,
}

/// Shell scripts of ours, which shellcheck reads beside those below [`ROOTLESS`].
const SCRIPTS: [&str; 10] = [
    ".ci/run",
    "deploy/base-images/make",
    "deploy/build",
    "deploy/engine.sh",
    "deploy/nginx/health",
    "deploy/nginx/start",
    "deploy/packages.sh",
    "deploy/quadlet/install",
    "lab/down",
    "lab/up",
];

/// The folder whose every file without an extension, or with `.sh`, is a script, at any depth but for units.
const ROOTLESS: &str = "tests/rootless";

/// Largest images, in bytes. A checker is started for every check and is all that a hostile host could ever use.
const IMAGE_BYTES_MAX: [(&str, u64); 2] = [
    ("localhost/fedicensus-checker", 10_000_000),
    ("localhost/fedicensus-orchestrator", 30_000_000),
];

/// Stories that a container adds nothing to: they were told over processes in the step before, or need a short week that an engine has no time for.
/// Personas are checked in containers by the lab's step.
const TOLD_WITHOUT_CONTAINERS: [&str; 11] = [
    "confinement::firewall::",
    "failures::outages::hostile::",
    "failures::outages::names::",
    "failures::outages::network::",
    "failures::outages::tls::",
    "failures::own_outages::clock::",
    "failures::own_outages::disk::",
    "failures::own_outages::engine::",
    "time::pace::",
    "personas::",
    "time::seven_days::",
];

/// Stories over processes wait most of the time: for a pace, a time-out, the end of an outage.
const TEST_THREADS: &str = "6";

/// Tables that must be there in the end: a test that was skipped leaves none.
const TABLES: [&str; 4] = ["adversary.md", "faults.md", "firewall.md", "fuzz.md"];

/// What the kernel must say of every part: no capability and none to be had, a seccomp filter (2).
const CONFINED: [&str; 4] = [
    "CapEff:\t0000000000000000",
    "CapBnd:\t0000000000000000",
    "NoNewPrivs:\t1",
    "Seccomp:\t2",
];

/// CI's lab and the port where it publishes: a lab that somebody looks at meanwhile has others.
const LAB_NAME: &str = "ci";
/// Tag of the images that CI builds, so that it replaces none of a census on the same engine.
const IMAGE_TAG: &str = "fedicensus-ci";
const LAB_PORT: &str = "18723";

/// Runs the steps in order, up to the first that fails.
///
/// # Errors
/// The step that failed. Without an engine: at once, before the first step.
pub(crate) fn run(root: &Path, extent: Extent) -> anyhow::Result<()> {
    let engine = match extent {
        Extent::Whole => Some(Engine::find()?),
        Extent::Fast => None,
    };
    packages(root, extent)?;
    let before = engine.as_ref().map(Engine::belongings).transpose()?;
    // Made from packages where no registry answers: minutes of downloading and unpacking, beside what keeps the processors busy.
    let bases = engine.as_ref().map(|_| {
        Beside::start(
            Command::new(root.join("deploy/build"))
                .arg("--bases")
                .current_dir(root),
            target_folder(root).join("tmp/bases.log"),
        )
    });
    let bases = bases.transpose()?;
    let mut summary = Summary::default();
    let mut result = without_engine(root, engine.as_ref(), &mut summary);
    if let (Some(engine), Some(before), Some(bases)) = (&engine, &before, bases) {
        result = result.and_then(|()| with_engine(root, engine, bases, &mut summary));
        // Looked at after a failure too: that is when things are left behind.
        let left = summary.step("leftovers", || leftovers(engine, before));
        result = result.and(left);
    }
    summary.print()?;
    result
}

/// Ends with the one command that installs all that is missing, instead of failing step by step.
fn packages(root: &Path, extent: Extent) -> anyhow::Result<()> {
    let groups = match extent {
        Extent::Whole => "lab bases test",
        Extent::Fast => "test",
    };
    let script = format!(
        ". deploy/engine.sh; . deploy/packages.sh; missing_packages {groups}; install_missing no"
    );
    passes(
        Command::new("bash")
            .args(["-euc", &script, "cargo xtask ci"])
            .current_dir(root),
    )
}

fn without_engine(
    root: &Path,
    engine: Option<&Engine>,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    summary.step("fmt", || done(cargo(root, &["fmt", "--all", "--check"])))?;
    summary.step("clippy", || {
        done(cargo(
            root,
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--locked",
                "--",
                "-D",
                "warnings",
            ],
        ))
    })?;
    summary.step("doc", || {
        done(
            cargo(root, &["doc", "--workspace", "--no-deps", "--locked"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    })?;
    summary.step("axe", || browser::fetch_axe(root))?;
    summary.step("test", || {
        let tables = target_folder(root).join("tables");
        if tables.exists() {
            // Rows of an earlier run would be taken for this one's.
            std::fs::remove_dir_all(&tables)?;
        }
        let mut command = cargo(root, &["test", "--workspace", "--locked"]);
        match engine {
            Some(engine) => command.env("FEDICENSUS_TEST_ENGINE", &engine.socket),
            None => command.env_remove("FEDICENSUS_TEST_ENGINE"),
        };
        let is_root = output(Command::new("id").arg("-u"))?.trim() == "0";
        if is_root {
            command.env("FEDICENSUS_PRIVILEGES", "required");
        }
        // The end-to-end tests have a step of their own, after the images.
        passes(
            command
                .env("RUST_TEST_THREADS", TEST_THREADS)
                .env_remove("FEDICENSUS_E2E")
                .env_remove("FEDICENSUS_LAB_ENGINE"),
        )?;
        Ok(if is_root {
            Outcome::Passed
        } else {
            Outcome::Partly(
                "stories with namespaces, firewalls and full disks need root and were skipped"
                    .to_owned(),
            )
        })
    })?;
    summary.step("scripts", || scripts(root))?;
    summary.step("deny", || deny::check(root))?;
    summary.step("fuzz", || fuzz::run(root, &fuzz::Plan::whole()))
}

fn with_engine(
    root: &Path,
    engine: &Engine,
    bases: Beside,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    summary.step("images", || {
        bases.end()?;
        passes(
            Command::new(root.join("deploy/build"))
                .arg("--lab")
                .env("FEDICENSUS_LAB_NAME", LAB_NAME)
                .current_dir(root),
        )?;
        sizes(engine)
    })?;
    summary.step("end to end", || {
        let mut command = cargo(
            root,
            &[
                "test",
                // What the tests before compiled: a package by itself has other features, and half the workspace would be compiled again.
                "--workspace",
                "--test",
                "scenarios",
                "--locked",
                "--",
            ],
        );
        for told in TOLD_WITHOUT_CONTAINERS {
            command.args(["--skip", told]);
        }
        done(
            command
                .env("FEDICENSUS_E2E", "required")
                .env(
                    "FEDICENSUS_LAB_CHECKER",
                    format!("localhost/fedicensus-checker:{IMAGE_TAG}"),
                )
                .env("FEDICENSUS_LAB_ENGINE", &engine.socket),
        )
    })?;
    summary.step("tables", || tables(root))?;
    summary.step("lab", || lab(root, engine))?;
    summary.step("rootless", || rootless::step(root))?;
    summary.step("confinement", || {
        confinement::run(
            root,
            confinement::Use::Compare {
                machine: rootless::is_required(),
            },
        )
    })
}

fn scripts(root: &Path) -> anyhow::Result<Outcome> {
    let mut command = Command::new("shellcheck");
    done(
        command
            .args(["--shell=bash", "-x"])
            .args(SCRIPTS)
            .args(scripts_below(&root.join(ROOTLESS))?)
            .current_dir(root),
    )
}

/// Shell scripts below a folder that holds scripts, documents and units.
fn scripts_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|extension| extension == "sh") {
                found.push(path);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        bail!("no script below {}", folder.display());
    }
    Ok(found)
}

/// The whole of it as an operator starts it: every service by compose, every persona's verdict, the list through nginx.
fn lab(root: &Path, engine: &Engine) -> anyhow::Result<Outcome> {
    let script = |name: &str| {
        let mut command = Command::new(root.join(name));
        command
            .env("FEDICENSUS_LAB_NAME", LAB_NAME)
            .current_dir(root);
        command
    };
    let up = passes(script("lab/up").args(["--keep-images", "--intake", "--port", LAB_PORT]));
    let confined = up
        .and_then(|()| parts_are_confined(engine))
        .and_then(|()| metrics_are_apart(engine))
        .and_then(|()| intake_answers())
        .and_then(|()| browser::look(root, LAB_PORT));
    let down = passes(&mut script("lab/down"));
    confined.and(down).map(|()| Outcome::Passed)
}

/// Invariant I1's other half: the parts that hold the database, the engine's socket and strangers'
/// requests have no network, and no part can write or gain anything.
/// Asked of the engine, and of the kernel about each part's first process: what was asked for may not have been done.
fn parts_are_confined(engine: &Engine) -> anyhow::Result<()> {
    let label = format!("label=org.fedicensus=fedicensus-{LAB_NAME}");
    let format = "{{.Name}} {{.HostConfig.NetworkMode}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.State.Pid}}";
    let ids = output(engine.command().args([
        "ps",
        "-q",
        "--filter",
        &label,
        "--filter",
        "label=com.docker.compose.service",
    ]))?;
    let mut without_network = 0;
    for id in ids.lines() {
        let line = output(engine.command().args(["inspect", "--format", format, id]))?;
        say(line.trim())?;
        if !line.contains(" true [ALL] ") || !line.contains("no-new-privileges") {
            bail!("a part is not read-only, or has capabilities or may gain some: {line}");
        }
        if line.contains("unconfined") {
            bail!("the engine's seccomp profile is taken off this part: {line}");
        }
        let pid = line.trim().rsplit(' ').next().unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
            .with_context(|| format!("can't see the process {pid} of this part: {line}"))?;
        for wanted in CONFINED {
            if !status.lines().any(|found| found == wanted) {
                bail!("the kernel does not say `{wanted}` of this part: {line}\n{status}");
            }
        }
        let inner = ["orchestrator", "launcher", "intake"]
            .iter()
            .any(|part| line.contains(part));
        if inner && !line.contains(" none ") {
            bail!("this part must have no network: {line}");
        }
        without_network += u32::from(inner);
    }
    if without_network != 3 {
        bail!("orchestrator, launcher and intake were not all there: {ids}");
    }
    Ok(())
}

/// Through the web server as it is deployed: Prometheus is answered at the port that is his, and a visitor at theirs is not.
fn metrics_are_apart(engine: &Engine) -> anyhow::Result<()> {
    let label = format!("label=org.fedicensus=fedicensus-{LAB_NAME}");
    let web = output(engine.command().args([
        "ps",
        "-q",
        "--filter",
        &label,
        "--filter",
        "label=com.docker.compose.service=web",
    ]))?;
    let place = output(engine.command().args(["port", web.trim(), "9090"]))?;
    let place = place.lines().next().unwrap_or_default();
    if !place.starts_with("127.0.0.1:") {
        bail!("the metrics are published further than this machine: {place}");
    }
    let answered = |url: &str| {
        let format = "\n%{http_code}";
        output(Command::new("curl").args(["-sS", "--max-time", "30", "-w", format, url]))
    };
    let page = answered(&format!("http://{place}/metrics"))?;
    for wanted in [
        "fedicensus_build_info{",
        "fedicensus_launcher_up 1\n",
        "\n200",
    ] {
        if !page.contains(wanted) {
            bail!("the metrics at {place} have no `{}`: {page}", wanted.trim());
        }
    }
    let refused = [
        format!("http://127.0.0.1:{LAB_PORT}/metrics"),
        format!("http://{place}/"),
        format!("http://{place}/nodes.json"),
    ];
    for url in refused {
        if !answered(&url)?.ends_with("\n404") {
            bail!("{url} must not be answered");
        }
    }
    say(&format!(
        "metrics: {} lines at {place}, none at the public port",
        page.lines().count()
    ))
}

/// Through the web server, whose volume with the intake's socket is read-only.
fn intake_answers() -> anyhow::Result<()> {
    let url = format!("http://127.0.0.1:{LAB_PORT}/submit/nobody.example.com");
    let status = output(Command::new("curl").args([
        "-sS",
        "--max-time",
        "30",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        &url,
    ]))?;
    // Without the intake, nginx answers 502 or 503.
    if status.starts_with('5') {
        bail!("the intake does not answer {url}: {status}");
    }
    say(&format!("intake: {url} is answered with {status}"))
}

/// Cargo, the one that runs us.
fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(root);
    command
}

fn done(mut command: impl std::borrow::BorrowMut<Command>) -> anyhow::Result<Outcome> {
    passes(command.borrow_mut())?;
    Ok(Outcome::Passed)
}

/// Shows what the tests measured and tried, table by table: figures that nobody reads are not worth their making.
fn tables(root: &Path) -> anyhow::Result<Outcome> {
    let folder = target_folder(root).join("tables");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    for wanted in TABLES {
        if !folder.join(wanted).exists() {
            bail!("no {wanted}: the tests that write it were skipped, or lost it");
        }
    }
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        say(&format!("{}\n{text}", path.display()))?;
    }
    Ok(Outcome::Passed)
}

fn sizes(engine: &Engine) -> anyhow::Result<Outcome> {
    for (name, most) in IMAGE_BYTES_MAX {
        let image = format!("{name}:{IMAGE_TAG}");
        let text =
            output(
                engine
                    .command()
                    .args(["image", "inspect", "--format", "{{.Size}}", &image]),
            )?;
        let size: u64 = text.trim().parse()?;
        say(&format!("{image}: {:.1} MB", size as f64 / 1e6))?;
        if size > most {
            bail!("{image} has {size} bytes; at most {most} are allowed");
        }
    }
    Ok(Outcome::Passed)
}

fn leftovers(engine: &Engine, before: &Belongings) -> anyhow::Result<Outcome> {
    let left = engine.belongings()?.left_over(before);
    if left.is_empty() {
        return Ok(Outcome::Passed);
    }
    bail!("left behind: {}", left.join(", "))
}
