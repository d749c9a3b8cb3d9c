//! The `bench` chore: all benchmarks, one after the other, in Markdown as `bench/RESULTS.md` has it.
//!
//! In: whether there is an hour or ten minutes. Out: on stdout the machine, the versions, and of each benchmark its command, the load before and after
//! it, and its tables. Refused: nothing is left out silently; what needs an engine comes last and is told when there is none. One that fails is
//! told, and the others run.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::bail;

use crate::engine::Engine;
use crate::step::{output, passes, say, target_folder};

/// What a benchmark needs beside its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// A container engine with the checker's image (`lab/up && lab/down` makes it).
    Engine,
}

/// A benchmark.
struct Benchmark {
    program: &'static str,
    /// Arguments when there is an hour.
    whole: &'static [&'static str],
    /// Arguments when there are ten minutes; none: it is left out.
    quick: Option<&'static [&'static str]>,
    needs: Needs,
}

/// In the order in which they run. Sizes are those of the targets; where that takes more than some minutes on two cores, less is said here and
/// `bench/README.md` has the whole.
const ALL: [Benchmark; 9] = [
    Benchmark {
        program: "bench-admission",
        whole: &[],
        quick: Some(&["--decisions", "1000000", "--domains", "1000000"]),
        needs: Needs::Nothing,
    },
    Benchmark {
        program: "bench-scale",
        whole: &[],
        quick: Some(&[
            "--rows",
            "10000,100000",
            "--rounds",
            "3",
            "--dumped",
            "100000",
            "--junk",
            "500000",
        ]),
        needs: Needs::Nothing,
    },
    Benchmark {
        program: "bench-ingest",
        whole: &[],
        quick: Some(&["--rows", "100000", "--known", "200000", "--new", "20000"]),
        needs: Needs::Nothing,
    },
    Benchmark {
        program: "bench-store",
        whole: &[],
        quick: Some(&[
            "--rows",
            "100000",
            "--seconds",
            "6",
            "--rounds",
            "1",
            "--churns",
            "1",
        ]),
        needs: Needs::Nothing,
    },
    Benchmark {
        program: "bench-flood",
        whole: &["--days", "2"],
        quick: Some(&["--days", "1", "--names", "1000000"]),
        needs: Needs::Nothing,
    },
    Benchmark {
        program: "bench-files",
        whole: &[],
        quick: Some(&["--instances", "100000"]),
        needs: Needs::Nothing,
    },
    Benchmark {
        program: "bench-site",
        whole: &[],
        quick: Some(&["--hosts", "100000"]),
        needs: Needs::Nothing,
    },
    Benchmark {
        program: "bench-path",
        whole: &[],
        quick: Some(&["--checks", "30", "--runs", "2"]),
        needs: Needs::Engine,
    },
    Benchmark {
        program: "bench-launch",
        whole: &["--containers", "30"],
        quick: None,
        needs: Needs::Engine,
    },
];

/// How much time there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// An hour on two idle cores.
    Whole,
    /// Ten minutes: small sizes, which show that all of it runs and little else.
    Quick,
}

impl Benchmark {
    fn arguments(&self, extent: Extent) -> Option<&'static [&'static str]> {
        match extent {
            Extent::Whole => Some(self.whole),
            Extent::Quick => self.quick,
        }
    }
}

/// Runs them.
///
/// # Errors
/// When they can't be built, or at least one of them failed; the others have run.
pub(crate) fn run(root: &Path, extent: Extent) -> anyhow::Result<()> {
    // Some start the census and the lab as processes from beside themselves.
    let mut build = Command::new(env!("CARGO"));
    build.args("build --release --locked -p orchestrator -p lab -p bench".split(' '));
    passes(build.current_dir(root))?;
    let engine = Engine::find();
    print(&machine(root, engine.as_ref().ok())?)?;
    let mut failed = Vec::new();
    for benchmark in &ALL {
        let program = benchmark.program;
        let Some(arguments) = benchmark.arguments(extent) else {
            print(&format!("\n`{program}` is left out of a quick run."))?;
            continue;
        };
        if let (Needs::Engine, Err(error)) = (benchmark.needs, &engine) {
            print(&format!("\n`{program}` is left out: {error:#}"))?;
            continue;
        }
        let line = [&[program][..], arguments].concat().join(" ");
        say(&format!("==> {line}"))?;
        print(&format!("\n## `{line}`\n\nLoad before it: {}.\n", load()?))?;
        let began = Instant::now();
        let mut command = Command::new(target_folder(root).join("release").join(program));
        let ended = passes(command.args(arguments).current_dir(root));
        print(&format!(
            "\nIt took {:.0} s. Load after it: {}.",
            began.elapsed().as_secs_f64(),
            load()?
        ))?;
        if let Err(error) = ended {
            print(&format!("\n**It failed**: {error:#}"))?;
            failed.push(program);
        }
    }
    if !failed.is_empty() {
        bail!("{} failed", failed.join(", "));
    }
    Ok(())
}

/// What the figures depend on, as a list.
fn machine(root: &Path, engine: Option<&Engine>) -> anyhow::Result<String> {
    let first = |path: &str, key: &str| -> anyhow::Result<String> {
        let text = std::fs::read_to_string(path)?;
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let value = line.unwrap_or("unknown");
        Ok(value.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    // What a machine does not have is no reason not to measure.
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

/// Programs that ran or wanted to, over one minute, five and fifteen.
fn load() -> anyhow::Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    let averages: Vec<&str> = text.split(' ').take(3).collect();
    Ok(averages.join(", "))
}

/// A line of what is to be kept.
fn print(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    // What the benchmark writes next comes after it.
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_an_engine_comes_last() {
        let needs: Vec<_> = ALL.iter().map(|one| one.needs == Needs::Engine).collect();
        assert!(needs.is_sorted(), "{needs:?}");
    }

    /// A benchmark that was renamed would be missed when all of them run.
    #[test]
    fn each_is_a_program_of_the_benchmarks() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        for Benchmark { program, .. } in &ALL {
            assert!(
                manifest.contains(&format!("name = \"{program}\"")),
                "{program}"
            );
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
