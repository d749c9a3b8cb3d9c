//! The options of a world: its directories, and the settings that follow.

use std::path::{Path, PathBuf};

use super::settings::Settings;

/// The gateway's socket in a world's directory.
pub const GATEWAY_SOCKET: &str = "run/gateway/gateway.sock";
pub const LAUNCHER_SOCKET: &str = "run/launcher/launcher.sock";
/// The directory with a folder for each check.
pub const EGRESS: &str = "run/egress";

/// The folders that deployments mount as volumes.
pub const RUN_FOLDERS: [&str; 15] = [
    "run/gateway",
    "run/second-gateway",
    "run/ledger",
    "run/launcher",
    "run/texts",
    "run/intake",
    "run/intake-http",
    "run/metrics",
    "run/console",
    "run/console-http",
    "run/push",
    "run/push-http",
    "run/push-endpoint-http",
    "run/push-nodes",
    EGRESS,
];

/// The image for real engines and the base of test images: that in `FEDICENSUS_LAB_CHECKER`, or the
/// product's.
pub fn checker_image() -> String {
    std::env::var_os("FEDICENSUS_LAB_CHECKER")
        .and_then(|image| image.into_string().ok())
        .unwrap_or_else(|| "localhost/fedicensus-checker:latest".to_owned())
}

#[derive(Debug, Clone)]
pub enum Engine {
    Process,
    Socket(PathBuf),
}

impl Engine {
    /// The engine in the environment variable `FEDICENSUS_LAB_ENGINE`; plain processes if it is not
    /// set.
    pub fn from_environment() -> Self {
        std::env::var_os("FEDICENSUS_LAB_ENGINE")
            .map_or(Self::Process, |socket| Self::Socket(socket.into()))
    }
}

#[derive(Debug, Clone)]
pub struct Options {
    pub engine: Engine,
    /// Responding instances in addition to the personas.
    pub crowd: u32,
    /// Names of a farm, and ten times the customers of a hoster.
    pub farm: u64,
    /// The only personas, with the seed; all if it is empty.
    pub personas: Vec<String>,
    /// Names that the census starts with.
    pub seeds: Vec<String>,
    /// Names known to be alive.
    pub canaries: Vec<String>,
    pub interval_divisor: u32,
    /// The checker's program (plain processes) or image (an engine); `None` for the product's.
    pub checker: Option<String>,
    /// Further settings; keys of the lab's table begin with `lab.`.
    pub settings: Vec<(&'static str, String)>,
    /// Directories that get separate disks, with their sizes in KiB: see [`crate::disks`]. Only
    /// with plain processes, since an engine would not see the disks.
    pub disks: Vec<(&'static str, u32)>,
}

impl Options {
    /// Two days an hour, and the engine and checker that the environment names
    /// (`FEDICENSUS_LAB_ENGINE`, `FEDICENSUS_LAB_CHECKER`).
    pub fn new(seeds: &[&str]) -> Self {
        Self {
            engine: Engine::from_environment(),
            crowd: 0,
            farm: 0,
            personas: Vec::new(),
            seeds: seeds.iter().map(|&seed| seed.to_owned()).collect(),
            canaries: Vec::new(),
            interval_divisor: 50,
            checker: std::env::var_os("FEDICENSUS_LAB_CHECKER")
                .and_then(|checker| checker.into_string().ok()),
            settings: Vec::new(),
            disks: Vec::new(),
        }
    }
}

pub(super) fn settings(directory: &Path, options: &Options) -> Settings {
    let path = |name: &str| directory.join(name).display().to_string();
    let engine_socket = match &options.engine {
        Engine::Process => String::from("/nonexistent"),
        Engine::Socket(socket) => socket.display().to_string(),
    };
    let checker_image = options.checker.clone().unwrap_or_else(checker_image);
    let checks_max = options
        .settings
        .iter()
        .find_map(|(key, value)| (*key == "checks_max").then(|| value.clone()));
    let ordinary = [
        // Equal to the highest limit: concurrent worlds load the machine unpredictably, and the
        // limit would follow.
        (
            "lab.checks_min",
            checks_max.unwrap_or_else(|| "4".to_owned()),
        ),
        ("contact", "https://lab.test/".to_owned()),
        ("seeds", options.seeds.join(",")),
        ("canaries", options.canaries.join(",")),
        ("data_dir", path("data")),
        ("public_dir", path("public")),
        ("run_dir", path("run")),
        ("engine_socket", engine_socket),
        ("checker_image", checker_image),
        ("instance", instance(directory)),
        // For Podman, which runs on this machine. Docker receives the profile itself.
        ("seccomp_path", path("seccomp.json")),
        ("lab.names_file", path("lab/names")),
        ("lab.extra_ca", path("lab/ca.pem")),
        ("lab.allow_private", "true".to_owned()),
        ("lab.reserved_suffixes", "true".to_owned()),
        // All lab hosts are below a few registered domains.
        ("source_limit", "1000000".to_owned()),
        ("admissions_limit", "1000000".to_owned()),
        ("group_threshold", "1000000".to_owned()),
        // High, like all other paces.
        ("lab.starts_per_second", "1000".to_owned()),
        ("lab.pace_divisor", "1000000".to_owned()),
        ("lab.interval_divisor", options.interval_divisor.to_string()),
    ];
    let mut settings = Settings::default();
    for (key, value) in ordinary.into_iter().chain(options.settings.iter().cloned()) {
        settings.set(key, &value);
    }
    settings
}

/// Concurrent worlds must not remove each other's containers.
fn instance(directory: &Path) -> String {
    directory.file_name().map_or_else(
        || "fedicensus-test".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
