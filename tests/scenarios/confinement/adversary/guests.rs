//! Two checks in one slot, one after the other: the second finds what it would find in a fresh one.

use gateway::GatewayClient;
use launcher::LauncherClient;
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

/// What a guest prints of its namespace: a line for each file.
async fn look(starter: &Starter) -> anyhow::Result<Vec<String>> {
    let outcome = starter.attack(HOST, "looks").1.await??;
    assert_eq!(outcome.end.exit_code, 0, "{:?}", outcome.end);
    let lines = outcome.stdout.lines();
    let of_the_machine = |line: &&str| OF_THE_MACHINE.iter().any(|file| line.starts_with(file));
    Ok(lines
        .filter(|line| !of_the_machine(line))
        .map(str::to_owned)
        .collect())
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

/// A hostile host could otherwise pass something on to the host that is checked next.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_finds_nothing_of_the_one_before_in_its_slot() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
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
    let fresh = look(&slots).await?;
    assert!(fresh.iter().any(|line| line.contains("lo:")), "{fresh:?}");
    let left = slots.attack(HOST, "leaves").1.await??;
    assert!(left.stdout.ends_with("over\n"), "{}", left.stdout);
    assert_same(&look(&slots).await?, &fresh);
    let label = format!("org.fedicensus={}", world.setting("instance"));
    let labels = [label.as_str(), "org.fedicensus.holder"];
    let holders = engine.containers(&labels, tests::Listed::Running)?;
    assert_eq!(holders.len(), 1, "all were guests of one slot");

    // A slot exposes no more than a namespace that no other check was ever in.
    world.stop(Role::Launcher).await?;
    assert!(engine.containers(&[&label], tests::Listed::All)?.is_empty());
    world.set("slots", "off");
    world.begin(Role::Launcher).await?;
    let own = look(&starter(&world).await?).await?;
    let comparable = |lines: &[String]| -> Vec<String> {
        let lines = lines.iter().filter(|line| !line.starts_with(NETLINK));
        lines.cloned().collect()
    };
    assert_same(&comparable(&fresh), &comparable(&own));
    Ok(())
}
