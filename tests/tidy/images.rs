//! Agreement of the Containerfiles, compose.yaml, the Quadlet units and the workspace.

use std::process::Command;

use launcher::spec::SELINUX_LEVEL;

use crate::tree::{files, manifests, none, read, root};

const CONTAINERFILES: [&str; 3] = [
    "Containerfile.checker",
    "Containerfile.orchestrator",
    "lab/Containerfile.lab",
];

/// The compose files that start parts from images.
const COMPOSE_FILES: [&str; 6] = [
    "compose.yaml",
    "deploy/compose.intake.yaml",
    "deploy/compose.console.yaml",
    "deploy/compose.push.yaml",
    "deploy/compose.second-way.yaml",
    "deploy/compose.lab.yaml",
];

fn build_stage(containerfile: &str) -> String {
    let text = read(containerfile);
    let stage = text.split_once("# The build stage");
    let stage = stage.and_then(|(_, rest)| rest.split_once("# End of the build stage."));
    let (stage, _) = stage.unwrap_or_else(|| panic!("{containerfile} has no whole build stage"));
    stage.to_owned()
}

#[test]
fn the_build_stage_is_the_same_in_every_containerfile() {
    let [first, others @ ..] = CONTAINERFILES;
    for other in others {
        let why = format!("{other} and {first} differ: it would be built twice");
        assert_eq!(build_stage(other), build_stage(first), "{why}");
    }
}

/// Cargo builds no member of a workspace in which another member's manifest is missing.
#[test]
fn every_manifest_is_among_what_images_are_built_from() {
    let ignored = read(".dockerignore");
    let breaches: Vec<_> = manifests()
        .into_iter()
        .map(|(folder, _)| folder)
        .filter(|folder| {
            let top = folder.split('/').next().unwrap_or_default();
            let has = |line: &str| ignored.lines().any(|found| found == line);
            !has(&format!("!{top}")) && !has(&format!("!{folder}/Cargo.toml"))
        })
        .collect();
    none(".dockerignore leaves out the manifests of", &breaches);
}

/// The lab of another branch would become the checker of a census on the same engine.
#[test]
fn a_lab_builds_and_runs_no_image_of_a_census() {
    let script = ". deploy/engine.sh; lab_instance; echo \"$FEDICENSUS_TAG\"";
    let output = Command::new("bash")
        .args(["-euc", script])
        .current_dir(root())
        .env_remove("FEDICENSUS_LAB_NAME")
        .output()
        .expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fedicensus-lab\n");
    let mut breaches = Vec::new();
    for file in COMPOSE_FILES.into_iter().chain(["lab/up"]) {
        for line in read(file).lines() {
            let image = line.split("localhost/fedicensus-").nth(1);
            let is_tagged = |image: &str| {
                image.contains(":${FEDICENSUS_TAG:-latest}") || image.contains(":$instance")
            };
            if image.is_some_and(|image| !is_tagged(image)) {
                breaches.push(format!("{file}: {line}"));
            }
        }
    }
    none("images under a census's own names", &breaches);
}

#[test]
fn public_base_images_are_pinned_the_same_everywhere() {
    let base = |file: &str, before: &str| -> String {
        let text = read(file);
        let (_, rest) = text
            .split_once(before)
            .unwrap_or_else(|| panic!("`{before}` is missing"));
        let base = rest.split(['\n', '}']).next();
        base.unwrap_or_default().to_owned()
    };
    let rust = "BASE_RUST: ${FEDICENSUS_BASE_RUST:-";
    let nginx = "BASE_NGINX: ${FEDICENSUS_BASE_NGINX:-";
    let nginx_argument = "ARG BASE_NGINX=";
    for (file, before, expect) in [
        (CONTAINERFILES[0], "ARG BASE_RUST=", rust),
        ("deploy/nginx/Containerfile", nginx_argument, nginx),
        ("deploy/tunnel/Containerfile", nginx_argument, nginx),
        (
            "deploy/compose.second-way.yaml",
            "${FEDICENSUS_BASE_NGINX:-",
            nginx,
        ),
        ("deploy/compose.lab.yaml", rust, rust),
    ] {
        assert_eq!(base(file, before), base("compose.yaml", expect), "{file}");
    }
}

#[test]
fn the_base_image_has_the_pinned_toolchain() {
    let toolchain: toml::Table = read("rust-toolchain.toml").parse().expect("TOML");
    let channel = toolchain["toolchain"]["channel"].as_str();
    let channel = channel.expect("a channel");
    for (file, names) in [
        (CONTAINERFILES[0], format!("/rust:{channel}-")),
        (
            ".github/workflows/ci.yml",
            format!("rustup toolchain install {channel}"),
        ),
    ] {
        assert!(read(file).contains(&names), "{file} has not Rust {channel}");
    }
}

/// Under `SELinux`, a part at another level could use no other part's socket, and no test runs
/// under `SELinux`.
#[test] // S89
fn all_parts_and_checks_have_one_selinux_level() {
    let option = format!("\"label=level:{SELINUX_LEVEL}\"");
    let mut breaches = Vec::new();
    for file in COMPOSE_FILES {
        for (service, options) in security_options(&read(file)) {
            let right = match service.as_str() {
                // Mounts nothing and connects to nothing.
                "checker-image" => !options.contains("label="),
                "launcher" => options.contains("\"label=disable\""),
                _ => options.contains(&option),
            };
            if !right {
                breaches.push(format!("{file}, {service}: {options}"));
            }
        }
    }
    for unit in files("deploy/quadlet", ".container") {
        let text = read(&unit);
        let wanted = if unit.ends_with("launcher.container") {
            "SecurityLabelDisable=true".to_owned()
        } else {
            format!("SecurityLabelLevel={SELINUX_LEVEL}")
        };
        if !text.lines().any(|line| line == wanted) {
            breaches.push(format!("{unit} has not {wanted}"));
        }
    }
    none("other levels", &breaches);
}

/// Invariant I10: nginx logs the client's address with errors of proxied requests, unless error
/// logging is off there.
#[test]
fn the_web_server_tells_nobodys_address_when_it_passes_a_request_on() {
    let conf = read("deploy/nginx/nginx.conf") + &read("deploy/nginx/site.conf");
    let metrics = read("deploy/nginx/metrics.conf");
    let console = read("deploy/nginx/console.conf");
    let push = read("deploy/nginx/push.conf");
    let passing: Vec<_> = [&conf, &metrics, &console, &push]
        .into_iter()
        .flat_map(|file| file.split("location "))
        .filter(|location| location.contains("proxy_pass "))
        .collect();
    assert!(!passing.is_empty(), "nothing is passed on");
    let breaches: Vec<_> = passing
        .iter()
        .filter(|location| !location.contains("error_log stderr emerg;"))
        .map(|location| (*location).to_owned())
        .collect();
    none("locations that log addresses", &breaches);
    assert!(conf.contains("access_log off;"));
    // The remaining log lines say nothing about the client.
    let format = |file: &str, name: &str| {
        file.split(&format!("log_format {name} "))
            .nth(1)
            .and_then(|rest| rest.split(';').next())
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        format(&conf, "visits"),
        "'$time_iso8601 $logged_method $logged_path $status $logged_bytes $request_time'"
    );
    assert_eq!(
        format(&console, "console"),
        "'$time_iso8601 $logged_method console$console_path $status - $request_time'"
    );
    assert_eq!(
        format(&push, "push"),
        "'$time_iso8601 $logged_method push$push_path $status $bytes_sent $request_time'"
    );
}

/// Without its file, the server starts but lacks the port.
#[test]
fn the_web_servers_image_has_each_file_that_its_configuration_includes() {
    let containerfile = read("deploy/nginx/Containerfile");
    let copied = containerfile
        .lines()
        .find(|line| line.starts_with("COPY "))
        .unwrap_or_default();
    let breaches: Vec<_> = files("deploy/nginx", ".conf")
        .into_iter()
        .filter(|file| !copied.split(' ').any(|word| word == file))
        .collect();
    none("not in the image", &breaches);
}

fn security_options(compose: &str) -> Vec<(String, String)> {
    let mut service = "";
    let mut found = Vec::new();
    for line in compose.lines() {
        let depth = line.len() - line.trim_start().len();
        if let (2, Some(name)) = (depth, line.trim().strip_suffix(':')) {
            service = name;
        } else if let Some(options) = line.strip_prefix("    security_opt: ") {
            found.push((service.to_owned(), options.to_owned()));
        }
    }
    assert!(!found.is_empty(), "no security options");
    found
}
