use super::*;
use serde_json::{Value, json};

const CHECK: &str = "000000000000000000000000000000ff";

fn body(source: &EgressSource, kind: EngineKind, api: (usize, usize)) -> Value {
    let settings = Settings {
        egress: source.clone(),
        confinement: Confinement {
            podman_nproc: Some(4096),
            seccomp: Some(SeccompProfile {
                json: r#"{"defaultAction":"SCMP_ACT_ERRNO"}"#.to_owned(),
                path_on_engine: Some("/etc/fedicensus/seccomp.json".to_owned()),
            }),
            selinux_level: Some("s0:c100,c200".to_owned()),
            ..Confinement::default()
        },
        ..Settings::default()
    };
    let identity = Identity {
        kind,
        version: "0".to_owned(),
        api,
    };
    let mountpoint = Some("/var/lib/volumes/egress/_data".to_owned());
    let base = EgressBase::new(source, &identity, mountpoint).unwrap();
    let check = CheckId::parse(CHECK).unwrap();
    let spec = Spec::check(&settings, &base, &check, &Host::parse("a.example").unwrap());
    serde_json::to_value(create_body(&spec, kind)).unwrap()
}

fn expected(security: &Value, ulimits: &Value) -> Value {
    json!({
        "Image": "localhost/fedicensus-checker:latest",
        "Cmd": ["--", "a.example"],
        "Env": [],
        "Labels": {
            "org.fedicensus": "fedicensus",
            "org.fedicensus.check": CHECK,
            "org.fedicensus.host": "a.example",
        },
        "User": "64321:64321",
        "Hostname": "check",
        "Domainname": "",
        "AttachStdin": false,
        "AttachStdout": true,
        "AttachStderr": true,
        "OpenStdin": false,
        "StdinOnce": false,
        "Tty": false,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "none",
            "Dns": ["127.0.0.1"],
            "DnsSearch": ["."],
            "ReadonlyRootfs": true,
            "Tmpfs": {
                "/tmp": "ro,noexec,nosuid,nodev,size=4k",
                "/run": "ro,noexec,nosuid,nodev,size=4k",
                "/var/tmp": "ro,noexec,nosuid,nodev,size=4k",
                "/dev/mqueue": "ro,noexec,nosuid,nodev,size=4k",
                "/dev/shm": "ro,noexec,nosuid,nodev,size=4k",
            },
            "Mounts": [{
                "Target": "/egress",
                "Source": format!("/var/lib/volumes/egress/_data/{CHECK}"),
                "Type": "bind",
                "ReadOnly": true,
            }],
            "Privileged": false,
            "CapDrop": ["ALL"],
            "SecurityOpt": security,
            "Memory": 67_108_864,
            "MemorySwap": 67_108_864,
            "PidsLimit": 16,
            "NanoCpus": 500_000_000,
            "Ulimits": ulimits,
            "IpcMode": "none",
            "LogConfig": {"Type": "none"},
            "RestartPolicy": {"Name": "no"},
            "AutoRemove": false,
            "Init": false,
            "PublishAllPorts": false,
        },
    })
}

#[test]
fn docker_gets_exactly_this_container() {
    let source = EgressSource::Volume("egress".to_owned());
    assert_eq!(
        body(&source, EngineKind::Docker, (1, 41)),
        expected(
            &json!([
                "no-new-privileges:true",
                r#"seccomp={"defaultAction":"SCMP_ACT_ERRNO"}"#,
                "label=level:s0:c100,c200",
            ]),
            &json!([
                {"Name": "nofile", "Soft": 64, "Hard": 64},
                {"Name": "core", "Soft": 0, "Hard": 0},
            ]),
        )
    );
}

#[test]
fn podman_gets_exactly_this_container() {
    let source = EgressSource::Volume("egress".to_owned());
    let mut wanted = expected(
        &json!([
            "no-new-privileges:true",
            "seccomp=/etc/fedicensus/seccomp.json",
            "label=level:s0:c100,c200",
        ]),
        &json!([
            {"Name": "nofile", "Soft": 64, "Hard": 64},
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "nproc", "Soft": 4096, "Hard": 4096},
        ]),
    );
    wanted["HostConfig"]["Tmpfs"]["/etc/hosts"] = json!(COVER_OPTIONS);
    let members = wanted.as_object_mut().unwrap();
    members.retain(|name, _| name != "Healthcheck");
    let confined = wanted["HostConfig"].as_object_mut().unwrap();
    confined.retain(|name, _| !name.starts_with("Dns"));
    assert_eq!(body(&source, EngineKind::Podman, (1, 41)), wanted);
}

#[test]
fn an_engine_that_can_mounts_a_part_of_the_volume() {
    let source = EgressSource::Volume("egress".to_owned());
    let body = body(&source, EngineKind::Docker, (1, 45));
    assert_eq!(
        body["HostConfig"]["Mounts"],
        json!([{
            "Target": "/egress",
            "Source": "egress",
            "Type": "volume",
            "ReadOnly": true,
            "VolumeOptions": {"NoCopy": true, "Subpath": CHECK},
        }])
    );
}

#[test]
fn a_directory_of_the_machine_is_bound_by_the_check_alone() {
    let source = EgressSource::Directory("/srv/egress/".into());
    let body = body(&source, EngineKind::Docker, (1, 45));
    assert_eq!(
        body["HostConfig"]["Mounts"][0]["Source"],
        format!("/srv/egress/{CHECK}")
    );
}

#[test]
fn a_volume_that_is_not_there_is_no_base() {
    let identity = Identity {
        kind: EngineKind::Docker,
        version: "0".to_owned(),
        api: (1, 45),
    };
    let source = EgressSource::Volume("egress".to_owned());
    assert_eq!(EgressBase::new(&source, &identity, None), None);
}

/// Else the probe would say nothing about the checks.
#[test]
fn the_probe_differs_from_a_check_in_its_arguments_labels_and_mount_only() {
    let settings = Settings::default();
    let check = CheckId::parse(CHECK).unwrap();
    let base = EgressBase::Path("/base".to_owned());
    let of_check = Spec::check(&settings, &base, &check, &Host::parse("a.example").unwrap());
    let of_probe = Spec::probe(&settings, &check);
    let strip = |spec: &Spec| {
        let mut body = serde_json::to_value(create_body(spec, EngineKind::Docker)).unwrap();
        body["Cmd"].take();
        body["Labels"].take();
        body["HostConfig"]["Mounts"].take();
        body
    };
    assert_eq!(strip(&of_check), strip(&of_probe));
    assert_eq!(of_probe.argv, ["--probe"]);
    assert_eq!(of_probe.egress, None);
    assert!(
        of_probe.labels.contains_key(LABEL_CHECK),
        "or it would not be reaped"
    );
}
