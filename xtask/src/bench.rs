//! The `bench` chore: all benchmarks, one after the other, in Markdown for `bench/RESULTS.md`, and
//! their plots.
//!
//! Prints the machine and the versions, and for each benchmark its command, the load before and
//! after it, and its tables. Plots are written to files. A benchmark that can't run is reported,
//! never silently left out; those that need an engine come last. After a failed benchmark, the
//! others still run.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::engine::Engine;
use crate::step::{output, passes, say, target_folder};

/// What is built: the benchmarks, and the programs next to them that some of them start.
const BUILD: &str =
    "build --release --locked -p orchestrator -p lab -p bench -p fedicensus-checker -p tests";

/// Address of the hosts of `bench-dead`: a host is dialled at this port only, which not every user
/// may bind.
const DEAD_HOSTS: (Ipv4Addr, u16) = (Ipv4Addr::new(127, 98, 0, 1), 443);

/// Draws the results.
const PLOTS: [&str; 2] = ["bench-scale", "plots"];

/// What a benchmark needs in addition to its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Permission to bind [`DEAD_HOSTS`].
    Port,
    /// A container engine with the checker's image (`deploy/build` builds it).
    Engine,
}

/// Whether a benchmark writes points for plots, into the file given by `--data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plotted {
    Yes,
    No,
}

struct Benchmark {
    program: &'static str,
    /// The shortest run that includes it.
    least: Extent,
    /// Arguments of the ten-minute run.
    quick: &'static [&'static str],
    /// Arguments of longer runs.
    whole: &'static [&'static str],
    needs: Needs,
    plotted: Plotted,
}

/// In the order in which they run. Sizes are those of the targets. If a target's size takes more
/// than some minutes on two cores, a smaller one runs here, and `bench/README.md` has the full one.
const ALL: [Benchmark; 11] = [
    Benchmark {
        program: "bench-scale",
        least: Extent::Quick,
        quick: &[
            "--rows",
            "10000,100000",
            "--rounds",
            "3",
            "--dumped",
            "100000",
            "--junk",
            "500000",
        ],
        whole: &[],
        needs: Needs::Nothing,
        plotted: Plotted::Yes,
    },
    Benchmark {
        program: "bench-scale",
        least: Extent::Quick,
        quick: &[
            "names", "--rows", "100000", "--known", "200000", "--new", "20000",
        ],
        whole: &["names"],
        needs: Needs::Nothing,
        plotted: Plotted::No,
    },
    Benchmark {
        program: "bench-files",
        least: Extent::Quick,
        quick: &["--instances", "100000"],
        whole: &[],
        needs: Needs::Nothing,
        plotted: Plotted::No,
    },
    Benchmark {
        program: "bench-dead",
        least: Extent::Quick,
        quick: &["--hosts", "20000", "--before", "5", "--seconds", "15"],
        whole: &[],
        needs: Needs::Port,
        plotted: Plotted::No,
    },
    Benchmark {
        program: "bench-login",
        least: Extent::Quick,
        quick: &["timing", "--samples", "100"],
        whole: &["timing"],
        needs: Needs::Nothing,
        plotted: Plotted::No,
    },
    Benchmark {
        program: "bench-login",
        least: Extent::Quick,
        quick: &["flood"],
        whole: &["flood"],
        needs: Needs::Nothing,
        plotted: Plotted::No,
    },
    Benchmark {
        program: "bench-push",
        least: Extent::Quick,
        quick: &["--idle", "2000", "--messages", "5000", "--stored", "20000"],
        whole: &[],
        needs: Needs::Nothing,
        plotted: Plotted::No,
    },
    Benchmark {
        program: "bench-path",
        least: Extent::Quick,
        quick: &["--checks", "20", "--runs", "2", "--in-flight", "1,4,16"],
        whole: &["--in-flight", "1,2,4,8,16"],
        needs: Needs::Engine,
        plotted: Plotted::Yes,
    },
    Benchmark {
        program: "bench-path",
        least: Extent::Quick,
        quick: &["--rows", "10000,100000", "--checks", "20", "--runs", "1"],
        whole: &[
            "--rows",
            "10000,1000000,10000000",
            "--checks",
            "200",
            "--runs",
            "3",
        ],
        needs: Needs::Engine,
        plotted: Plotted::Yes,
    },
    Benchmark {
        program: "bench-launch",
        least: Extent::Whole,
        quick: &[],
        whole: &["--containers", "30"],
        needs: Needs::Engine,
        plotted: Plotted::No,
    },
    Benchmark {
        program: "bench-soak",
        least: Extent::Soak,
        quick: &[],
        whole: &["--world", "living"],
        needs: Needs::Engine,
        plotted: Plotted::Yes,
    },
];

/// The length of a run, the shortest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// A quarter of an hour: small sizes, which show little more than that everything runs.
    Quick,
    /// More than two hours on two idle cores.
    Whole,
    /// Also a census of a million hosts for half an hour at each distance afterwards.
    Soak,
}

impl Benchmark {
    fn arguments(&self, extent: Extent) -> Option<&'static [&'static str]> {
        if extent < self.least {
            return None;
        }
        Some(match extent {
            Extent::Quick => self.quick,
            Extent::Whole | Extent::Soak => self.whole,
        })
    }
}

/// The command that requests a run of this length.
fn asked_for(extent: Extent) -> &'static str {
    match extent {
        Extent::Quick => "cargo xtask bench --quick",
        Extent::Whole => "cargo xtask bench",
        Extent::Soak => "cargo xtask bench --soak",
    }
}

/// Runs the benchmarks.
///
/// # Errors
/// They can't be built, or at least one of them failed; the others have run.
pub(crate) fn run(root: &Path, extent: Extent) -> anyhow::Result<()> {
    let mut build = Command::new(env!("CARGO"));
    passes(build.args(BUILD.split(' ')).current_dir(root))?;
    let bench = Bench::begin(root)?;
    print(&machine(root, bench.engine.as_ref().ok())?)?;
    let mut failed = Vec::new();
    for benchmark in &ALL {
        let program = benchmark.program;
        let Some(arguments) = benchmark.arguments(extent) else {
            let least = asked_for(benchmark.least);
            print(&format!("\n`{program}` is left out: `{least}` has it."))?;
            continue;
        };
        if let Err(error) = bench.has(benchmark.needs) {
            print(&format!("\n`{program}` is left out: {error:#}"))?;
            continue;
        }
        if let Err(error) = bench.measure(benchmark, arguments)? {
            print(&format!("\n**It failed**: {error:#}"))?;
            failed.push(program);
        }
    }
    if let Err(error) = bench.draw() {
        print(&format!("\n**There are no plots**: {error:#}"))?;
        failed.push("the plots");
    }
    if !failed.is_empty() {
        bail!("{} failed", failed.join(", "));
    }
    Ok(())
}

/// The state of a run.
struct Bench<'root> {
    root: &'root Path,
    engine: anyhow::Result<Engine>,
    /// Holds the plots and their points.
    folder: PathBuf,
}

impl<'root> Bench<'root> {
    /// Begins a run, and removes what the previous one left.
    fn begin(root: &'root Path) -> anyhow::Result<Self> {
        let folder = target_folder(root).join("benchmarks");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self {
            root,
            engine: Engine::find(),
            folder,
        })
    }

    /// Checks that a benchmark's needs are met.
    fn has(&self, needs: Needs) -> anyhow::Result<()> {
        match (needs, &self.engine) {
            (Needs::Engine, Err(error)) => bail!("{error:#}"),
            (Needs::Port, _) => TcpListener::bind(DEAD_HOSTS)
                .map(|_| ())
                .with_context(|| format!("{}:{} can't be bound", DEAD_HOSTS.0, DEAD_HOSTS.1)),
            (Needs::Nothing, _) | (Needs::Engine, Ok(_)) => Ok(()),
        }
    }

    fn program(&self, name: &str) -> Command {
        let programs = target_folder(self.root).join("release");
        let mut command = Command::new(programs.join(name));
        command.current_dir(self.root);
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data.tsv")
    }

    /// Runs one benchmark, and returns how it ended.
    fn measure(
        &self,
        benchmark: &Benchmark,
        arguments: &[&str],
    ) -> anyhow::Result<anyhow::Result<()>> {
        let line = [&[benchmark.program][..], arguments].concat().join(" ");
        say(&format!("==> {line}"))?;
        print(&format!("\n## `{line}`\n\nLoad before it: {}.\n", load()?))?;
        let began = Instant::now();
        let mut command = self.program(benchmark.program);
        command.args(arguments);
        if benchmark.plotted == Plotted::Yes {
            command.arg("--data").arg(self.data());
        }
        let ended = passes(&mut command);
        print(&format!(
            "\nIt took {:.0} s. Load after it: {}.",
            began.elapsed().as_secs_f64(),
            load()?
        ))?;
        Ok(ended)
    }

    /// Draws the plots of all points, and prints where they are.
    fn draw(&self) -> anyhow::Result<()> {
        print("\n## Plots\n")?;
        let [program, plots] = PLOTS;
        let mut command = self.program(program);
        command.arg(plots).arg(self.data());
        passes(command.arg("--folder").arg(self.folder.join("plots")))
    }
}

/// What the figures depend on, as a list.
fn machine(root: &Path, engine: Option<&Engine>) -> anyhow::Result<String> {
    let first = |path: &str, key: &str| -> anyhow::Result<String> {
        let text = std::fs::read_to_string(path)?;
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let value = line.unwrap_or("unknown");
        Ok(value.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    // A missing program is no reason not to measure.
    let told = |command: &mut Command| {
        output(command).map_or_else(|_| "none".to_owned(), |text| text.trim().to_owned())
    };
    let engine = engine.map_or_else(
        || "none".to_owned(),
        |engine| {
            let format = "{{.Server.Version}} (API {{.Server.APIVersion}})";
            let version = told(engine.command().args(["version", "--format", format]));
            format!("{} {version}", told_name(engine))
        },
    );
    let facts = [
        (
            "date",
            told(Command::new("date").args(["-u", "+%F %H:%M UTC"])),
        ),
        (
            "commit",
            told(
                Command::new("git")
                    .args(["describe", "--always", "--dirty"])
                    .current_dir(root),
            ),
        ),
        (
            "processors",
            format!(
                "{} × {}",
                std::thread::available_parallelism()?,
                first("/proc/cpuinfo", "model name")?
            ),
        ),
        ("memory", first("/proc/meminfo", "MemTotal")?),
        (
            "kernel",
            std::fs::read_to_string("/proc/sys/kernel/osrelease")?
                .trim()
                .to_owned(),
        ),
        (
            "compiler",
            told(Command::new("rustc").arg("--version").current_dir(root)),
        ),
        ("engine", engine),
        (
            "`sqlite3` to compare with",
            told(Command::new("sqlite3").arg("--version")),
        ),
    ];
    let mut list = String::new();
    for (what, value) in facts {
        list.push_str(&format!("- {what}: {value}\n"));
    }
    Ok(list)
}

fn told_name(engine: &Engine) -> String {
    engine
        .command()
        .get_program()
        .to_string_lossy()
        .into_owned()
}

/// Processes that ran or were ready to run, averaged over one, five and fifteen minutes.
fn load() -> anyhow::Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    let averages: Vec<&str> = text.split(' ').take(3).collect();
    Ok(averages.join(", "))
}

/// Prints a line of the results.
fn print(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    // Flushed, so that the benchmark's own output comes after it.
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_an_engine_comes_last_and_the_soak_after_it() {
        let needs: Vec<_> = ALL.iter().map(|one| one.needs == Needs::Engine).collect();
        assert!(needs.is_sorted(), "{needs:?}");
        let soak = ALL.iter().position(|one| one.least == Extent::Soak);
        assert_eq!(soak, Some(ALL.len() - 1));
    }

    #[test]
    fn more_time_leaves_nothing_out_that_less_time_has() {
        let left_out = |extent| {
            let is = |one: &&Benchmark| one.arguments(extent).is_none();
            let programs = ALL.iter().filter(is).map(|one| one.program);
            programs.collect::<Vec<_>>()
        };
        assert_eq!(left_out(Extent::Quick), ["bench-launch", "bench-soak"]);
        assert_eq!(left_out(Extent::Whole), ["bench-soak"]);
        assert_eq!(left_out(Extent::Soak), [""; 0]);
    }

    /// A benchmark that was renamed or forgotten would be missing from a full run.
    #[test]
    fn each_program_of_the_benchmarks_is_there() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let names = manifest.split("[[bin]]\nname = \"").skip(1);
        let mut programs: Vec<_> = names.filter_map(|rest| rest.split('"').next()).collect();
        programs.sort_unstable();
        let mut there: Vec<_> = ALL.iter().map(|one| one.program).collect();
        there.sort_unstable();
        // Some programs are two benchmarks.
        there.dedup();
        assert_eq!(there, programs);
    }

    /// A benchmark without plots would exit at once when it gets a file for points.
    #[test]
    fn those_that_are_plotted_take_a_file_of_points() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/src");
        for one in &ALL {
            let name = one.program.trim_start_matches("bench-");
            let file = match one.whole.first() {
                Some(subcommand) if !subcommand.starts_with('-') => subcommand,
                Some(_) | None => "main",
            };
            let text = std::fs::read_to_string(format!("{source}/{name}/{file}.rs")).unwrap();
            let takes = text.contains("    data: Option<PathBuf>,");
            assert_eq!(takes, one.plotted == Plotted::Yes, "{name}");
        }
    }

    #[test]
    fn the_machine_is_told_without_an_engine() {
        let told = machine(Path::new("."), None).unwrap();
        for what in ["processors: ", "memory: ", "kernel: ", "engine: none"] {
            assert!(told.contains(what), "{told}");
        }
    }
}
