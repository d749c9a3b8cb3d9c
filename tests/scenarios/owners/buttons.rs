//! An owner submits a host, opts one out, and leaves and comes back by a secret, with the page's
//! buttons, and with its commands if scripts are off. The intake is behind nginx with our
//! configuration; proofs are TXT records.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use census::state::StateName;
use serde_json::Value;
use tests::{Options, PATIENCE, Role, Web, World};

use super::optout::is;
use crate::published::site::{assert_examined, axe};

const SUBMITTED: &str = "mastodon.lab.test";
/// Listed, and opted out with the button.
const LEAVER: &str = "pleroma.lab.test";
const LEAVER_BY_COMMAND: &str = "misskey.lab.test";
/// Listed, and without any proof.
pub(super) const WITHOUT_PROOF: &str = "by-lemmy-019.lab-shapes.test";

/// A census with an intake that has published the hosts that leave later.
pub(super) async fn census() -> anyhow::Result<World> {
    let mut options = Options::new(&[LEAVER, LEAVER_BY_COMMAND, WITHOUT_PROOF]);
    options.settings = vec![("optional_sockets", "texts,intake".to_owned())];
    let mut world = World::prepare(options).await?;
    let records = [
        (SUBMITTED, "submit"),
        (LEAVER, "opt-out"),
        (LEAVER_BY_COMMAND, "opt-out"),
    ];
    let mut names = std::fs::File::options()
        .append(true)
        .open(world.path("lab/names"))?;
    for (host, wish) in records {
        writeln!(names, "_fedicensus.{host} txt fedicensus-proof={wish}")?;
    }
    for role in [Role::Gateway, Role::Launcher, Role::Run, Role::Intake] {
        world.begin(role).await?;
    }
    for host in [LEAVER, LEAVER_BY_COMMAND, WITHOUT_PROOF] {
        world
            .until(&format!("{host} responds"), PATIENCE, |world| {
                let stored = world.host(host)?;
                Ok(stored.is_some_and(|stored| stored.record.state.name() == StateName::Alive))
            })
            .await?;
    }
    let socket = world.path("run/intake-http/http.sock");
    world
        .until("the intake listens", PATIENCE, |_| {
            Ok(std::os::unix::net::UnixStream::connect(&socket).is_ok())
        })
        .await?;
    ensure!(world.command(&["dump", "--force"])?.status.success());
    Ok(world)
}

/// The browser's findings after it pressed these buttons, `ACTION:HOST`. It publishes the records
/// of `prove` in the lab's names.
fn pressed(web: &Web, names: &Path, wishes: &[String]) -> anyhow::Result<Value> {
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures/owners");
    std::fs::create_dir_all(&pictures)?;
    let profile = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/owners/buttons.mjs");
    let axe = axe();
    let output = Command::new("node")
        .arg(script)
        .args(["chromium", web.address()])
        .args([profile.path(), &pictures, &axe, names])
        .args(wishes)
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{stderr}");
    let found = serde_json::from_slice(&output.stdout)?;
    // The page, the record, the proof's answer, the question, and after leaving and coming back.
    assert_examined(&found, &axe, 6 * 4)?;
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_submits_and_opts_out_with_buttons_and_by_command() -> anyhow::Result<()> {
    if !tests::are_there(&["nginx", "chromium", "node"]) {
        return Ok(());
    }
    let world = census().await?;
    let folder = tempfile::tempdir()?;
    let intake = world.path("run/intake-http/http.sock");
    let web = Web::start_with_intake(folder.path(), &world.path("public"), &intake).await?;
    let submit = format!("submit:{SUBMITTED}");
    let opt_out = format!("opt-out:{LEAVER}");
    let unproven = format!("opt-out:{WITHOUT_PROOF}");
    let prove = format!("prove:{WITHOUT_PROOF}");
    let wishes = [submit, opt_out, unproven, prove];
    let found = pressed(&web, &world.path("lab/names"), &wishes)?;
    let [submit, opt_out, unproven, prove] = &wishes;
    assert_eq!(found["troubles"], serde_json::json!([]));
    let of = |wish: &String| &found["found"][wish];
    let status = |wish: &String| of(wish)["status"].as_str().unwrap_or_default().to_owned();
    assert!(status(submit).starts_with("Done: "), "{found}");
    assert!(status(opt_out).starts_with("Done: "), "{found}");
    assert!(status(unproven).starts_with("Not done: "), "{found}");
    let steps = ["look", "leave", "join"].map(|step| of(prove)[step].as_str().unwrap_or_default());
    assert!(steps[0].contains("is listed"), "{found}");
    assert!(steps[1].starts_with("Done: it leaves the list"), "{found}");
    assert!(steps[2].starts_with("Done: opted in again"), "{found}");

    // Without scripts: the page's second command, for another host.
    let commands = found["commands"].as_str().context("no commands")?;
    let command = commands
        .lines()
        .find(|line| line.ends_with("/opt-out"))
        .context("no command to opt out")?
        .replace("instance.example", LEAVER_BY_COMMAND);
    ensure!(command.contains(web.address()), "{command}");
    let output = Command::new("sh").args(["-c", &command]).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(answer["state"], "opted_out", "{answer}");

    for host in [LEAVER, LEAVER_BY_COMMAND] {
        let stored = world.host(host)?.context("a row")?;
        assert_eq!(stored.record.state.name(), StateName::OptedOut, "{host}");
    }
    world
        .until("the submitted host is known", PATIENCE, |world| {
            Ok(world.host(SUBMITTED)?.is_some())
        })
        .await?;
    world
        .until("the host that came back responds", PATIENCE, |world| {
            Ok(is(world, WITHOUT_PROOF, "alive"))
        })
        .await?;
    ensure!(world.command(&["dump", "--force"])?.status.success());
    let listed = world.nodes()?;
    assert!(listed.contains(&WITHOUT_PROOF.to_owned()), "{listed:?}");
    for host in [LEAVER, LEAVER_BY_COMMAND] {
        assert!(!listed.contains(&host.to_owned()), "{host}");
    }
    Ok(())
}
