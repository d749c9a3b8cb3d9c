//! What the Containerfiles, compose.yaml and the workspace say of each other.

use crate::tree::{manifests, none, read};

const CONTAINERFILES: [&str; 3] = [
    "Containerfile.checker",
    "Containerfile.orchestrator",
    "lab/Containerfile.lab",
];

/// The lines of the build stage.
fn build_stage(containerfile: &str) -> String {
    let text = read(containerfile);
    let (_, rest) = text
        .split_once("# The build stage")
        .unwrap_or_else(|| panic!("{containerfile} has no build stage"));
    let (stage, _) = rest
        .split_once("# End of the build stage.")
        .unwrap_or_else(|| panic!("{containerfile}: its build stage has no end"));
    stage.to_owned()
}

#[test]
fn the_build_stage_is_the_same_in_every_containerfile() {
    let first = build_stage(CONTAINERFILES[0]);
    for other in &CONTAINERFILES[1..] {
        assert_eq!(
            build_stage(other),
            first,
            "{other} and {} differ: it would be built twice",
            CONTAINERFILES[0]
        );
    }
}

#[test]
fn the_build_stage_knows_every_member() {
    let stage = build_stage(CONTAINERFILES[0]);
    let breaches: Vec<_> = manifests()
        .into_iter()
        .map(|(folder, _)| format!("COPY {folder}/Cargo.toml {folder}/"))
        .filter(|line| !stage.contains(line.as_str()))
        .collect();
    none("missing in the build stage", &breaches);
}

#[test]
fn public_base_images_are_pinned_the_same_everywhere() {
    let base = |text: &str, before: &str| -> String {
        let (_, rest) = text
            .split_once(before)
            .unwrap_or_else(|| panic!("`{before}` is missing"));
        rest.split(['\n', '}'])
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let compose = read("compose.yaml");
    assert_eq!(
        base(&read(CONTAINERFILES[0]), "ARG BASE_RUST="),
        base(&compose, "BASE_RUST: ${FEDICENSUS_BASE_RUST:-")
    );
    assert_eq!(
        base(&read("deploy/nginx/Containerfile"), "ARG BASE_NGINX="),
        base(&compose, "BASE_NGINX: ${FEDICENSUS_BASE_NGINX:-")
    );
    let lab = read("deploy/compose.lab.yaml");
    assert_eq!(
        base(&lab, "BASE_RUST: ${FEDICENSUS_BASE_RUST:-"),
        base(&compose, "BASE_RUST: ${FEDICENSUS_BASE_RUST:-")
    );
}

#[test]
fn the_base_image_has_the_pinned_toolchain() {
    let toolchain: toml::Table = read("rust-toolchain.toml").parse().expect("TOML");
    let channel = toolchain["toolchain"]["channel"]
        .as_str()
        .expect("a channel")
        .to_owned();
    assert!(
        read(CONTAINERFILES[0]).contains(&format!("/rust:{channel}-")),
        "the build stage's image is not Rust {channel}"
    );
    let workflow = read(".github/workflows/ci.yml");
    assert!(
        workflow.contains(&format!("rustup toolchain install {channel}")),
        "the workflow does not install Rust {channel}"
    );
}
