//! The command line with a running daemon and without one.

use std::time::Duration;

use serde_json::Value;
use tests::{Options, Role, World};

const SOON: Duration = tests::PATIENCE;

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Operators of Podman have only the images, and write this output to a file.
#[tokio::test(flavor = "multi_thread")]
async fn the_profile_that_is_printed_is_the_one_that_checks_are_held_by() -> anyhow::Result<()> {
    let world = World::prepare(Options::new(&[])).await?;
    let printed = world.command(&["seccomp-profile"])?;
    assert!(printed.status.success());
    assert_eq!(text(&printed.stdout), launcher::seccomp::PROFILE);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_add_check_explain_and_publish() -> anyhow::Result<()> {
    let mut world = World::start(Options::new(&[])).await?;
    world
        .until("the daemon is healthy", SOON, |world| {
            Ok(world.command(&["health"])?.status.success())
        })
        .await?;

    let checked = world.command(&["check", "mastodon.lab.test"])?;
    let steps = text(&checked.stdout);
    assert!(
        checked.status.success(),
        "{steps} {}",
        text(&checked.stderr)
    );
    for step in [
        "gateway: mastodon.lab.test answers at",
        "launcher: container",
        "verdict: alive mastodon",
        "mastodon.lab.test: listed, because it responds",
    ] {
        assert!(steps.contains(step), "{step} is not in\n{steps}");
    }
    // The checker's own lines are for programs.
    assert!(!steps.contains("checker: {"), "{steps}");
    assert!(!steps.contains("no verdict yet"), "{steps}");

    let list = world.path("list");
    std::fs::write(
        &list,
        "pleroma.lab.test\nmastodon.lab.test\nco.uk\nnot a name\nfoo.onion\n",
    )?;
    let imported = world.command(&["import", &list.display().to_string()])?;
    let report = text(&imported.stdout);
    assert!(
        report.starts_with("1 taken, 1 known, 3 refused"),
        "{report}"
    );
    world
        .until("the import is checked", SOON, |world| {
            Ok(world.verdict("pleroma.lab.test")?.is_some())
        })
        .await?;

    let explained = text(&world.command(&["explain", "mastodon.lab.test"])?.stdout);
    assert!(
        explained.starts_with("mastodon.lab.test: listed, because it responds"),
        "{explained}"
    );
    let unknown = text(&world.command(&["explain", "nobody.example.com"])?.stdout);
    assert!(
        unknown.contains("no peers list that we read has named it yet"),
        "{unknown}"
    );

    // A check right after an opt-out that was undone is answered, too.
    for undo in [&[][..], &["--undo"]] {
        let arguments = [&["opt-out", "pleroma.lab.test"], undo].concat();
        assert!(world.command(&arguments)?.status.success());
    }
    // The daemon may have taken it itself at this moment.
    world
        .until("its check is refused", SOON, |world| {
            let answer = world.command(&["check", "pleroma.lab.test"])?.stderr;
            Ok(text(&answer).contains("not checked: it opted out within"))
        })
        .await?;

    let dumped = world.command(&["dump"])?;
    assert!(dumped.status.success(), "{}", text(&dumped.stderr));
    assert!(world.nodes()?.contains(&"mastodon.lab.test".to_owned()));

    // Without a daemon, the same commands use the database themselves.
    world.stop(Role::Run).await?;
    let alone = world.command(&["add", "akkoma.lab.test"])?;
    assert!(text(&alone.stdout).starts_with("1 taken"), "{alone:?}");
    assert!(!world.command(&["health"])?.status.success());
    assert!(text(&world.command(&["status"])?.stdout).contains("daemon     not running"));
    let check = world.command(&["check", "--json", "https://gotosocial.lab.test/@x"])?;
    let shown: Value = serde_json::from_slice(&check.stdout)?;
    assert_eq!(shown["host"], "gotosocial.lab.test");
    assert!(shown["error"].is_null(), "{shown}");
    assert!(shown["steps"].to_string().contains("verdict:"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_said_in_one_line() -> anyhow::Result<()> {
    let world = World::prepare(Options::new(&[])).await?;
    /// Settings, command, exit code, and a part of the error line.
    type Case<'case> = (
        &'case [(&'case str, &'case str)],
        &'case [&'case str],
        i32,
        &'case str,
    );
    let cases: [Case<'_>; 6] = [
        (
            &[("lab.reserved_suffixes", "false"), ("contact", "")],
            &["run"],
            2,
            "setting `contact` is missing",
        ),
        (
            &[("checks_max", "0")],
            &["run"],
            2,
            "must be a whole number from 1 to 64",
        ),
        (
            &[("data_dir", "/nonexistent")],
            &["run"],
            1,
            "/nonexistent/census.db can't be locked",
        ),
        (
            &[("public_dir", "/nonexistent")],
            &["run"],
            1,
            "/nonexistent",
        ),
        (
            &[("run_dir", "/nonexistent")],
            &["gateway"],
            1,
            "/nonexistent/gateway/gateway.sock",
        ),
        (&[], &["check", "not a name"], 2, "not a name"),
    ];
    for (settings, command, code, message) in cases {
        let output = world.command_with(settings, command)?;
        let stderr = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{settings:?} {command:?}: {stderr}"
        );
        assert!(
            stderr.contains(message),
            "{settings:?} {command:?}: {stderr}"
        );
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
    Ok(())
}
