//! A [`Spec`] in the form that the engines' create call takes.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, MountVolumeOptions,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use protocol::limits;

use crate::container::confinement::Confinement;
use crate::container::spec::{Network, Spec};
use crate::engine::{EngineKind, docker, podman};
use crate::settings::EgressSource;

/// Writable even with a read-only root, so something read-only lies over them: on Podman the first four, on both engines the last, in which
/// everybody may make message queues.
const COVERED_PATHS: [&str; 5] = ["/tmp", "/run", "/var/tmp", "/dev/shm", "/dev/mqueue"];

/// The smallest tmpfs there is: a page.
pub(crate) const COVER_OPTIONS: &str = "ro,noexec,nosuid,nodev,size=4k";

/// The body of the engines' create call.
pub fn create_body(spec: &Spec, kind: EngineKind) -> ContainerCreateBody {
    let confinement = &spec.confinement;
    // A container that joins a namespace has the host name and the resolvers of that one's holder,
    // and engines refuse others.
    let has_names = spec.network == Network::Own;
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        cmd: Some(spec.argv.clone()),
        env: Some(Vec::new()),
        labels: Some(spec.labels.clone().into_iter().collect()),
        user: Some(format!("{}:{}", confinement.user, confinement.group)),
        // The engine would otherwise name it by its id, which nothing inside needs to know.
        hostname: has_names.then(|| "check".to_owned()),
        domainname: has_names.then(String::new),
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
    let resolvers_of_docker = match kind {
        EngineKind::Docker => spec.network == Network::Own,
        EngineKind::Podman => false,
    };
    HostConfig {
        network_mode: Some(match &spec.network {
            Network::Own => "none".to_owned(),
            Network::Slot(holder) => format!("container:{holder}"),
        }),
        dns: resolvers_of_docker.then(|| vec![docker::RESOLVER.to_owned()]),
        dns_search: resolvers_of_docker.then(|| vec![docker::SEARCH_NOWHERE.to_owned()]),
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
        EngineKind::Podman => {
            all.extend(confinement.podman_nproc.map(|value| ulimit("nproc", value)))
        }
    }
    all
}

/// An rlimit whose soft and hard values are the same.
fn ulimit(name: &str, value: u32) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(i64::from(value)),
        hard: Some(i64::from(value)),
    }
}
