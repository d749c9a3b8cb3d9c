//! What only Docker wants.

use bollard::models::HealthConfig;

use crate::spec::SeccompProfile;

/// No health check, whatever the image asks for.
pub(crate) fn no_health_check() -> HealthConfig {
    HealthConfig {
        test: Some(vec!["NONE".to_owned()]),
        ..HealthConfig::default()
    }
}

/// The security option for a seccomp profile: Docker takes the JSON itself, and no path on its machine.
pub(crate) fn seccomp(profile: &SeccompProfile) -> Option<String> {
    Some(format!("seccomp={}", profile.json))
}
