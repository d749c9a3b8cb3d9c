//! Settings that only Docker needs.

use bollard::models::HealthConfig;

use crate::container::seccomp::SeccompProfile;

/// By default Docker writes its machine's resolvers into every container, even one without a
/// network. This address leads nowhere there.
pub(crate) const RESOLVER: &str = "127.0.0.1";

/// No search domain, for the same reason.
pub(crate) const SEARCH_NOWHERE: &str = ".";

/// Disables the health check, whatever the image defines.
pub(crate) fn no_health_check() -> HealthConfig {
    HealthConfig {
        test: Some(vec!["NONE".to_owned()]),
        ..HealthConfig::default()
    }
}

/// The security option for a seccomp profile. Docker takes the JSON itself and no path on its
/// machine.
pub(crate) fn seccomp(profile: &SeccompProfile) -> Option<String> {
    Some(format!("seccomp={}", profile.json))
}
