//! Settings that only Podman needs.

use bollard::models::{HealthConfig, SystemVersion};

use crate::container::seccomp::SeccompProfile;

/// Podman's name in the first component of its version. Docker's is "Engine".
const COMPONENT: &str = "Podman Engine";

/// No health check at all. With `NONE`, Podman 5.4 sets up a timer for each container that starts
/// another Podman process. The checker's image defines no health check.
pub(crate) const NO_HEALTH_CHECK: Option<HealthConfig> = None;

/// The file in which Podman writes its machine's names and address, even without a network. A mount
/// on that path replaces Podman's file.
pub(crate) const COVERED_PATHS: [&str; 1] = ["/etc/hosts"];

pub(crate) fn is_podman(version: &SystemVersion) -> bool {
    version
        .components
        .as_ref()
        .and_then(|components| components.first())
        .is_some_and(|component| component.name == COMPONENT)
}

/// The security option for a seccomp profile. Podman treats inline JSON as a file name, so there is
/// no option without a path on its machine.
pub(crate) fn seccomp(profile: &SeccompProfile) -> Option<String> {
    profile
        .path_on_engine
        .as_ref()
        .map(|path| format!("seccomp={path}"))
}
