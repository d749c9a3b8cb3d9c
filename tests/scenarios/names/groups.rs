//! Groups: the operator's decision about a domain applies to all of its hosts.

use std::time::Duration;

use tests::{Options, World};

use crate::commands::text;

const SOON: Duration = tests::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn denied_domain_leaves_the_list_and_returns() -> anyhow::Result<()> {
    let (one, other) = ("mastodon.lab.test", "pleroma.lab.test");
    let mut options = Options::new(&[one, other]);
    // A day in five seconds.
    options.interval_divisor = 20_000;
    let world = World::start(options).await?;
    let lived =
        |name: &str| anyhow::Ok(world.host(name)?.map_or(0, |host| host.record.alive_count));
    world
        .until("both live and have their group", SOON, |world| {
            let shown = text(&world.command(&["groups", "show", "lab.test"])?.stdout);
            Ok(lived(one)? > 0 && lived(other)? > 0 && shown.contains("2 hosts"))
        })
        .await?;
    assert!(world.command(&["dump"])?.status.success());
    let listed = || {
        let nodes = world.nodes()?;
        anyhow::Ok([one, other].map(|name| nodes.iter().any(|listed| listed == name)))
    };
    assert_eq!(listed()?, [true, true]);

    let reason = "one machine behind both";
    let said = world.command(&["groups", "deny", "lab.test", "--reason", reason])?;
    assert!(
        text(&said.stdout).contains("denied; no more checks of its 2 hosts"),
        "{said:?}"
    );
    // Too few hosts may be left for an automatic publication: even then, the published list loses
    // the denied ones.
    world.command(&["dump"])?;
    assert_eq!(listed()?, [false, false]);
    let explained = text(&world.command(&["explain", one])?.stdout);
    assert!(
        explained.contains("not listed") && explained.contains(reason),
        "{explained}"
    );
    world
        .until("nobody is in flight", SOON, |world| {
            Ok([one, other]
                .iter()
                .all(|name| matches!(world.host(name), Ok(Some(host)) if !host.in_flight)))
        })
        .await?;
    let then = lived(one)?;
    let check = world.command(&["check", one])?;
    let said = text(&check.stdout) + &text(&check.stderr);
    assert!(said.contains("denies its group"), "{said}");
    assert_eq!(lived(one)?, then, "it was asked");

    let said = world.command(&["groups", "allow", "lab.test", "--reason", "a mistake"])?;
    assert!(said.status.success(), "{said:?}");
    world
        .until("it is asked again", SOON, |_| Ok(lived(one)? > then))
        .await?;
    assert!(world.command(&["dump", "--force"])?.status.success());
    assert_eq!(listed()?, [true, true]);
    let shown = text(&world.command(&["groups", "show", "lab.test"])?.stdout);
    assert!(
        shown.contains("allowed: a mistake (operator, by command)")
            && shown.contains("denied: one machine"),
        "{shown}"
    );
    Ok(())
}
