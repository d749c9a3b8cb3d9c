//! What only Docker wants.

use crate::spec::SeccompProfile;

/// The security option for a seccomp profile: Docker takes the JSON itself, and no path on its machine.
pub(crate) fn seccomp(profile: &SeccompProfile) -> Option<String> {
    Some(format!("seccomp={}", profile.json))
}
