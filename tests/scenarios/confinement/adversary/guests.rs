//! Two checks use one slot, one after the other: the second finds what it would find in a fresh
//! one.

use gateway::GatewayClient;
use launcher::LauncherClient;
use launcher::engine::EngineKind;
use tests::world::{GATEWAY_SOCKET, LAUNCHER_SOCKET};
use tests::{Options, Role, World};

use super::confinement::{Starter, fit};
use super::standin::Image;
use crate::confinement::containers::engine;

const HOST: &str = "pleroma.lab.test";

/// The file of the kernel's own sockets: their inode numbers are another namespace's.
const NETLINK: &str = "/proc/self/net/netlink ";

/// Files about the whole machine, which change without any guest: sockets and memory of a protocol,
/// and counters of each processor.
const OF_THE_MACHINE: [&str; 3] = [
    "/proc/self/net/protocols ",
    "/proc/self/net/softnet_stat ",
    "/proc/self/net/stat/",
];

/// Files with the host name. In a slot, Docker shows the holder's name, and Podman the container's
/// id, which differs between guests.
const NAME_FILES: [&str; 2] = ["/etc/hostname ", "/proc/sys/kernel/hostname "];

/// A file of counts by protocol; the counts of memory are for the whole machine.
const SOCKSTAT: &str = "/proc/self/net/sockstat";

/// What a guest prints about its namespace: a line for each file.
async fn look(starter: &Starter, kind: EngineKind) -> anyhow::Result<Vec<String>> {
    let outcome = starter.attack(HOST, "looks").1.await??;
    assert_eq!(outcome.end.exit_code, 0, "{:?}", outcome.end);
    let lines = outcome.stdout.lines();
    let of_the_machine = |line: &&str| OF_THE_MACHINE.iter().any(|file| line.starts_with(file));
    let is_own_name = |line: &&str| {
        kind == EngineKind::Podman && NAME_FILES.iter().any(|file| line.starts_with(file))
    };
    Ok(lines
        .filter(|line| !of_the_machine(line) && !is_own_name(line))
        .map(comparable)
        .collect())
}

/// A file's line without what other namespaces change: counts of memory, and the order of sockets,
/// which the kernel keeps in one table for all.
fn comparable(line: &str) -> String {
    if line.starts_with(NETLINK) {
        let mut sockets: Vec<&str> = line.split("\\n").collect();
        sockets.sort_unstable();
        return format!("{NETLINK}{}", sockets.join("\\n"));
    }
    if !line.starts_with(SOCKSTAT) {
        return line.to_owned();
    }
    let mut words = line.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        kept.push(word);
        if ["alloc", "mem", "memory"].contains(&word) {
            // Skips its count, and keeps the end of the line that is attached to it.
            let count = words.next().unwrap_or_default();
            kept.push(count.trim_start_matches(|digit: char| digit.is_ascii_digit()));
        }
    }
    kept.join(" ")
}

#[test]
fn nothing_but_what_other_namespaces_change_is_left_out() {
    let sockstat =
        |line: &str| format!("{SOCKSTAT} Ok(\"sockets: used 1\\n{line}\\nRAW: inuse 0\\n\")");
    let tcp = |inuse, alloc| {
        sockstat(&format!(
            "TCP: inuse {inuse} orphan 0 tw 0 alloc {alloc} mem 220"
        ))
    };
    assert_eq!(comparable(&tcp(0, 18)), comparable(&tcp(0, 32)));
    assert_ne!(comparable(&tcp(0, 18)), comparable(&tcp(1, 18)));
    let sockets = |first, second| format!("{NETLINK}Ok(\"head\\n{first}\\n{second}\\n\")");
    assert_eq!(
        comparable(&sockets("a", "b")),
        comparable(&sockets("b", "a"))
    );
    assert_ne!(
        comparable(&sockets("a", "b")),
        comparable(&sockets("a", "c"))
    );
    assert!(comparable(&sockets("a", "b")).starts_with(NETLINK));
    let other = "/proc/self/net/unix Ok(\"mem 3\")";
    assert_eq!(comparable(other), other);
}

fn assert_same(found: &[String], expected: &[String]) {
    let pairs = found.iter().zip(expected);
    let different: Vec<_> = pairs
        .filter(|(found, expected)| found != expected)
        .collect();
    assert!(found == expected, "{different:#?}");
}

async fn starter(world: &World) -> anyhow::Result<Starter> {
    let starter = Starter {
        gateway: GatewayClient::new(world.path(GATEWAY_SOCKET)),
        launcher: LauncherClient::socket(world.path(LAUNCHER_SOCKET)),
    };
    fit(world, &starter.launcher).await?;
    Ok(starter)
}

/// Otherwise a hostile host could pass something on to the host that is checked next.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_finds_nothing_of_the_one_before_in_its_slot() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
    let kind = engine.kind();
    let image = Image::build(&engine, "guests")?;
    let mut options = Options::new(&[]);
    options.checker = Some(image.name.clone());
    options.settings = vec![("slots", "on".to_owned())];
    let mut world = World::prepare(options).await?;
    for role in [Role::Gateway, Role::Launcher] {
        world.begin(role).await?;
    }
    let slots = starter(&world).await?;
    // Its only guest so far was the launcher's probe.
    let fresh = look(&slots, kind).await?;
    assert!(fresh.iter().any(|line| line.contains("lo:")), "{fresh:?}");
    let left = slots.attack(HOST, "leaves").1.await??;
    assert!(left.stdout.ends_with("over\n"), "{}", left.stdout);
    assert_same(&look(&slots, kind).await?, &fresh);
    let label = format!("org.fedicensus={}", world.setting("instance"));
    let labels = [label.as_str(), "org.fedicensus.holder"];
    let holders = engine.containers(&labels, tests::Listed::Running)?;
    assert_eq!(holders.len(), 1, "all were guests of one slot");

    // A slot exposes no more than a namespace that no other check has used.
    world.stop(Role::Launcher).await?;
    assert!(engine.containers(&[&label], tests::Listed::All)?.is_empty());
    world.set("slots", "off");
    world.begin(Role::Launcher).await?;
    let own = look(&starter(&world).await?, kind).await?;
    let without_sockets = |lines: &[String]| -> Vec<String> {
        let lines = lines.iter().filter(|line| !line.starts_with(NETLINK));
        lines.cloned().collect()
    };
    assert_same(&without_sockets(&fresh), &without_sockets(&own));
    Ok(())
}
