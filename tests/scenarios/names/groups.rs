//! Groups: the operator's decision about a domain applies to all of its hosts.

use std::time::Duration;

use tests::{Options, Role, World};

use crate::commands::text;

const SOON: Duration = tests::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_the_operator_denies_is_off_the_list_at_once_and_comes_back_with_his_word()
-> anyhow::Result<()> {
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

#[tokio::test(flavor = "multi_thread")]
async fn whoever_looks_at_a_held_group_is_told_whether_any_name_below_it_resolves()
-> anyhow::Result<()> {
    let names = |domain: &str| ["a", "b", "c"].map(|name| format!("{name}.{domain}"));
    let (farm, plain) = (names("wild-farm.test"), names("plain-farm.test"));
    let seeds: Vec<&str> = farm.iter().chain(&plain).map(String::as_str).collect();
    let mut options = Options::new(&seeds);
    options.settings.push(("group_threshold", "2".to_owned()));
    let mut world = World::prepare(options).await?;
    let file = world.path("lab/names");
    let mut lines = std::fs::read_to_string(&file)?;
    lines.push_str("\n*.wild-farm.test 127.0.0.1 1\n");
    for name in &plain {
        lines.push_str(&format!("{name} 127.0.0.1 1\n"));
    }
    std::fs::write(&file, lines)?;
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    let shown = |domain| {
        let said = world.command(&["groups", "show", domain, "--json"])?;
        anyhow::Ok(serde_json::from_slice::<serde_json::Value>(&said.stdout)?)
    };
    world
        .until("both groups were looked at", SOON, |_| {
            Ok(!shown("wild-farm.test")?["wildcard"].is_null()
                && !shown("plain-farm.test")?["wildcard"].is_null())
        })
        .await?;
    let (wild, honest) = (shown("wild-farm.test")?, shown("plain-farm.test")?);
    assert_eq!(
        (&wild["wildcard"], &wild["held"]),
        (&"same_place".into(), &true.into())
    );
    assert_eq!(
        (&honest["wildcard"], &honest["held"]),
        (&"no".into(), &true.into())
    );
    assert!(
        wild["wildcard_at"].is_string() && wild["wildcard_trouble"].is_null(),
        "{wild}"
    );

    let told = "any name below it resolves to the same address (wildcard DNS, checked 20";
    let says =
        |arguments: &[&str]| anyhow::Ok(text(&world.command(arguments)?.stdout).contains(told));
    assert!(says(&["groups", "show", "wild-farm.test"])?);
    assert!(!says(&["groups", "show", "plain-farm.test"])?);
    assert!(says(&["explain", &farm[0]])?);
    assert!(!says(&["explain", &plain[0]])?);
    let list = text(&world.command(&["groups", "list", "--held"])?.stdout);
    let lines: Vec<_> = list.lines().filter(|line| line.contains(told)).collect();
    assert_eq!(lines.len(), 1, "{list}");
    assert!(
        lines[0].starts_with("wild-farm.test: 3 hosts, held"),
        "{list}"
    );
    Ok(())
}
