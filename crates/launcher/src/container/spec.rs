//! A check's container, limit by limit (design §4, invariant I1).
//!
//! In: settings, the engine's identity, a check's id and host. Out: a [`Spec`], and [`create_body`], its form in the engines' API.
//! The id and the host are the only things in it that come from a request: one names a directory and a label, the other is the last argument.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, MountVolumeOptions,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use protocol::{CheckId, Host, limits};

use crate::engine::EngineKind;
use crate::engine::{docker, podman};
use crate::settings::{EgressSource, Settings};

/// Label of everything that belongs to an installation; its value is the installation's name.
pub const LABEL_INSTANCE: &str = "org.fedicensus";

/// Label of a check's container; its value is the check's id. Services of the installation don't carry it and are never reaped.
pub const LABEL_CHECK: &str = "org.fedicensus.check";

/// Label with the check's host, for people who look at the engine's list.
pub const LABEL_HOST: &str = "org.fedicensus.host";

/// Label of the probe container, beside [`LABEL_CHECK`].
pub const LABEL_PROBE: &str = "org.fedicensus.probe";

/// Writable even with a read-only root, so something read-only lies over them: on Podman the first four, on both engines the last, in which
/// everybody may make message queues.
const COVERED_PATHS: [&str; 5] = ["/tmp", "/run", "/var/tmp", "/dev/shm", "/dev/mqueue"];

/// The smallest tmpfs there is: a page.
const COVER_OPTIONS: &str = "ro,noexec,nosuid,nodev,size=4k";

/// A container to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Image, by its id: a name may be another image's by the next check.
    pub image: String,
    /// Arguments to the image's entry point.
    pub argv: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// What is mounted, read-only, at [`limits::EGRESS_MOUNT`]; the probe has nothing there.
    pub egress: Option<EgressSource>,
    /// Its limits.
    pub confinement: Confinement,
}

/// The limits of a container. The defaults are the design's; anything weaker is the operator's own decision.
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
    /// `RLIMIT_NPROC` for Podman. It counts a user's processes over all containers, so it is no limit on a check: set it only, and to
    /// Podman's own hard limit, where Podman refuses to start a container because its default is higher than that.
    pub podman_nproc: Option<u32>,
    /// System calls; `None` leaves the engine's own profile in force, with which the probe lets no check start.
    pub seccomp: Option<SeccompProfile>,
    /// `SELinux` level for all our containers, such as `s0:c100,c200`, so that they can share the volumes of sockets.
    pub selinux_level: Option<String>,
}

/// A seccomp profile, in the two forms in which it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeccompProfile {
    /// The profile's JSON: Docker takes it inline.
    pub json: String,
    /// Path of a file with the same JSON on the engine's machine: Podman takes nothing else.
    pub path_on_engine: Option<String>,
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

impl Spec {
    /// The container of a check, from the image of this id.
    pub fn check(settings: &Settings, image: &str, check: &CheckId, host: &Host) -> Self {
        Self {
            argv: argv(settings, check, host),
            labels: BTreeMap::from([
                (LABEL_INSTANCE.to_owned(), settings.instance.clone()),
                (LABEL_CHECK.to_owned(), check.to_string()),
                (LABEL_HOST.to_owned(), host.to_string()),
            ]),
            egress: Some(settings.egress.clone()),
            image: image.to_owned(),
            confinement: settings.confinement.clone(),
        }
    }

    /// The container that looks at its own limits: a check's, but for the arguments, a label and
    /// the mount.
    pub fn probe(settings: &Settings, image: &str, check: &CheckId) -> Self {
        Self {
            argv: vec!["--probe".to_owned()],
            labels: BTreeMap::from([
                (LABEL_INSTANCE.to_owned(), settings.instance.clone()),
                (LABEL_CHECK.to_owned(), check.to_string()),
                (LABEL_PROBE.to_owned(), "limits".to_owned()),
            ]),
            egress: None,
            image: image.to_owned(),
            confinement: settings.confinement.clone(),
        }
    }
}

/// A check's arguments.
fn argv(settings: &Settings, check: &CheckId, host: &Host) -> Vec<String> {
    let egress = format!("{}/{check}", limits::EGRESS_MOUNT);
    let extra_roots = settings.extra_roots.then(|| "--extra-roots".to_owned());
    // `--` because no name may ever be read as an option.
    let last = ["--".to_owned(), host.to_string()];
    ["--egress".to_owned(), egress]
        .into_iter()
        .chain(extra_roots)
        .chain(last)
        .collect()
}

/// The labels by which all containers of an installation's checks are found, and no others.
pub fn check_labels(instance: &str) -> [String; 2] {
    [
        format!("{LABEL_INSTANCE}={instance}"),
        LABEL_CHECK.to_owned(),
    ]
}

/// The body of the engines' create call.
pub fn create_body(spec: &Spec, kind: EngineKind) -> ContainerCreateBody {
    let confinement = &spec.confinement;
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        cmd: Some(spec.argv.clone()),
        env: Some(Vec::new()),
        labels: Some(spec.labels.clone().into_iter().collect()),
        user: Some(format!("{}:{}", confinement.user, confinement.group)),
        // The engine would otherwise name it by its id, which nothing inside needs to know.
        hostname: Some("check".to_owned()),
        domainname: Some(String::new()),
        attach_stdin: Some(false),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(false),
        stdin_once: Some(false),
        // With a terminal there would be one stream instead of two.
        tty: Some(false),
        healthcheck: match kind {
            EngineKind::Docker => Some(docker::no_health_check()),
            EngineKind::Podman => podman::NO_HEALTH_CHECK,
        },
        host_config: Some(host_config(spec, kind)),
        ..ContainerCreateBody::default()
    }
}

/// The part of the body that confines.
fn host_config(spec: &Spec, kind: EngineKind) -> HostConfig {
    let confinement = &spec.confinement;
    let memory = i64::from(confinement.memory_bytes);
    HostConfig {
        network_mode: Some("none".to_owned()),
        dns: match kind {
            EngineKind::Docker => Some(vec![docker::RESOLVER.to_owned()]),
            EngineKind::Podman => None,
        },
        dns_search: match kind {
            EngineKind::Docker => Some(vec![docker::SEARCH_NOWHERE.to_owned()]),
            EngineKind::Podman => None,
        },
        readonly_rootfs: Some(true),
        tmpfs: Some(covers(kind)),
        mounts: Some(spec.egress.iter().map(mount).collect()),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(security_options(confinement, kind)),
        memory: Some(memory),
        // Memory and swap together: equal to memory, there is no swap.
        memory_swap: Some(memory),
        pids_limit: Some(i64::from(confinement.pids_max)),
        nano_cpus: Some(i64::from(confinement.cpu_milli).saturating_mul(1_000_000)),
        ulimits: Some(ulimits(confinement, kind)),
        ipc_mode: Some("none".to_owned()),
        // A log driver would write to the disk what hosts make checkers print.
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        // Removed by us: with auto-remove, exit codes and the out-of-memory flag get lost.
        auto_remove: Some(false),
        init: Some(false),
        publish_all_ports: Some(false),
        ..HostConfig::default()
    }
}

fn covers(kind: EngineKind) -> HashMap<String, String> {
    let further: &[&str] = match kind {
        EngineKind::Docker => &[],
        EngineKind::Podman => &podman::COVERED_PATHS,
    };
    COVERED_PATHS
        .iter()
        .chain(further)
        .map(|path| ((*path).to_owned(), COVER_OPTIONS.to_owned()))
        .collect()
}

/// All egress directories at once, because nothing below their root may be a mount's source: it is
/// the gateway's, which could put a link to any directory of the machine there, and engines follow
/// it. What a check is not told the name of, 128 bits of chance, it can't find in a directory of
/// mode 0711.
fn mount(egress: &EgressSource) -> Mount {
    let common = Mount {
        target: Some(limits::EGRESS_MOUNT.to_owned()),
        read_only: Some(true),
        ..Mount::default()
    };
    match egress {
        EgressSource::Volume(volume) => Mount {
            typ: Some(MountType::VOLUME),
            source: Some(volume.clone()),
            volume_options: Some(MountVolumeOptions {
                no_copy: Some(true),
                ..MountVolumeOptions::default()
            }),
            ..common
        },
        // A mount, not an entry of `Binds`: for those, Docker makes a directory that is not there.
        EgressSource::Directory(path) => Mount {
            typ: Some(MountType::BIND),
            source: Some(path.display().to_string()),
            ..common
        },
    }
}

fn security_options(confinement: &Confinement, kind: EngineKind) -> Vec<String> {
    let mut options = vec!["no-new-privileges:true".to_owned()];
    if let Some(profile) = &confinement.seccomp {
        options.extend(match kind {
            EngineKind::Docker => docker::seccomp(profile),
            EngineKind::Podman => podman::seccomp(profile),
        });
    }
    if let Some(level) = &confinement.selinux_level {
        options.push(format!("label=level:{level}"));
    }
    options
}

fn ulimits(confinement: &Confinement, kind: EngineKind) -> Vec<ResourcesUlimits> {
    let mut all = vec![
        ulimit("nofile", confinement.nofile),
        // A core dump would go wherever the engine's machine sends core dumps.
        ulimit("core", 0),
    ];
    match kind {
        EngineKind::Docker => {}
        EngineKind::Podman => all.extend(podman::nproc(confinement)),
    }
    all
}

/// An rlimit whose soft and hard values are the same.
pub(crate) fn ulimit(name: &str, value: u32) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(i64::from(value)),
        hard: Some(i64::from(value)),
    }
}

#[cfg(test)]
mod tests;
