//! A [`Spec`] in the form that the engines' create call takes.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, MountVolumeOptions,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use protocol::limits;

use crate::container::confinement::{Confinement, SELINUX_LEVEL};
use crate::container::spec::Spec;
use crate::engine::{EngineKind, docker, podman};
use crate::settings::EgressSource;

/// Paths that are writable even with a read-only root, so each is covered by a read-only mount. The
/// first four are writable on Podman. The last is writable on both engines: any process may create
/// message queues there.
const COVERED_PATHS: [&str; 5] = ["/tmp", "/run", "/var/tmp", "/dev/shm", "/dev/mqueue"];

/// Options of the covering mount, with the smallest tmpfs possible: one page.
pub(crate) const COVER_OPTIONS: &str = "ro,noexec,nosuid,nodev,size=4k";

/// The body of the engines' create call.
pub fn create_body(spec: &Spec, kind: EngineKind) -> ContainerCreateBody {
    let confinement = &spec.confinement;
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        cmd: Some(spec.argv.clone()),
        env: Some(Vec::new()),
        labels: Some(spec.labels.clone().into_iter().collect()),
        user: Some(format!("{}:{}", confinement.user, confinement.group)),
        // Otherwise the engine uses the container's id as host name, which nothing inside needs to
        // know.
        hostname: Some("check".to_owned()),
        domainname: Some(String::new()),
        attach_stdin: Some(false),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(false),
        stdin_once: Some(false),
        // A terminal would merge the two streams into one.
        tty: Some(false),
        healthcheck: match kind {
            EngineKind::Docker => Some(docker::no_health_check()),
            EngineKind::Podman => podman::NO_HEALTH_CHECK,
        },
        host_config: Some(host_config(spec, kind)),
        ..ContainerCreateBody::default()
    }
}

/// The part of the body that sets the limits.
fn host_config(spec: &Spec, kind: EngineKind) -> HostConfig {
    let confinement = &spec.confinement;
    let memory = i64::from(confinement.memory_bytes);
    let is_docker = match kind {
        EngineKind::Docker => true,
        EngineKind::Podman => false,
    };
    HostConfig {
        // A network namespace of its own, with the loopback interface and no route.
        network_mode: Some("none".to_owned()),
        dns: is_docker.then(|| vec![docker::RESOLVER.to_owned()]),
        dns_search: is_docker.then(|| vec![docker::SEARCH_NOWHERE.to_owned()]),
        readonly_rootfs: Some(true),
        tmpfs: Some(covers(kind)),
        mounts: Some(spec.egress.iter().map(mount).collect()),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(security_options(confinement, kind)),
        memory: Some(memory),
        // The sum of memory and swap. Equal to memory means no swap.
        memory_swap: Some(memory),
        pids_limit: Some(i64::from(confinement.pids_max)),
        nano_cpus: Some(i64::from(confinement.cpu_milli).saturating_mul(1_000_000)),
        cpu_shares: Some(i64::from(confinement.cpu_shares)),
        ulimits: Some(ulimits(confinement, kind)),
        ipc_mode: Some("none".to_owned()),
        // A log driver would write checkers' output, which hosts can influence, to the disk.
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        // The launcher removes containers. Auto-remove would lose exit codes and the out-of-memory
        // flag.
        auto_remove: Some(false),
        init: Some(false),
        runtime: spec.runtime.map(str::to_owned),
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

/// Mounts the root of all egress directories. A directory below the root can't be a mount's source:
/// the gateway owns the root and could put a link to any directory of the machine there, which
/// engines follow. A check can't find the directories of others, because their names are 128 random
/// bits and the root has mode 0711.
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
        // A mount instead of an entry of `Binds`, for which Docker creates a missing directory.
        EgressSource::Directory(path) => Mount {
            typ: Some(MountType::BIND),
            source: Some(path.display().to_string()),
            ..common
        },
    }
}

fn security_options(confinement: &Confinement, kind: EngineKind) -> Vec<String> {
    let mut options = vec!["no-new-privileges".to_owned()];
    if let Some(profile) = &confinement.seccomp {
        options.extend(match kind {
            EngineKind::Docker => docker::seccomp(profile),
            EngineKind::Podman => podman::seccomp(profile),
        });
    }
    options.push(format!("label=level:{SELINUX_LEVEL}"));
    options
}

fn ulimits(confinement: &Confinement, kind: EngineKind) -> Vec<ResourcesUlimits> {
    let mut all = vec![
        ulimit("nofile", confinement.nofile),
        // The engine's machine decides where core dumps go, possibly out of the container.
        ulimit("core", 0),
    ];
    match kind {
        EngineKind::Docker => {}
        EngineKind::Podman => {
            all.extend(confinement.podman_nproc.map(|value| ulimit("nproc", value)))
        }
    }
    all
}

fn ulimit(name: &str, value: u32) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(i64::from(value)),
        hard: Some(i64::from(value)),
    }
}
