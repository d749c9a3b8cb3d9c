//! The system calls that a check may make: our own allow-list (invariant I1, decision 0004).
//!
//! The list is `seccomp.json` next to this file, in the format of Docker and Podman. Each group of
//! calls carries its reason as `comment`. The first word of the reason names what needs the calls:
//!
//! - `checker`: appears in a trace of the checker at work. `cargo xtask seccomp` makes such traces
//!   and compares.
//! - `probe`: what the checker's `--probe` also tries, and the mark by which it recognises the
//!   profile.
//! - `runtime`: runc and crun load the filter before they execute the checker, and make these calls
//!   in between.
//! - `rare`: other calls for the same purposes, which another architecture, C library or version
//!   may use. None of them gives access to anything more.
//!
//! Every other call fails with `EPERM`. Calls in another architecture's convention end the process.

use serde_json::Value;

/// The profile with its reasons, for people and for Podman's file.
pub const PROFILE: &str = include_str!("seccomp.json");

/// What the profile answers to `getsid`. The probe recognises the profile by it. It is a checksum
/// of the rest of the profile, so that a file that was not rewritten after an update is detected.
/// It does not protect against deliberate edits of the file. After a change of the profile a test
/// prints the right number, which goes here and into `seccomp.json`.
pub const MARK: u16 = 1190;

/// A seccomp profile, in the two forms that the engines need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeccompProfile {
    /// The profile's JSON, which Docker takes inline.
    pub json: String,
    /// Path of a file with the same JSON on the engine's machine. Podman accepts only a path.
    pub path_on_engine: Option<String>,
}

impl SeccompProfile {
    /// Our own profile. Podman needs the path of a file with [`PROFILE`] on its machine.
    pub fn ours(path_on_engine: Option<String>) -> Self {
        Self {
            json: inline(),
            path_on_engine,
        }
    }
}

/// The profile without its reasons, because Docker keeps the text with every container.
fn inline() -> String {
    let Ok(mut profile) = serde_json::from_str::<Value>(PROFILE) else {
        // A test shows that it is valid JSON; the engine would refuse anything else.
        return PROFILE.to_owned();
    };
    let groups = profile.get_mut("syscalls").and_then(Value::as_array_mut);
    for group in groups.into_iter().flatten() {
        if let Some(group) = group.as_object_mut() {
            group.remove("comment");
        }
    }
    profile.to_string()
}

#[cfg(test)]
mod tests;
