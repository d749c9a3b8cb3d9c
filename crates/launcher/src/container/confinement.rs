//! The limits of a container.

use crate::container::seccomp::SeccompProfile;

/// The limits of a container. The defaults are the design's; anything weaker is the operator's own
/// decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Confinement {
    /// User id: our own, not `nobody`'s, which others share.
    pub user: u32,
    /// Group id.
    pub group: u32,
    /// Memory in bytes, and no swap. A check takes some 10 MiB; NodeInfo may be 2 MiB of JSON.
    pub memory_bytes: u32,
    /// Processes and threads.
    pub pids_max: u32,
    /// Thousandths of a CPU.
    pub cpu_milli: u32,
    /// Open files. Podman up to 5.4 ignores it; the checker lowers its own.
    pub nofile: u32,
    /// `RLIMIT_NPROC` for Podman. It counts a user's processes over all containers, so it is no
    /// limit on a check: set it only, and to Podman's own hard limit, where Podman refuses to start
    /// a container because its default is higher than that.
    pub podman_nproc: Option<u32>,
    /// System calls; `None` leaves the engine's own profile in force, with which the probe lets no
    /// check start.
    pub seccomp: Option<SeccompProfile>,
    /// `SELinux` level for all our containers, such as `s0:c100,c200`, so that they can share the
    /// volumes of sockets.
    pub selinux_level: Option<String>,
}

impl Default for Confinement {
    fn default() -> Self {
        Self {
            user: 64321,
            group: 64321,
            memory_bytes: 64 * 1024 * 1024,
            pids_max: 16,
            cpu_milli: 500,
            nofile: 64,
            podman_nproc: None,
            seccomp: Some(SeccompProfile::ours(None)),
            selinux_level: None,
        }
    }
}
