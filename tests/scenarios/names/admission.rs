//! Rules on new names: a flood's names wait, honest ones are admitted, and the operator changes the
//! rules.

use std::time::Duration;

use tests::{Options, Role, World};

use crate::commands::text;

const SOON: Duration = tests::PATIENCE;

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

#[tokio::test(flavor = "multi_thread")] // S67
async fn flood_waits_while_honest_names_enter_until_a_reload() -> anyhow::Result<()> {
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
    assert!(explained.contains("below it: made up"), "{explained}");
    let added = text(&world.command(&["add", FLOOD[0]])?.stdout);
    assert!(
        added.contains("deny-list has `at.lab-junk.test`: made up"),
        "{added}"
    );

    // A wrong file changes nothing, and ends nothing.
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
            Ok(log.matches("the admission rules can't be used").count() == 2)
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

#[tokio::test(flavor = "multi_thread")] // S67
async fn denied_host_is_neither_checked_nor_listed() -> anyhow::Result<()> {
    let (denied, other) = ("mastodon.lab.test", "pleroma.lab.test");
    let files = tempfile::tempdir()?;
    let deny = files.path().join("deny");
    std::fs::write(&deny, "")?;
    let mut options = Options::new(&[denied, other]);
    options.settings = vec![("deny_list", deny.display().to_string())];
    // A day in five seconds.
    options.interval_divisor = 20_000;
    let world = World::start(options).await?;
    let lived =
        |name: &str| anyhow::Ok(world.host(name)?.map_or(0, |host| host.record.alive_count));
    world
        .until("both live", SOON, |_| {
            Ok(lived(denied)? > 0 && lived(other)? > 0)
        })
        .await?;

    std::fs::write(&deny, format!("{denied} # its owner asked us to\n"))?;
    assert!(world.command(&["admission", "reload"])?.status.success());
    world
        .until("it was its turn", SOON, |world| {
            let note = world.host(denied)?.and_then(|host| host.last_note);
            Ok(note.is_some_and(|note| note.contains("its owner asked us to")))
        })
        .await?;
    let then = (lived(denied)?, lived(other)?);
    world
        .until("the other one lives on", SOON, |_| {
            Ok(lived(other)? > then.1 + 1)
        })
        .await?;
    assert_eq!(lived(denied)?, then.0, "it was asked");
    let check = world.command(&["check", denied])?;
    assert!(!check.status.success());
    let said = text(&check.stderr) + &text(&check.stdout);
    assert!(said.contains("its owner asked us to"), "{said}");
    assert!(world.command(&["dump", "--force"])?.status.success());
    let listed = |name: &str| anyhow::Ok(world.nodes()?.iter().any(|listed| listed == name));
    assert!(listed(other)? && !listed(denied)?);

    std::fs::write(&deny, "")?;
    assert!(world.command(&["admission", "reload"])?.status.success());
    world
        .until("it is asked again", SOON, |_| Ok(lived(denied)? > then.0))
        .await?;
    assert!(world.command(&["dump"])?.status.success());
    assert!(listed(denied)?);
    Ok(())
}
