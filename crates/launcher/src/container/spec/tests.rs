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
    let spec = Spec::check(&settings, IMAGE, &check, &host, Network::Own);
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
                "no-new-privileges:true",
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
            "no-new-privileges:true",
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
#[test]
fn a_check_trusts_further_roots_when_the_launchers_own_settings_are_the_labs_only() {
    let argv = |extra_roots| {
        let settings = Settings {
            extra_roots,
            ..Settings::default()
        };
        let check = CheckId::parse(CHECK).unwrap();
        let host = Host::parse("a.example").unwrap();
        Spec::check(&settings, IMAGE, &check, &host, Network::Own).argv
    };
    let egress = format!("/egress/{CHECK}");
    assert_eq!(argv(false), ["--egress", &egress, "--", "a.example"]);
    assert_eq!(
        argv(true),
        ["--egress", &egress, "--extra-roots", "--", "a.example"]
    );
}

/// A container's body without the parts that differ between a check, a probe and a holder.
fn common(spec: &Spec) -> Value {
    let mut body = serde_json::to_value(create_body(spec, EngineKind::Docker)).unwrap();
    body["Cmd"].take();
    body["Labels"].take();
    body["HostConfig"]["Mounts"].take();
    body
}

/// Otherwise the probe would not represent the checks.
#[test]
fn probe_and_holder_differ_from_a_check_in_their_arguments_labels_and_mount_only() {
    let settings = Settings::default();
    let check = CheckId::parse(CHECK).unwrap();
    let host = Host::parse("a.example").unwrap();
    let of_check = |network| Spec::check(&settings, IMAGE, &check, &host, network);
    let of_probe = |network| Spec::probe(&settings, IMAGE, &check, network);
    let of_holder = Spec::holder(&settings, IMAGE, &check);
    let slot = Network::Slot(ContainerId("h1".to_owned()));
    for network in [Network::Own, slot] {
        let (check, probe) = (of_check(network.clone()), of_probe(network));
        assert_eq!(common(&check), common(&probe));
    }
    assert_eq!(common(&of_check(Network::Own)), common(&of_holder));
    for (spec, argument) in [(of_probe(Network::Own), "--probe"), (of_holder, "--hold")] {
        assert_eq!(spec.argv, [argument]);
        assert_eq!(spec.egress, None);
        assert!(
            spec.labels.contains_key(LABEL_CHECK),
            "a sweep would not find it"
        );
    }
}

/// The engines refuse names for a container that joins a namespace; it has its holder's names.
#[test]
fn a_check_in_a_slot_differs_in_its_namespace_and_in_the_names_that_come_with_it_only() {
    let settings = Settings::default();
    let check = CheckId::parse(CHECK).unwrap();
    for kind in [EngineKind::Docker, EngineKind::Podman] {
        let body = |network| {
            let spec = Spec::probe(&settings, IMAGE, &check, network);
            serde_json::to_value(create_body(&spec, kind)).unwrap()
        };
        let mut wanted = body(Network::Own);
        let members = wanted.as_object_mut().unwrap();
        members.retain(|name, _| !["Hostname", "Domainname"].contains(&name.as_str()));
        wanted["HostConfig"]["NetworkMode"] = json!("container:h1");
        let confined = wanted["HostConfig"].as_object_mut().unwrap();
        confined.retain(|name, _| !name.starts_with("Dns"));
        let slot = Network::Slot(ContainerId("h1".to_owned()));
        assert_eq!(body(slot), wanted, "{kind}");
    }
}
