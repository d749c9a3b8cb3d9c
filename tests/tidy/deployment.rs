//! What the compose files and the Quadlet units give each part: ports, mounts and logs.

use std::collections::BTreeSet;

use crate::tree::{files, none, read};

#[test]
fn visitors_port_is_published_on_this_machine_alone_unless_an_address_is_set() {
    let compose = read("compose.yaml");
    assert!(compose.contains("\"${FEDICENSUS_PORT:-127.0.0.1:8080}:8080\""));
    let unit = read("deploy/quadlet/fedicensus-web.container");
    assert!(unit.contains("\nPublishPort=${FEDICENSUS_PORT}:8080\n"));
    assert!(unit.contains("\nEnvironment=FEDICENSUS_PORT=127.0.0.1:8080\n"));
    let settings = read("deploy/quadlet/fedicensus.env");
    assert!(settings.contains("\nFEDICENSUS_PORT=127.0.0.1:8080\n"));
}

/// Browsers reach the push service over TLS.
#[test] // S44
fn push_port_is_local_unless_an_address_is_set() {
    let unit = "deploy/quadlet/push/fedicensus-push-web.container";
    is_published_locally("push", 8082, unit);
}

/// The console is for moderators, and its cookies need TLS in front of it.
#[test]
fn the_consoles_port_is_published_on_this_machine_alone_unless_an_address_is_set() {
    let unit = "deploy/quadlet/console/fedicensus-web.container.d/50-console.conf";
    is_published_locally("console", 8081, unit);
}

fn is_published_locally(name: &str, port: u16, unit: &str) {
    let variable = format!("FEDICENSUS_{}_PORT", name.to_ascii_uppercase());
    let compose = read(&format!("deploy/compose.{name}.yaml"));
    assert!(compose.contains(&format!("\"${{{variable}:-127.0.0.1:{port}}}:{port}\"")));
    let unit = read(unit);
    assert!(unit.contains(&format!("\nPublishPort=${{{variable}}}:{port}\n")));
    assert!(unit.contains(&format!("\nEnvironment={variable}=127.0.0.1:{port}\n")));
    let settings = read("deploy/quadlet/fedicensus.env");
    assert!(settings.contains(&format!("\n#{variable}=127.0.0.1:{port}\n")));
    // Off unless an operator configures it.
    let published = |text: &str| text.contains(&format!(":{port}"));
    assert!(!published(&read("compose.yaml")));
    assert!(!published(&read("deploy/quadlet/fedicensus-web.container")));
}

/// Volumes of sockets, each with the part that creates its socket.
const SOCKETS: [(&str, &str); 14] = [
    ("gateway", "gateway"),
    ("launcher", "launcher"),
    ("metrics", "orchestrator"),
    ("texts", "gateway"),
    ("intake", "orchestrator"),
    ("intake-http", "intake"),
    ("console", "orchestrator"),
    ("console-http", "console"),
    ("push", "orchestrator"),
    ("push-http", "push"),
    ("push-endpoint-http", "push-endpoint"),
    ("push-nodes", "push"),
    ("second-gateway", "second-gateway"),
    ("ledger", "gateway"),
];

/// The compose files from which a census starts.
const COMPOSE_FILES: [&str; 6] = [
    "compose.yaml",
    "deploy/compose.intake.yaml",
    "deploy/compose.console.yaml",
    "deploy/compose.push.yaml",
    "deploy/compose.push-endpoint.yaml",
    "deploy/compose.second-way.yaml",
];

/// The volumes that the console mounts: the signing key, the published files, the launcher and the
/// gateway are in others.
const VOLUMES_OF_CONSOLE: [&str; 3] = ["accounts", "console", "console-http"];

/// The volumes that the push service mounts: the census's database, its signing key, the launcher
/// and the gateway are in others.
const VOLUMES_OF_PUSH: [&str; 4] = ["public", "push", "push-data", "push-http"];

const VOLUMES_OF_ENDPOINT: [&str; 5] = [
    "public",
    "push",
    "push-data",
    "push-endpoint-http",
    "push-nodes",
];

/// The push service's nodes, over one database.
const PUSH: [&str; 2] = ["push", "push-endpoint"];

/// A part that connects to a socket can neither remove it nor fill the volume.
#[test] // S4 S28
fn only_the_part_that_makes_a_socket_may_write_to_its_volume() {
    let (compose, units) = mounts();
    let mounts: Vec<_> = compose.into_iter().chain(units).collect();
    let mut breaches = Vec::new();
    for (volume, maker) in SOCKETS {
        let of_volume: Vec<_> = mounts
            .iter()
            .filter(|mount| mount.volume == volume)
            .collect();
        // Its creator and at least one other part, in Compose and in Quadlet.
        assert!(of_volume.len() >= 4, "{volume}: {of_volume:?}");
        breaches.extend(
            of_volume
                .into_iter()
                .filter(|mount| mount.is_read_only == (mount.part == maker))
                .map(|mount| format!("{mount:?}")),
        );
    }
    none(
        "mounted writable by others than the maker, or not by it",
        &breaches,
    );
}

#[test] // S24
fn only_the_console_mounts_accounts_and_its_sockets() {
    has_volumes_of_its_own(
        "console",
        &VOLUMES_OF_CONSOLE,
        &[],
        ("accounts", &["console"]),
    );
}

/// A push service that was taken over reaches neither a network nor the census's data.
#[test] // S27
fn push_service_has_published_files_and_no_network() {
    let data = ("push-data", &PUSH[..]);
    has_volumes_of_its_own("push", &VOLUMES_OF_PUSH, &["push-nodes"], data);
    has_volumes_of_its_own("push-endpoint", &VOLUMES_OF_ENDPOINT, &[], data);
    let (compose, units) = mounts();
    let published = |mount: &&Mount| PUSH.contains(&&*mount.part) && mount.volume == "public";
    for mounts in [compose, units] {
        let public: Vec<_> = mounts.iter().filter(published).collect();
        assert!(public.iter().all(|mount| mount.is_read_only), "{public:?}");
        assert_eq!(public.len(), PUSH.len());
    }
}

/// Asserts that a part has no network and mounts exactly these volumes, some of them in overlays,
/// and that only its owners mount `own`.
fn has_volumes_of_its_own(
    name: &str,
    expected: &[&str],
    of_overlays: &[&str],
    (own, owners): (&str, &[&str]),
) {
    let (compose, units) = mounts();
    for mounts in [compose, units] {
        let of_part = mounts.iter().filter(|mount| mount.part == name);
        let volumes: BTreeSet<_> = of_part.map(|mount| mount.volume.as_str()).collect();
        assert_eq!(
            volumes,
            expected.iter().chain(of_overlays).copied().collect()
        );
        let of_own = mounts.iter().filter(|mount| mount.volume == own);
        let parts: BTreeSet<_> = of_own.map(|mount| mount.part.as_str()).collect();
        assert_eq!(parts, owners.iter().copied().collect());
    }
    // And nothing of the machine.
    let unit = read(&format!(
        "deploy/quadlet/{name}/fedicensus-{name}.container"
    ));
    let lines = |start: &str| unit.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(lines("Volume="), expected.len());
    assert_eq!(lines("Network=none"), 1);
    let compose = read(&format!("deploy/compose.{name}.yaml"));
    let start = format!("\n  {name}:\n");
    let (_, service) = compose.split_once(&start).expect("a service");
    let (service, _) = service.split_once("\n\n").expect("its end");
    let entries = service.lines().filter(|line| line.starts_with("      - "));
    assert_eq!(entries.count(), expected.len());
    assert!(service.contains("\n    network_mode: none\n"));
}

/// The mounts of all compose files, and those of all units.
fn mounts() -> (Vec<Mount>, Vec<Mount>) {
    let units = files("deploy/quadlet", "");
    (
        COMPOSE_FILES.into_iter().flat_map(compose_mounts).collect(),
        units.iter().flat_map(|unit| unit_mounts(unit)).collect(),
    )
}

#[derive(Debug)]
struct Mount {
    #[expect(dead_code, reason = "printed")]
    file: String,
    part: String,
    volume: String,
    is_read_only: bool,
}

fn compose_mounts(file: &str) -> Vec<Mount> {
    let mut part = String::new();
    let mut found = Vec::new();
    for line in read(file).lines() {
        let depth = line.len() - line.trim_start().len();
        if let (2, Some(name)) = (depth, line.trim().strip_suffix(':')) {
            name.clone_into(&mut part);
        }
        let Some(entry) = line.strip_prefix("      - ") else {
            continue;
        };
        let volume = match entry.strip_prefix("{ type: volume, source: ") {
            Some(rest) => rest.split(',').next(),
            None => entry.split_once(":/").map(|(volume, _)| volume),
        };
        // And no path on the machine.
        let is_named = |name: &&str| !name.contains(['/', '$', '.']);
        if let Some(volume) = volume.filter(is_named) {
            found.push(Mount {
                file: file.to_owned(),
                part: part.clone(),
                volume: volume.to_owned(),
                is_read_only: entry.contains("read_only: true"),
            });
        }
    }
    found
}

/// The volumes that a unit, or a drop-in of one, mounts.
fn unit_mounts(file: &str) -> Vec<Mount> {
    let part = file
        .split('/')
        .find_map(|name| name.strip_prefix("fedicensus-")?.split_once(".container"))
        .map_or("", |(part, _)| part);
    read(file)
        .lines()
        .filter_map(|line| {
            line.strip_prefix("Volume=fedicensus-")?
                .split_once(".volume:")
        })
        .map(|(volume, rest)| Mount {
            file: file.to_owned(),
            part: part.to_owned(),
            volume: volume.to_owned(),
            is_read_only: rest.split([':', ',']).any(|option| option == "ro"),
        })
        .collect()
}

/// A backup holds opt-outs by name, password hashes or messages, and keys.
#[test]
fn every_backup_that_a_document_types_is_readable_by_its_owner_alone() {
    let pages = read("docs/operating.md") + &read("docs/console.md") + &read("docs/push.md");
    let backups: Vec<_> = pages
        .lines()
        .filter(|line| line.contains("backup - >") || line.contains("backup --push - >"))
        .collect();
    assert_eq!(backups.len(), 7);
    let breaches: Vec<_> = backups
        .into_iter()
        .filter(|line| !line.contains("(umask 077 && "))
        .map(str::to_owned)
        .collect();
    none("others may read these", &breaches);
}

/// Operators learn of opt-outs from the parts' lines in the journal.
#[test]
fn a_flood_of_requests_pushes_no_other_parts_lines_out_of_the_log() {
    let unit = read("deploy/quadlet/fedicensus-web.container");
    assert!(unit.contains("\nLogDriver=k8s-file\n"));
    assert!(unit.contains(" --log-opt=max-size=10mb\n"));
    let compose = read("compose.yaml");
    assert!(compose.contains("  options: { max-size: 10m, max-file: \"3\" }\n"));
}
