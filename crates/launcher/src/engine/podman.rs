//! What only Podman wants.

use bollard::models::{HealthConfig, SystemVersion};

use crate::container::seccomp::SeccompProfile;

/// What Podman calls itself as the first component of its version. Docker's is "Engine".
const COMPONENT: &str = "Podman Engine";

/// The way to have no health check is to say nothing of it: told `NONE` over this API, Podman 5.4 sets up a timer for each container that starts
/// another Podman to look after it. The checker's image asks for none.
pub(crate) const NO_HEALTH_CHECK: Option<HealthConfig> = None;

/// Where Podman tells every container, even one without a network, its machine's names and its address. Whatever is mounted there by the creator
/// of a container takes the place of Podman's own file.
pub(crate) const COVERED_PATHS: [&str; 1] = ["/etc/hosts"];

/// Whether an engine's `/version` is Podman's.
pub(crate) fn is_podman(version: &SystemVersion) -> bool {
    version
        .components
        .as_ref()
        .and_then(|components| components.first())
        .is_some_and(|component| component.name == COMPONENT)
}

/// The security option for a seccomp profile: Podman takes inline JSON for a file's name, so there is none without a path on its machine.
pub(crate) fn seccomp(profile: &SeccompProfile) -> Option<String> {
    profile
        .path_on_engine
        .as_ref()
        .map(|path| format!("seccomp={path}"))
}
