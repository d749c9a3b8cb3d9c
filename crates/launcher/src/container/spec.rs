//! The specification of a check's container, limit by limit (invariant I1).
//!
//! A [`Spec`] is built from settings, an image, and a check's id and host. Only the id and the host
//! come from a request. The id names a directory and a label; the host is the last argument.

use std::collections::BTreeMap;

use protocol::{CheckId, Host, limits};

pub use crate::container::confinement::{Confinement, SELINUX_LEVEL};
pub use crate::container::seccomp::SeccompProfile;
use crate::settings::{EgressSource, Settings};

/// Label of everything that belongs to an installation. Its value is the installation's name.
pub const LABEL_INSTANCE: &str = "org.fedicensus";

/// Label of a check's container. Its value is the check's id. The installation's services don't
/// carry it and are never reaped.
pub const LABEL_CHECK: &str = "org.fedicensus.check";

/// Label with the check's host, for people who look at the engine's list.
pub const LABEL_HOST: &str = "org.fedicensus.host";

/// Label of the probe container, in addition to [`LABEL_CHECK`].
pub const LABEL_PROBE: &str = "org.fedicensus.probe";

/// A runtime that uses less processor time than Docker's default, runc. It is written in C instead
/// of Go, and caches the compiled list of system calls.
pub const CRUN: &str = "crun";

/// A container to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The image's id. A name may refer to another image by the next check.
    pub image: String,
    /// Arguments to the image's entry point.
    pub argv: Vec<String>,
    pub labels: BTreeMap<String, String>,
    /// What is mounted, read-only, at [`limits::EGRESS_MOUNT`]. The probe has no mount.
    pub egress: Option<EgressSource>,
    pub confinement: Confinement,
    /// The engine's runtime that runs it. `None` for the engine's default.
    pub runtime: Option<&'static str>,
}

impl Spec {
    /// The container of a check, from the image of this id.
    pub fn check(settings: &Settings, image: &str, check: &CheckId, host: &Host) -> Self {
        Self {
            argv: argv(settings, check, host),
            egress: Some(settings.egress.clone()),
            ..Self::labelled(settings, image, check, (LABEL_HOST, host.as_str()))
        }
    }

    /// The container that checks its own limits. It differs from a check's container in the
    /// arguments, a label and the mount.
    pub fn probe(settings: &Settings, image: &str, check: &CheckId) -> Self {
        Self {
            argv: vec!["--probe".to_owned()],
            ..Self::labelled(settings, image, check, (LABEL_PROBE, "limits"))
        }
    }

    fn labelled(
        settings: &Settings,
        image: &str,
        check: &CheckId,
        (label, value): (&str, &str),
    ) -> Self {
        Self {
            argv: Vec::new(),
            labels: BTreeMap::from([
                (LABEL_INSTANCE.to_owned(), settings.instance.clone()),
                (LABEL_CHECK.to_owned(), check.to_string()),
                (label.to_owned(), value.to_owned()),
            ]),
            egress: None,
            image: image.to_owned(),
            confinement: settings.confinement.clone(),
            runtime: None,
        }
    }
}

fn argv(settings: &Settings, check: &CheckId, host: &Host) -> Vec<String> {
    let egress = format!("{}/{}", limits::EGRESS_MOUNT, check.folder());
    let extra_roots = settings.extra_roots.then(|| "--extra-roots".to_owned());
    // After `--`, because a host name must never be read as an option.
    let last = ["--".to_owned(), host.to_string()];
    ["--egress".to_owned(), egress]
        .into_iter()
        .chain(extra_roots)
        .chain(last)
        .collect()
}

/// The labels that all containers of an installation's checks carry, and no other containers.
pub fn check_labels(instance: &str) -> [String; 2] {
    [
        format!("{LABEL_INSTANCE}={instance}"),
        LABEL_CHECK.to_owned(),
    ]
}

#[cfg(test)]
mod tests;
