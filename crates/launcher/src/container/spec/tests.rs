use super::*;
use crate::engine::EngineKind;
use crate::engine::create::{COVER_OPTIONS, create_body};
use serde_json::{Value, json};

const IMAGE: &str = "sha256:1";

const CHECK: &str = "000000000000000000000000000000ff";

fn body(source: &EgressSource, kind: EngineKind) -> Value {
    let settings = Settings {
        egress: source.clone(),
        confinement: Confinement {
            podman_nproc: Some(4096),
            seccomp: Some(SeccompProfile {
                json: r#"{"defaultAction":"SCMP_ACT_ERRNO"}"#.to_owned(),
                path_on_engine: Some("/etc/fedicensus/seccomp.json".to_owned()),
            }),
            ..Confinement::default()
        },
        ..Settings::default()
    };
    let check = CheckId::parse(CHECK).unwrap();
    let host = Host::parse("a.example").unwrap();
    let spec = Spec::check(&settings, IMAGE, &check, &host);
    serde_json::to_value(create_body(&spec, kind)).unwrap()
}

fn expected(security: &Value, ulimits: &Value) -> Value {
    json!({
        "Image": IMAGE,
        "Cmd": ["--egress", format!("/egress/{CHECK}"), "--", "a.example"],
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
                "Source": "egress",
                "Type": "volume",
                "ReadOnly": true,
                "VolumeOptions": {"NoCopy": true},
            }],
            "Privileged": false,
            "CapDrop": ["ALL"],
            "SecurityOpt": security,
            "Memory": 67_108_864,
            "MemorySwap": 67_108_864,
            "PidsLimit": 16,
            "NanoCpus": 500_000_000,
            "CpuShares": 128,
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
        body(&source, EngineKind::Docker),
        expected(
            &json!([
                "no-new-privileges",
                r#"seccomp={"defaultAction":"SCMP_ACT_ERRNO"}"#,
                "label=level:s0:c640,c641",
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
            "no-new-privileges",
            "seccomp=/etc/fedicensus/seccomp.json",
            "label=level:s0:c640,c641",
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
    assert_eq!(body(&source, EngineKind::Podman), wanted);
}

/// A mount may not name anything below that directory, because the gateway chooses its contents.
#[test]
fn a_directory_of_the_machine_is_bound_as_it_is_set() {
    let source = EgressSource::Directory("/srv/egress".into());
    let body = body(&source, EngineKind::Docker);
    let mount = &body["HostConfig"]["Mounts"][0];
    assert_eq!(
        (&mount["Type"], &mount["Source"], &mount["ReadOnly"]),
        (&json!("bind"), &json!("/srv/egress"), &json!(true))
    );
}

/// The gateway writes the root certificates, so the gateway must not decide whether they are
/// trusted.
#[test] // S11
fn further_roots_are_trusted_only_in_the_lab() {
    let argv = |extra_roots| {
        let settings = Settings {
            extra_roots,
            ..Settings::default()
        };
        let check = CheckId::parse(CHECK).unwrap();
        let host = Host::parse("a.example").unwrap();
        Spec::check(&settings, IMAGE, &check, &host).argv
    };
    let egress = format!("/egress/{CHECK}");
    assert_eq!(argv(false), ["--egress", &egress, "--", "a.example"]);
    assert_eq!(
        argv(true),
        ["--egress", &egress, "--extra-roots", "--", "a.example"]
    );
}

/// A container's body without the parts that differ between a check and a probe.
fn common(spec: &Spec) -> Value {
    let mut body = serde_json::to_value(create_body(spec, EngineKind::Docker)).unwrap();
    body["Cmd"].take();
    body["Labels"].take();
    body["HostConfig"]["Mounts"].take();
    body
}

/// Otherwise the probe would not represent the checks.
#[test]
fn a_probe_differs_from_a_check_in_its_arguments_labels_and_mount_only() {
    let settings = Settings::default();
    let check = CheckId::parse(CHECK).unwrap();
    let host = Host::parse("a.example").unwrap();
    let probe = Spec::probe(&settings, IMAGE, &check);
    assert_eq!(
        common(&Spec::check(&settings, IMAGE, &check, &host)),
        common(&probe)
    );
    assert_eq!(
        (&probe.argv[..], &probe.egress),
        (&["--probe".to_owned()][..], &None)
    );
    assert!(
        probe.labels.contains_key(LABEL_CHECK),
        "a sweep would not find it"
    );
}
