//! Rules on new names, in force: a flood's names wait, honest ones come in, and the operator changes his mind.

use std::time::Duration;

use tests::{Options, Role, World};

use crate::commands::text;

const SOON: Duration = Duration::from_secs(60);

/// Named by `junk.lab.test` in one list, below one domain.
const FLOOD: [&str; 7] = [
    "at.lab-junk.test",
    "dot.lab-junk.test",
    "handle.lab-junk.test",
    "path.lab-junk.test",
    "scheme.lab-junk.test",
    "upper.lab-junk.test",
    "xn--bcher-kva.lab-junk.test",
];

/// Named by `injection.lab.test`, which has nothing to do with it.
const HONEST: &str = "by-injection.lab-shapes.test";

fn known(world: &World) -> anyhow::Result<Vec<&'static str>> {
    let mut known = Vec::new();
    for name in FLOOD {
        if world.host(name)?.is_some() {
            known.push(name);
        }
    }
    Ok(known)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_waits_while_honest_names_come_in_and_a_reload_lets_it_in() -> anyhow::Result<()> {
    let files = tempfile::tempdir()?;
    let (rules, deny) = (files.path().join("rules"), files.path().join("deny"));
    std::fs::write(&rules, "domain lab-junk.test 2\ndomain test 1000\n")?;
    std::fs::write(&deny, "at.lab-junk.test # made up\n")?;
    let mut options = Options::new(&["junk.lab.test", "injection.lab.test"]);
    options.settings = vec![
        ("admission_rules", rules.display().to_string()),
        ("deny_list", deny.display().to_string()),
    ];
    let world = World::start(options).await?;
    world
        .until(
            "the honest name is in and the flood has been read",
            SOON,
            |world| {
                let status = text(&world.command(&["status"])?.stdout);
                Ok(world.host(HONEST)?.is_some() && status.contains(" 4 wait; "))
            },
        )
        .await?;
    let status = text(&world.command(&["status"])?.stdout);
    assert!(
        status.contains("admission  3 admitted, 4 refused, "),
        "{status}"
    );
    assert_eq!(known(&world)?.len(), 2);
    let waiting = FLOOD[1..]
        .iter()
        .find(|name| matches!(world.host(name), Ok(None)))
        .expect("four wait");
    let explained = text(&world.command(&["explain", waiting])?.stdout);
    assert!(explained.contains("it waits for room"), "{explained}");
    let explained = text(&world.command(&["explain", FLOOD[0]])?.stdout);
    assert!(explained.contains("in: made up"), "{explained}");
    let added = text(&world.command(&["add", FLOOD[0]])?.stdout);
    assert!(
        added.contains("deny-list has `at.lab-junk.test`: made up"),
        "{added}"
    );

    // What is wrong changes nothing, and ends nothing.
    std::fs::write(&rules, "domain lab-junk.test 20\ndomain test\n")?;
    let wrong = world.command(&["admission", "reload"])?;
    assert_eq!(wrong.status.code(), Some(1));
    let why = text(&wrong.stderr);
    assert!(
        why.contains("rules:2: ") && why.contains("stay in force"),
        "{why}"
    );
    world.hang_up(Role::Run)?;
    world
        .until("the log says that the rules are wrong", SOON, |world| {
            let log = std::fs::read_to_string(world.path("run.log"))?;
            Ok(log.matches("admission rules can't be in force").count() == 2)
        })
        .await?;
    assert_eq!(known(&world)?.len(), 2);

    std::fs::write(&rules, "domain lab-junk.test 20\ndomain test 1000\n")?;
    let reloaded = text(&world.command(&["admission", "reload"])?.stdout);
    assert!(
        reloaded.contains("in force: ") && reloaded.contains("2 domains"),
        "{reloaded}"
    );
    world
        .until("those who waited are in", SOON, |world| {
            Ok(known(world)?.len() == 6)
        })
        .await?;
    assert_eq!(known(&world)?, FLOOD[1..]);
    Ok(())
}
