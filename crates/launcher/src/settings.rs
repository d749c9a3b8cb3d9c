//! What an operator may choose about launching, with the reason for every default. Nothing in a request can change any of it.

use std::path::PathBuf;
use std::time::Duration;

use protocol::limits;

use crate::container::confinement::Confinement;

/// How long a launch waits for the first probe, so that an orchestrator that starts together with
/// the launcher doesn't begin with faults.
pub(crate) const STARTING_WAIT_MAX: Duration = Duration::from_secs(10);

/// The launcher's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Path of the socket that the orchestrator connects to. Its folder is a volume that those two
    /// share.
    pub socket: PathBuf,
    /// Name of the checker's image: a name both engines take must start with `localhost/`.
    pub image: String,
    /// Where the gateway makes the checks' egress directories.
    pub egress: EgressSource,
    /// Checkers trust the roots that the gateway lays into their egress directories as well: in the
    /// lab only.
    pub extra_roots: bool,
    /// Containers at the same time. The orchestrator's own setting is lower or equal; above, a launch is answered with `Full`.
    pub checks_max: usize,
    /// A check's time, from its container's start (design §7).
    pub deadline: Duration,
    /// Added to the deadline, so that a checker that keeps its time itself is never killed for a slow engine.
    pub grace: Duration,
    /// The limits of a container.
    pub confinement: Confinement,
    /// Value of the label `org.fedicensus`: installations that share an engine need different ones, or they reap each other's checks.
    pub instance: String,
    /// Longest wait for the answer to a small call: kill, list, and for the exit code after a kill.
    pub call_timeout: Duration,
    /// Longest wait for each of version, create, attach, start and remove. A rootless engine on a slow disk took 4 s.
    pub start_timeout: Duration,
    /// First pause after the engine failed; it doubles up to [`Self::backoff_max`].
    pub backoff_min: Duration,
    /// Longest pause between two attempts to reach an engine.
    pub backoff_max: Duration,
    /// Between two sweeps for containers that nobody runs any more.
    pub sweep_interval: Duration,
    /// Whether checks join network namespaces that are kept.
    pub slots: SlotMode,
}

/// Whether checks join the network namespace of their slot, which a holder keeps, or have one of
/// their own. The namespace is half of what Docker does for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotMode {
    /// Whichever takes less time on this engine, measured before the first check.
    Auto,
    /// They join.
    On,
    /// They have their own.
    Off,
}

/// Where the egress directories are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EgressSource {
    /// In a named volume of the engine: the ordinary way.
    Volume(String),
    /// In a directory of the engine's machine: when gateway and launcher run outside of containers.
    Directory(PathBuf),
}

/// Path at which deployments mount the engine's socket into the launcher.
pub const ENGINE_SOCKET_DEFAULT: &str = "/run/engine.sock";

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
            // An engine behind the trait need not have namespaces that can be joined.
            slots: SlotMode::Off,
        }
    }
}

impl Settings {
    /// From a container's start until it is killed.
    pub fn life_max(&self) -> Duration {
        self.deadline.saturating_add(self.grace)
    }

    /// Longest time from a launch request to its `End` or `Fault` frame: create and start of a
    /// holder; create, attach and start; after a holder that had died two removals and these three
    /// again; the life; then kill, wait and the writing of the last frame. A client that has waited
    /// longer has a launcher that does not work.
    pub fn launch_max(&self) -> Duration {
        self.start_timeout
            .saturating_mul(10)
            .saturating_add(self.life_max())
            .saturating_add(self.call_timeout.saturating_mul(3))
            .saturating_add(STARTING_WAIT_MAX)
    }
}
