//! The system calls of a check, as an allow-list of our own (design §4, invariant I1).
//!
//! The list is `seccomp.json` beside this file, in the form that Docker and Podman read; each group of calls carries its reason as `comment`, of
//! which the first word says who needs it:
//!
//! - `checker`: seen in a trace of the checker's own work. `cargo xtask seccomp` makes such traces and compares.
//! - `probe`: what the checker's `--probe` looks at beside, and the mark by which it knows the profile.
//! - `runtime`: runc and crun load the filter before they execute the checker, and call these in between.
//! - `rare`: other ways to the same end, which another architecture, C library or version may take; none of them opens a door.
//!
//! Whatever is not on it is refused with `EPERM`, and calls in another architecture's convention than the machine's own end the process.

use serde_json::Value;

/// The profile with its reasons, for people and for Podman's file.
pub const PROFILE: &str = include_str!("seccomp.json");

/// What the profile answers to `getsid`, by which the probe knows it: a checksum of the rest of it, so that a file that was not written again
/// after an update is told from the current one. It is no proof against somebody who edits the file on purpose. A test says the right number
/// after a change, which goes here and into `seccomp.json`.
pub const MARK: u16 = 1190;

/// A seccomp profile, in the two forms in which it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeccompProfile {
    /// The profile's JSON: Docker takes it inline.
    pub json: String,
    /// Path of a file with the same JSON on the engine's machine: Podman takes nothing else.
    pub path_on_engine: Option<String>,
}

impl SeccompProfile {
    /// Our own; Podman needs to be told where a file with [`PROFILE`] is on its machine.
    pub fn ours(path_on_engine: Option<String>) -> Self {
        Self {
            json: inline(),
            path_on_engine,
        }
    }
}

/// The profile without its reasons: Docker keeps the text with every container.
fn inline() -> String {
    let Ok(mut profile) = serde_json::from_str::<Value>(PROFILE) else {
        // Not so, as a test holds; and the engine would refuse it.
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
