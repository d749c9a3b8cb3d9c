//! A moderator's day in a browser, over nginx with our configuration.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use census::state::StateName;
use serde_json::Value;
use tests::{Options, PATIENCE, Role, Web, World};

use crate::published::site::{assert_examined, axe};

/// Two responding hosts of one registered domain, which a moderator denies.
const DENIED: [&str; 2] = ["mastodon.lab.test", "pleroma.lab.test"];
const PASSWORD: &str = "correct horse battery";

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scenarios/moderators")
        .join(name)
}

/// A census whose list has both hosts, with a group that is held and names that wait.
async fn census() -> anyhow::Result<World> {
    let mut options = Options::new(&DENIED);
    let rules = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console-rules");
    std::fs::write(&rules, "domain lab-junk.test 1\ndomain test 1000\n")?;
    options
        .settings
        .push(("admission_rules", rules.display().to_string()));
    options.seeds.push("junk.lab.test".to_owned());
    options.crowd = 2;
    options.seeds.extend(lab::crowd::Crowd::new(2, 1).names());
    options.settings.push(("console_socket", "true".to_owned()));
    let mut world = World::start(options).await?;
    for host in DENIED {
        world
            .until(&format!("{host} lives"), PATIENCE, |world| {
                let stored = world.host(host)?;
                Ok(stored.is_some_and(|stored| stored.record.state.name() == StateName::Alive))
            })
            .await?;
    }
    world
        .until("names wait", PATIENCE, |world| {
            Ok(!world.reader()?.waiting_names("", 1)?.is_empty())
        })
        .await?;
    // Hosts that were alive stay listed, and the group waits for a decision.
    world.stop(Role::Run).await?;
    world.set("group_threshold", "1");
    world.begin(Role::Run).await?;
    world
        .until("the group is held", PATIENCE, |world| {
            Ok(world.reader()?.held()?.groups > 0)
        })
        .await?;
    Ok(world)
}

/// Adds a moderator and returns the key of the second factor.
fn moderator(world: &World, accounts: &str) -> anyhow::Result<String> {
    let output = world.command_that_reads(
        &format!("{PASSWORD}\n"),
        &[("data_dir", accounts)],
        &["moderator", "add", "ada"],
    )?;
    ensure!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout)?;
    let line = told.lines().find(|line| line.contains("app, key"));
    let key = line.and_then(|line| line.split_whitespace().last());
    Ok(key.context("no key")?.to_owned())
}

/// Guesses passwords until a name is locked and an address banned.
fn guess(socket: &Path) -> anyhow::Result<()> {
    let page = talk(socket, "GET /login HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    let after = |mark: &str| page.split_once(mark).map(|(_, rest)| rest);
    let form = after("name=\"form\" value=\"").and_then(|rest| rest.split('"').next());
    let cookie = after("set-cookie: ").and_then(|rest| rest.split(';').next());
    let (form, cookie) = (form.context("no form")?, cookie.context("no cookie")?);
    let request = |name: &str, address: &str| {
        let body = format!("form={form}&name={name}&password=wrong&code=0");
        let length = body.len();
        format!(
            "POST /login HTTP/1.1\r\nhost: localhost\r\nx-real-ip: {address}\r\ncookie: {cookie}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    std::thread::scope(|scope| {
        // One after the other, so that each password is compared.
        let of_one_name = scope.spawn(|| -> anyhow::Result<()> {
            for number in 10..18 {
                talk(socket, &request("mallory", &format!("192.0.2.{number}")))?;
            }
            Ok(())
        });
        let of_one_address: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| talk(socket, &request("nobody", "192.0.2.9"))))
            .collect();
        for guess in of_one_address {
            guess.join().ok().context("a thread panicked")??;
        }
        of_one_name.join().ok().context("a thread panicked")?
    })
}

fn talk(socket: &Path, request: &str) -> anyhow::Result<String> {
    let mut stream = std::os::unix::net::UnixStream::connect(socket)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Carries out what the browser's script requests between its steps.
async fn obey(world: &mut World, accounts: &Path, order: &str) -> anyhow::Result<()> {
    match order {
        "publish" => {
            let output = world.command(&["dump", "--force"])?;
            ensure!(output.status.success(), "{output:?}");
        }
        // Longer than a session may stay unused.
        "idle" => {
            let file = accounts.join("accounts.db");
            let output = Command::new("sqlite3")
                .arg(file)
                .arg("UPDATE sessions SET used_at = used_at - 1801000")
                .output()?;
            ensure!(output.status.success(), "{output:?}");
        }
        "kill" => {
            let data = world.setting("data_dir");
            let socket = world.path("run/console-http/http.sock");
            guess(&socket)?;
            world.kill(Role::Console)?;
            let place = accounts.display().to_string();
            let settings = [("data_dir", place.as_str())];
            let shown = world.command_with(&settings, &["moderator", "logins", "--json"])?;
            let shown: Value = serde_json::from_slice(&shown.stdout)?;
            let holds = shown["holds"].as_array().context("holds")?;
            let kinds: Vec<_> = holds
                .iter()
                .filter_map(|hold| hold["kind"].as_str())
                .collect();
            assert!(
                kinds.contains(&"address") && kinds.contains(&"user"),
                "{shown}"
            );
            world.set("data_dir", &accounts.display().to_string());
            world.begin(Role::Console).await?;
            world.set("data_dir", &data);
            // The killed console's socket still exists, but nothing answers there.
            while std::os::unix::net::UnixStream::connect(&socket).is_err() {
                ensure!(world.runs(Role::Console)?, "the console ended");
            }
        }
        other => bail!("the browser asks for {other:?}"),
    }
    Ok(())
}

/// Runs the browser's script, and returns what it found.
async fn play(
    world: &mut World,
    web: &Web,
    accounts: &Path,
    key: &str,
    axe: &Path,
) -> anyhow::Result<Value> {
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures/console");
    std::fs::create_dir_all(&pictures)?;
    let profile = tempfile::tempdir()?;
    let mut browser = Command::new("node")
        .arg(script("console.mjs"))
        .args(["chromium", web.console_address()])
        .args([profile.path(), &pictures, axe])
        .args([PASSWORD, key])
        .args(DENIED)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut answers: ChildStdin = browser.stdin.take().context("a pipe")?;
    let lines = BufReader::new(browser.stdout.take().context("a pipe")?).lines();
    let mut found = None;
    for line in lines {
        let line = line?;
        match line.strip_prefix("order ") {
            Some(order) => {
                obey(world, accounts, order).await?;
                writeln!(answers, "done")?;
            }
            None => found = Some(serde_json::from_str(&line)?),
        }
    }
    ensure!(browser.wait()?.success(), "the browser's story failed");
    found.context("the browser found nothing")
}

#[tokio::test(flavor = "multi_thread")] // S75
async fn moderator_denies_a_group_and_undoes_it_thieves_do_not() -> anyhow::Result<()> {
    if !tests::are_there(&["nginx", "chromium", "node"]) {
        return Ok(());
    }
    let mut world = census().await?;
    let accounts = tempfile::tempdir()?;
    let place = accounts.path().display().to_string();
    let key = moderator(&world, &place)?;
    let data = world.setting("data_dir");
    world.set("data_dir", &place);
    world.begin(Role::Console).await?;
    world.set("data_dir", &data);
    let socket = world.path("run/console-http/http.sock");
    world
        .until("the console serves", PATIENCE, |_| Ok(socket.exists()))
        .await?;
    let folder = tempfile::tempdir()?;
    let web = Web::start_with_console(folder.path(), &world.path("public"), &socket).await?;
    world.command(&["dump", "--force"])?;
    for host in DENIED {
        assert!(world.nodes()?.contains(&host.to_owned()), "{host}");
    }

    let axe = axe();
    let found = play(&mut world, &web, accounts.path(), &key, &axe).await?;

    let listed = |step: &str| found[step].as_array().map(Vec::len);
    assert_eq!(listed("denied"), Some(0), "{found}");
    assert_eq!(listed("undone"), Some(2), "{found}");
    assert_eq!(found["refused"]["forged"], 403, "{found}");
    for who in ["wrongCode", "idle", "stolen", "loggedOut"] {
        assert_eq!(found["refused"][who], "/login", "{who}: {found}");
    }
    assert_eq!(
        found["afterKill"], "Overview",
        "the session survives SIGKILL: {found}"
    );
    assert_eq!(found["troubles"], serde_json::json!([]));
    assert_examined(&found, &axe, 15 * 4)?;
    let log = world
        .reader()?
        .decisions(None, 10)?
        .rows
        .into_iter()
        .map(|row| row.who);
    assert_eq!(log.collect::<Vec<_>>(), ["moderator ada"; 2]);
    let visits = web.logged()?;
    assert!(visits.contains("console/groups"), "{visits}");
    assert!(!visits.contains("lab.test"), "no name is logged: {visits}");
    Ok(())
}
