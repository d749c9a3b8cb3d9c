//! Runs steps: each as a separate process, whose output goes to the terminal and to a file, in
//! order or concurrently.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::extent::Tier;
use crate::engine::Engine;
use crate::step::{Outcome, say};

/// The variable that selects [`Context::profile`].
pub(super) const PROFILE: &str = "FEDICENSUS_PROFILE";

/// How often the output of a step is copied to the terminal.
const COPY_EVERY: Duration = Duration::from_millis(200);

/// How much a step yields to those that are running when it starts: it gets a quarter of a
/// processor that both want.
const NICE: &str = "5";

/// Longest time of a step. The longest ones take ten minutes, and those of the full tier half an
/// hour. One that waits for ever must fail by name while there is time for the others.
const QUICK_MINUTES_MAX: u64 = 30;
const FULL_MINUTES_MAX: u64 = 60;

/// How `timeout` ends after it ended its program.
const TIMED_OUT: i32 = 124;

/// Names the file to which tests add why they were skipped.
const SKIPPED: &str = "FEDICENSUS_SKIPPED";

/// The last line of a step's process if it could not check everything.
const PARTLY: &str = "in part: ";

const ERROR: &str = "xtask: ";

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) tier: Tier,
    pub(crate) engine: bool,
    /// Whether it runs concurrently with the steps that follow, until one that comes after it.
    pub(crate) concurrent: bool,
    pub(crate) needs: &'static [&'static str],
    /// Steps that must have ended, in addition to those that it needs.
    pub(crate) after: &'static [&'static str],
    pub(crate) run: fn(&Context<'_>) -> anyhow::Result<Outcome>,
}

pub(crate) struct Context<'root> {
    pub(crate) root: &'root Path,
    pub(crate) tier: Tier,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Passed,
    Partly(String),
    Failed(String),
    /// A step that it needs did not pass.
    NotRun(&'static str),
}

struct Ended {
    name: &'static str,
    took: Duration,
    end: End,
}

struct Running {
    name: &'static str,
    began: Instant,
    child: Child,
    log: PathBuf,
}

/// Runs steps, and records how they ended.
pub(crate) struct Course<'root> {
    context: Context<'root>,
    logs: PathBuf,
    concurrent: Vec<Running>,
    ended: Vec<Ended>,
}

impl Step {
    pub(crate) const fn quick(
        name: &'static str,
        about: &'static str,
        run: fn(&Context<'_>) -> anyhow::Result<Outcome>,
    ) -> Self {
        Self {
            name,
            about,
            tier: Tier::Quick,
            engine: false,
            concurrent: false,
            needs: &[],
            after: &[],
            run,
        }
    }

    pub(crate) const fn full(
        name: &'static str,
        about: &'static str,
        run: fn(&Context<'_>) -> anyhow::Result<Outcome>,
    ) -> Self {
        Self {
            tier: Tier::Full,
            ..Self::quick(name, about, run)
        }
    }

    pub(crate) const fn with_engine(self) -> Self {
        Self {
            engine: true,
            ..self
        }
    }

    pub(crate) const fn concurrent(self) -> Self {
        Self {
            concurrent: true,
            ..self
        }
    }

    pub(crate) const fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    pub(crate) const fn after(self, after: &'static [&'static str]) -> Self {
        Self { after, ..self }
    }

    /// Runs the step in this process, and reports to the process that started this one.
    pub(crate) fn run_here(&self, context: &Context<'_>) -> anyhow::Result<()> {
        if self.engine {
            // It may have got stuck since the first step.
            Engine::find()?;
        }
        match (self.run)(context)? {
            Outcome::Passed => Ok(()),
            Outcome::Partly(missing) => say(&format!("{PARTLY}{missing}")),
        }
    }
}

impl Context<'_> {
    /// The images' profile of cargo. The operators' takes twice as long to compile, and finds what
    /// only its optimisations break or enlarge.
    pub(crate) fn profile(&self) -> &'static str {
        if self.is_full() { "release" } else { "ci" }
    }

    fn minutes_max(&self) -> u64 {
        if self.is_full() {
            FULL_MINUTES_MAX
        } else {
            QUICK_MINUTES_MAX
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.tier == Tier::Full
    }

    pub(crate) fn engine(&self) -> anyhow::Result<Engine> {
        Engine::find()
    }

    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.root);
        command
    }
}

impl<'root> Course<'root> {
    pub(crate) fn new(context: Context<'root>, logs: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
        std::fs::write(logs.join("skipped"), "")?;
        Ok(Self {
            context,
            logs,
            concurrent: Vec::new(),
            ended: Vec::new(),
        })
    }

    /// Starts a step once the steps before it have ended, and waits for it unless it runs
    /// concurrently.
    pub(crate) fn step(&mut self, step: &'static Step) -> anyhow::Result<()> {
        for name in step.needs.iter().chain(step.after) {
            self.wait_for(name)?;
        }
        if let Some(failed) = step.needs.iter().find(|name| self.did_not_pass(name)) {
            say(&format!("==> {}: not run, {failed} failed", step.name))?;
            self.ended.push(Ended {
                name: step.name,
                took: Duration::ZERO,
                end: End::NotRun(failed),
            });
            return Ok(());
        }
        let running = self.start(step)?;
        if step.concurrent {
            say(&format!("==> {} runs concurrently", step.name))?;
            self.concurrent.push(running);
            return Ok(());
        }
        say(&format!("==> {}", step.name))?;
        self.end(running)
    }

    /// Runs work in this process as a step.
    pub(crate) fn record(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        say(&format!("==> {name}"))?;
        let began = Instant::now();
        let end = match work() {
            Ok(()) => End::Passed,
            Err(error) => End::Failed(format!("{error:#}")),
        };
        self.push(name, began, end)
    }

    pub(crate) fn wait(&mut self) -> anyhow::Result<()> {
        while let Some(running) = self.concurrent.pop() {
            self.end(running)?;
        }
        Ok(())
    }

    /// Prints every step's time, the total, the steps that failed and the tests that were skipped.
    pub(crate) fn conclude(&self, began: Instant) -> anyhow::Result<()> {
        say("")?;
        let skipped = std::fs::read_to_string(self.logs.join("skipped"))?;
        let reasons: BTreeSet<_> = skipped.lines().collect();
        for reason in &reasons {
            say(reason)?;
        }
        say(&format!("{} tests skipped", reasons.len()))?;
        for one in &self.ended {
            let took = one.took.as_secs_f64();
            say(&format!("{took:>8.1} s  {}: {}", one.name, one.end.word()))?;
        }
        say(&format!("{:>8.1} s  in all", began.elapsed().as_secs_f64()))?;
        let failed = self.ended.iter().filter(|one| one.end.is_failure());
        let failed: Vec<_> = failed.map(|one| one.name).collect();
        if failed.is_empty() {
            // Only root can run some tests, and not every forge's CI is root.
            let is_root = super::programs::is_root()?;
            let counts = |line: &str| is_root || !line.starts_with("Privileges: ");
            if std::env::var_os("CI").is_some() && skipped.lines().any(counts) {
                bail!("no test may be skipped where CI is set");
            }
            return Ok(());
        }
        let logs = self.logs.display();
        bail!("failed: {}; their output is in {logs}", failed.join(", "))
    }

    fn start(&self, step: &Step) -> anyhow::Result<Running> {
        let log = self.logs.join(format!("{}.log", step.name));
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        let is_alone = self.concurrent.is_empty();
        let nice = if is_alone { "0" } else { NICE };
        let mut command = limited(&format!("{}m", self.context.minutes_max()));
        command.args(["nice", "-n", nice]);
        // Not by its path: a step that compiles may replace the program there.
        command.arg(format!("/proc/{}/exe", std::process::id()));
        command.args(["ci", "--only", step.name]);
        if self.context.is_full() {
            command.arg("--full");
        }
        let child = command
            .env("CARGO_INCREMENTAL", "0")
            .env(SKIPPED, self.logs.join("skipped"))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("{} can't be started", step.name))?;
        Ok(Running {
            name: step.name,
            began: Instant::now(),
            child,
            log,
        })
    }

    fn wait_for(&mut self, name: &str) -> anyhow::Result<()> {
        if let Some(place) = self.concurrent.iter().position(|one| one.name == name) {
            let running = self.concurrent.remove(place);
            say(&format!("==> {name}, which ran concurrently"))?;
            self.end(running)?;
        }
        Ok(())
    }

    fn end(&mut self, mut running: Running) -> anyhow::Result<()> {
        let status = follow(&mut running)?;
        let text = std::fs::read(&running.log)?;
        let end = if status.code() == Some(TIMED_OUT) {
            let minutes = self.context.minutes_max();
            End::Failed(format!("it did not end within {minutes} minutes"))
        } else {
            End::of(status.success(), &String::from_utf8_lossy(&text))
        };
        self.push(running.name, running.began, end)
    }

    fn push(&mut self, name: &'static str, began: Instant, end: End) -> anyhow::Result<()> {
        let took = began.elapsed();
        let seconds = took.as_secs_f64();
        say(&format!("<== {name}: {} ({seconds:.1} s)", end.word()))?;
        self.ended.push(Ended { name, took, end });
        Ok(())
    }

    fn did_not_pass(&self, name: &str) -> bool {
        let mut ended = self.ended.iter();
        ended.any(|one| one.name == name && one.end.is_failure())
    }
}

/// A step that is cut off would leave its work half done and its programs behind.
impl Drop for Course<'_> {
    fn drop(&mut self) {
        for running in &mut self.concurrent {
            let _reaped = running.child.wait();
        }
    }
}

impl End {
    fn of(is_success: bool, log: &str) -> Self {
        let last = log.lines().next_back().unwrap_or_default();
        match (is_success, last.strip_prefix(PARTLY)) {
            (true, None) => Self::Passed,
            (true, Some(missing)) => Self::Partly(missing.to_owned()),
            (false, _) => {
                let reason = log.lines().rev().find_map(|line| line.strip_prefix(ERROR));
                Self::Failed(reason.unwrap_or("see its output").to_owned())
            }
        }
    }

    fn word(&self) -> String {
        match self {
            Self::Passed => "ok".to_owned(),
            Self::Partly(missing) => format!("ok, BUT {missing}"),
            Self::Failed(reason) => format!("FAILED: {reason}"),
            Self::NotRun(needed) => format!("NOT RUN, {needed} did not pass"),
        }
    }

    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::NotRun(_))
    }
}

/// The beginning of a command that is ended after some time, and with it all that it started. At a
/// terminal only the command itself is: else Ctrl-C would not reach what it started.
fn limited(time: &str) -> Command {
    let mut command = Command::new("timeout");
    if io::stdin().is_terminal() {
        command.arg("--foreground");
    }
    command.args(["--kill-after", "30s", time]);
    command
}

/// Copies a step's output to the terminal until it has ended. It reads the file and not a pipe,
/// which a program that outlives the step would keep open.
fn follow(running: &mut Running) -> anyhow::Result<ExitStatus> {
    let mut log = File::open(&running.log)?;
    loop {
        // Asked first, so that nothing written before the end is missed.
        let ended = running.child.try_wait()?;
        let mut terminal = io::stderr().lock();
        io::copy(&mut log, &mut terminal)?;
        terminal.flush()?;
        if let Some(status) = ended {
            return Ok(status);
        }
        drop(terminal);
        thread::sleep(COPY_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(folder: &Path, script: &str) -> Running {
        let log = folder.join("x.log");
        let file = File::create(&log).unwrap();
        let child = Command::new("sh")
            .args(["-c", script])
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Running {
            name: "x",
            began: Instant::now(),
            child,
            log,
        }
    }

    #[test]
    fn a_step_that_failed_is_named_with_its_reason_and_what_needs_it_is_not_run() {
        const NEEDY: &Step = &Step::quick("y", "", |_| Ok(Outcome::Passed)).needs(&["x"]);
        let folder = std::env::temp_dir().join(format!("course-{}", std::process::id()));
        let context = Context {
            root: Path::new("."),
            tier: Tier::Quick,
        };
        let mut course = Course::new(context, folder.clone()).unwrap();
        let broken = "echo 'xtask: no disk' >&2; exit 1";
        course.concurrent.push(running(&folder, broken));
        course.step(NEEDY).unwrap();
        let leftovers = || bail!("left behind: volume z");
        course.record("leftovers", leftovers).unwrap();
        course.record("good", || Ok(())).unwrap();
        let mut endless = running(&folder, "");
        endless.child = limited("0.1s").args(["sleep", "60"]).spawn().unwrap();
        course.end(endless).unwrap();
        let words: Vec<_> = course.ended.iter().map(|one| one.end.word()).collect();
        let expect = [
            "FAILED: no disk",
            "NOT RUN, x did not pass",
            "FAILED: left behind: volume z",
            "ok",
            "FAILED: it did not end within 30 minutes",
        ];
        assert_eq!(words, expect);
        let error = course.conclude(Instant::now()).unwrap_err().to_string();
        assert!(error.starts_with("failed: x, y, leftovers, x;"), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_could_not_be_looked_at_is_the_last_line() {
        let log = "a\nin part: no engine\n";
        assert_eq!(End::of(true, log), End::Partly("no engine".to_owned()));
        assert_eq!(End::of(true, "in part: x\nb"), End::Passed);
        let failed = End::Failed("see its output".to_owned());
        assert_eq!(End::of(false, "a"), failed);
    }
}
