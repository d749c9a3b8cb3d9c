//! The limits of a container.

use crate::container::seccomp::SeccompProfile;

/// `SELinux` level of a check: that of all parts in the compose files and Quadlet units, because a
/// check uses a socket that the gateway made (decision 0006). Engines ignore it on a machine
/// without `SELinux`.
pub const SELINUX_LEVEL: &str = "s0:c640,c641";

/// The limits of a container. Only the operator can weaken the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Confinement {
    /// User id. Not `nobody`, which other programs use too.
    pub user: u32,
    pub group: u32,
    /// Memory in bytes, without swap. A check needs about 10 MiB, and NodeInfo may be 2 MiB of
    /// JSON.
    pub memory_bytes: u32,
    /// Highest number of processes and threads.
    pub pids_max: u32,
    /// CPU share in thousandths of a CPU.
    pub cpu_milli: u32,
    /// Processor weight; other containers have 1024 by default. Checks give way to them.
    pub cpu_shares: u32,
    /// Highest number of open files. Podman up to 5.4 ignores it; the checker lowers its own limit.
    pub nofile: u32,
    /// `RLIMIT_NPROC` for Podman. The kernel counts a user's processes over all containers, so this
    /// does not limit a check. Set it only if Podman refuses to start a container because its
    /// default exceeds its hard limit, and then to that hard limit.
    pub podman_nproc: Option<u32>,
    /// Allowed system calls. `None` keeps the engine's own profile; the probe then allows no check.
    pub seccomp: Option<SeccompProfile>,
}

impl Default for Confinement {
    fn default() -> Self {
        Self {
            user: 64321,
            group: 64321,
            memory_bytes: 64 * 1024 * 1024,
            pids_max: 16,
            cpu_milli: 500,
            cpu_shares: 128,
            nofile: 64,
            podman_nproc: None,
            seccomp: Some(SeccompProfile::ours(None)),
        }
    }
}
