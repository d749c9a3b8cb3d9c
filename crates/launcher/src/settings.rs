//! The launcher's settings, with the reason for every default. No request can change any of them.

use std::path::PathBuf;
use std::time::Duration;

use protocol::limits;

use crate::container::confinement::Confinement;

/// How long a launch waits for the first probe, so that an orchestrator that starts together with
/// the launcher doesn't begin with faults.
pub(crate) const STARTING_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Settings {
    /// Path of the socket for the orchestrator. Its folder is a volume that only these two share.
    pub socket: PathBuf,
    /// Name of the checker's image. A name that both engines accept starts with `localhost/`.
    pub image: String,
    /// Where the gateway creates the checks' egress directories.
    pub egress: EgressSource,
    /// Checkers also trust the root certificates that the gateway writes into their egress
    /// directories. In the lab only.
    pub extra_roots: bool,
    /// Most containers at the same time. Further launches are answered with `Full`. The
    /// orchestrator's own limit is lower or equal.
    pub checks_max: usize,
    /// A check's time, from its container's start (invariant I4).
    pub deadline: Duration,
    /// Added to the deadline, so that a checker that respects its deadline is never killed because
    /// of a slow engine.
    pub grace: Duration,
    /// The limits of a container.
    pub confinement: Confinement,
    /// Value of the label `org.fedicensus`. Installations on the same engine need different values,
    /// or they reap each other's checks.
    pub instance: String,
    /// Timeout for each small call: kill, list, and the exit code after a kill.
    pub call_timeout: Duration,
    /// Timeout for each of version, create, attach, start and remove. A rootless engine on a slow
    /// disk took 4 s.
    pub start_timeout: Duration,
    /// First pause after the engine failed; it doubles up to [`Self::backoff_max`].
    pub backoff_min: Duration,
    /// Longest pause between two attempts to reach an engine.
    pub backoff_max: Duration,
    /// Time between two sweeps for left-over containers.
    pub sweep_interval: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EgressSource {
    /// In a named volume of the engine: the usual way.
    Volume(String),
    /// In a directory of the engine's machine, for a gateway and a launcher outside of containers.
    Directory(PathBuf),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            socket: PathBuf::from("/run/fedicensus/launcher/launcher.sock"),
            image: "localhost/fedicensus-checker:latest".to_owned(),
            egress: EgressSource::Volume("fedicensus_egress".to_owned()),
            extra_roots: false,
            checks_max: 8,
            deadline: Duration::from_secs(limits::CHECK_SECONDS_MAX),
            grace: Duration::from_secs(5),
            confinement: Confinement::default(),
            instance: "fedicensus".to_owned(),
            call_timeout: Duration::from_secs(10),
            start_timeout: Duration::from_secs(30),
            backoff_min: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            sweep_interval: Duration::from_secs(60),
        }
    }
}

impl Settings {
    /// The launcher's own name for the image that passed the last probe. It stays when a build
    /// moves the configured name, and after the launcher's end.
    pub fn probed_image(&self) -> String {
        format!("localhost/fedicensus-probed:{}", self.instance)
    }

    /// Time from a container's start until it is killed.
    pub fn life_max(&self) -> Duration {
        self.deadline.saturating_add(self.grace)
    }

    /// Longest time from a launch request to its `End` or `Fault` frame. It covers create, attach
    /// and start; the container's life; then kill, wait and the last frame. If a client has waited
    /// longer, its launcher does not work.
    pub fn launch_max(&self) -> Duration {
        self.start_timeout
            .saturating_mul(3)
            .saturating_add(self.life_max())
            .saturating_add(self.call_timeout.saturating_mul(3))
            .saturating_add(STARTING_WAIT_MAX)
    }
}
