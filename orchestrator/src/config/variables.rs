//! Environment variables that begin with `FEDICENSUS_`.
//!
//! A misspelt one would change nothing and say nothing, so a role refuses those that nothing of
//! ours reads. One of a setting that was removed is only reported: an upgrade must stop no census.

use super::table::{self, environment_name};
use super::{ConfigError, LAB_PREFIX};

const PREFIX: &str = "FEDICENSUS_";

/// The variables of `lab/up`.
const LAB: &str = "FEDICENSUS_LAB_";

/// What else the command line, the Compose files, the units and `deploy/` read. One file may hold
/// all variables, so each role sees those of others.
const OTHERS: [&str; 14] = [
    "BASE_NGINX",
    "BASE_RUST",
    "BRIDGE",
    "CONFIG",
    "CONSOLE_PORT",
    "HEALTHCHECK",
    "IMAGE_PREFIX",
    "METRICS_PORT",
    "PORT",
    "PROFILE",
    "PUSH_CLIENTS",
    "PUSH_PORT",
    "SECOND_RESOLVERS",
    "TAG",
];

const OF_CHECKS_MAX: &str = "it follows from `checks_max`";
const OF_RUN_DIR: &str = "`run_dir` and `optional_sockets` took its place";
const FIXED: &str = "it is fixed now";

/// Removed settings, and what took the place of each.
const REMOVED: [(&str, &str); 23] = [
    ("ADDRESS_PACE_MS", FIXED),
    ("BLOCK_PACE_MS", FIXED),
    ("CHECKS_MIN", OF_CHECKS_MAX),
    ("EGRESS_DIR", OF_RUN_DIR),
    ("GATEWAY_SOCKET", OF_RUN_DIR),
    ("GROUP_PACE_MS", FIXED),
    ("INTAKE_CLIENT_HEADER", FIXED),
    ("INTAKE_LISTEN", OF_RUN_DIR),
    ("INTAKE_POSTS", FIXED),
    ("INTAKE_POSTS_PER_HOUR", FIXED),
    ("INTAKE_SOCKET", OF_RUN_DIR),
    ("LAUNCHER", "the launcher is always a role of its own"),
    ("LAUNCHER_SOCKET", OF_RUN_DIR),
    ("METRICS_SOCKET", OF_RUN_DIR),
    ("OPENS_MAX", OF_CHECKS_MAX),
    ("PEERS_EVERY", FIXED),
    ("PROVEN_PACE_MS", FIXED),
    ("PUSH_LIMITS", "`push_delivery` takes limits"),
    ("SHARED_SUFFIX_LIMIT", "it follows from `admissions_limit`"),
    ("SLOTS", "every check has a network namespace of its own"),
    ("STARTS_PER_SECOND", OF_CHECKS_MAX),
    (
        "SUFFIX_LIST",
        "the list is the file public_suffix_list.dat in `data_dir`",
    ),
    ("TEXT_SOCKET", OF_RUN_DIR),
];

/// Looks at the names of the process's variables, and logs a warning for each removed setting.
///
/// # Errors
/// A name is neither known nor that of a removed setting.
pub fn heed_environment() -> Result<(), ConfigError> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for warning in heed(names)? {
        tracing::warn!("{warning}");
    }
    Ok(())
}

fn heed(names: impl IntoIterator<Item = String>) -> Result<Vec<String>, ConfigError> {
    let mut warnings = Vec::new();
    for name in names {
        let Some(short) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if name.starts_with(LAB) || known().any(|known| known == name) {
            continue;
        }
        let Some((_, instead)) = REMOVED.iter().find(|(removed, _)| *removed == short) else {
            let nearest = nearest(&name, known());
            return Err(ConfigError::Variable { name, nearest });
        };
        warnings.push(format!("{name} changes nothing: {instead}"));
    }
    Ok(warnings)
}

/// All known variables but those of the lab.
fn known() -> impl Iterator<Item = String> {
    let settings = table::all().filter(|setting| !setting.key.starts_with(LAB_PREFIX));
    let others = OTHERS.iter().map(|short| format!("{PREFIX}{short}"));
    settings
        .map(|setting| environment_name(setting.key))
        .chain(others)
}

/// The name that takes the fewest edits.
pub(super) fn nearest(wrong: &str, names: impl Iterator<Item = String>) -> String {
    let edits = |name: &String| strsim::damerau_levenshtein(wrong, name);
    names.min_by_key(edits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heeded(names: &[&str]) -> Result<Vec<String>, String> {
        let names = names.iter().map(|name| (*name).to_owned());
        heed(names).map_err(|error| error.to_string())
    }

    #[test]
    fn misspelt_variables_are_refused_with_the_nearest_name() {
        for (wrong, right) in [
            ("FEDICENSUS_CHECK_MAX", "FEDICENSUS_CHECKS_MAX"),
            ("FEDICENSUS_SITETITLE", "FEDICENSUS_SITE_TITLE"),
            ("FEDICENSUS_PROT", "FEDICENSUS_PORT"),
        ] {
            let error = heeded(&["PATH", wrong]).unwrap_err();
            assert!(error.contains(&format!("Did you mean {right}?")), "{error}");
        }
    }

    #[test]
    fn removed_settings_only_warn() {
        let warnings = heeded(&["FEDICENSUS_SLOTS", "FEDICENSUS_SEEDS"]).unwrap();
        let expect =
            "FEDICENSUS_SLOTS changes nothing: every check has a network namespace of its own";
        assert_eq!(warnings, [expect]);
        for (removed, _) in REMOVED {
            let name = format!("{PREFIX}{removed}");
            assert!(known().all(|known| known != name), "{name} is read again");
        }
    }

    /// A role must start with whatever a file for all parts holds.
    #[test]
    fn every_variable_of_the_deployment_is_known() {
        let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let found = std::process::Command::new("git")
            .args(["grep", "-ohE", "FEDICENSUS_[A-Z_]*[A-Z]"])
            .args(["--", "compose.yaml", "deploy", "lab/up", "lab/down"])
            .current_dir(tree)
            .output()
            .unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        let names: Vec<&str> = found.lines().collect();
        assert!(names.contains(&"FEDICENSUS_METRICS_PORT"), "{names:?}");
        assert_eq!(heeded(&names), Ok(Vec::new()));
    }
}
