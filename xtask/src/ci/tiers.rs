//! The steps of CI as data, in their order.

use super::step::Step;
use super::{images, lab, programs, stories};

/// All steps, in the order in which they start.
pub(crate) const STEPS: &[Step] = &[
    Step::quick("bases", "base images, made if no registry answers", images::bases)
        .with_engine()
        .concurrent(),
    Step::quick("fmt", "rustfmt", programs::fmt),
    Step::quick(
        "scripts",
        "shellcheck, and fail2ban's filter over lines of a log",
        programs::scripts,
    ),
    Step::quick("spelling", "codespell over sources and documents", programs::spelling),
    Step::quick("clippy", "clippy, warnings as errors", programs::clippy),
    Step::quick(
        "unit",
        "unit, property and integration tests, the tree's rules, every fuzz seed",
        programs::unit,
    ),
    Step::full("doc", "rustdoc, warnings as errors", programs::doc),
    Step::full("workflows", "the workflows of the forge", |context| {
        programs::script(context, ".github/lint")
    }),
    Step::full("deny", "licences, sources, bans and advisories", programs::deny),
    Step::full("axe", "the accessibility checker, downloaded", programs::axe),
    Step::quick(
        "scenarios",
        "scenarios over plain processes; --full: with 200 kills",
        stories::over_processes,
    )
    .concurrent(),
    Step::full("fuzz", "every fuzz target, some seconds each", programs::fuzz),
    Step::full(
        "readers",
        "Prometheus' rules, a browser, nginx, jq, Python: programs of others read what we publish",
        stories::readers,
    )
    .needs(&["axe"])
    // So that the operators' images, which take twice as long to compile, don't slow them.
    .after(&["scenarios"]),
    Step::quick(
        "images",
        "the images, and their sizes; --full: as operators build them",
        images::build,
    )
        .with_engine()
        .needs(&["bases"]),
    Step::full(
        "rootless",
        "the census on rootless Podman, in a virtual machine",
        programs::rootless,
    )
    .with_engine()
    .needs(&["images"])
    // Emulated, it takes as long as the next three steps together.
    .concurrent(),
    Step::full(
        "aarch64",
        "the programs cross-built for aarch64, and run in emulation",
        |context| programs::script(context, "tests/engines/aarch64"),
    ),
    Step::full(
        "engines",
        "the launcher and a lab on Docker 26 and 28, next to the machine's engine",
        |context| programs::script(context, "tests/engines/run"),
    )
    .with_engine()
    .needs(&["images"]),
    Step::full(
        "registry",
        "images published, verified, pulled and run as a release's",
        |context| programs::script(context, "tests/engines/images"),
    )
    .with_engine()
    .needs(&["images", "aarch64"]),
    Step::quick(
        "lab",
        "lab/up with a sample of personas; --full: all of them, the intake, the console, a browser",
        lab::run,
    )
    .with_engine()
    .needs(&["images"])
    .after(&["scenarios"]),
    Step::quick(
        "containers",
        "scenarios over containers: adversaries, kills, limits; --full: all that containers matter to",
        stories::over_containers,
    )
    .with_engine()
    .needs(&["images"])
    .after(&["scenarios", "rootless"]),
    Step::full("tables", "what the tests measured, shown", stories::tables)
        .with_engine()
        .needs(&["containers"]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::super::extent::{FULL_PROGRAMS, PROCESSES_SUFFICE, READERS, SAMPLE_OVER_CONTAINERS};
    use super::*;

    #[test]
    fn a_step_comes_after_those_that_it_needs() {
        let mut before = BTreeSet::new();
        for step in STEPS {
            for needed in step.needs {
                assert!(before.contains(needed), "{} needs {needed}", step.name);
            }
            assert!(before.insert(step.name), "{} is there twice", step.name);
        }
    }

    #[test]
    fn a_quick_step_needs_no_full_one_and_without_an_engine_none_with_one() {
        for step in STEPS {
            let needed = STEPS
                .iter()
                .filter(|other| step.needs.contains(&other.name));
            for other in needed {
                assert!(
                    other.tier <= step.tier,
                    "{} needs {}",
                    step.name,
                    other.name
                );
                assert!(
                    step.engine || !other.engine,
                    "{} needs {}",
                    step.name,
                    other.name
                );
            }
        }
    }

    /// The filter of a renamed scenario would silently run or skip nothing.
    #[test]
    fn every_filter_finds_a_scenario() {
        let folder = crate::root().unwrap().join("tests/scenarios");
        let names = scenarios(&folder);
        assert!(names.len() > 50, "{names:?}");
        let filters = READERS
            .iter()
            .chain(&SAMPLE_OVER_CONTAINERS)
            .chain(&PROCESSES_SUFFICE)
            .chain(&FULL_PROGRAMS);
        for filter in filters {
            let found = names.iter().any(|name| name.contains(filter));
            assert!(found, "no scenario has `{filter}` in its name");
        }
    }

    fn scenarios(folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for file in files(folder) {
            let module = file.strip_prefix(folder).unwrap().with_extension("");
            let module = module.to_string_lossy().replace('/', "::");
            let text = std::fs::read_to_string(&file).unwrap();
            let mut is_test = false;
            let functions = text.lines().filter_map(|line| {
                let was_test = is_test;
                is_test = line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let line = line.strip_prefix("async ").unwrap_or(line);
                line.strip_prefix("fn ")?
                    .split('(')
                    .next()
                    .filter(|_| was_test)
            });
            names.extend(functions.map(|function| format!("{module}::{function}")));
        }
        names
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
        found
    }
}
