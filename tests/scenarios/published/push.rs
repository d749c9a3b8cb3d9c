//! Readers are notified of changes: Firefox, with the census's own push service behind nginx with
//! our configuration.

mod firefox;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use census::state::StateName;
use census::time::Calendar;
use serde_json::Value;
use tests::{Options, PATIENCE, Role, Web, World};

use firefox::Firefox;

/// Listed; a reader asks to be notified of both. The first opts out while the browser runs, the
/// second dies while it does not.
const WATCHED: [&str; 2] = ["pleroma.lab.test", "dying.lab.test"];
/// Listed all the time. A reader asks to be notified of new instances of its software.
const STAYS: &str = "lists.lab.test";
/// Of the same software, and found later.
const NEW: &str = "talks.lab.test";
/// The same, and it opts out before the list is published.
const LEAVER: &str = "mastodon.lab.test";

/// Text of a notification about a host that opted out.
const LEFT: &str = "It is no longer in the list.";
/// Text of a notification about a host that died.
const DIED: &str = "It does not respond and was taken off the list.";

/// Makes a day take some four seconds.
const FAST: &str = "20000";

const BUTTON: &str = "#notify";

async fn census(folder: &Path, roles: &[Role]) -> anyhow::Result<(World, Web)> {
    let listed = [WATCHED[0], WATCHED[1], STAYS];
    let mut options = Options::new(&listed);
    // No day passes by itself: hosts are checked by hand.
    options.interval_divisor = Calendar::REAL.divisor;
    options.settings = vec![("push_socket", "true".to_owned())];
    let mut world = World::start(options).await?;
    for host in listed {
        until_it_is(&world, host, StateName::Alive).await?;
    }
    publish(&world)?;
    let sockets = world.path("run/push");
    let web = Web::start_with_push(folder, &world.path("public"), &sockets).await?;
    world.set("push_address", web.push_address());
    for role in roles {
        world.begin(*role).await?;
    }
    world
        .until("the push service has seen the list", PATIENCE, |world| {
            Ok(!stored(world, "SELECT 1 FROM secrets WHERE name = 'last_told'")?.is_empty())
        })
        .await?;
    Ok((world, web))
}

fn publish(world: &World) -> anyhow::Result<()> {
    let published = world.command(&["dump", "--force"])?;
    ensure!(published.status.success(), "{published:?}");
    Ok(())
}

async fn until_it_is(world: &World, host: &str, state: StateName) -> anyhow::Result<()> {
    let what = format!("{host} is {state:?}");
    world
        .until(&what, PATIENCE, |world| {
            let stored = world.host(host)?;
            Ok(stored.is_some_and(|stored| stored.record.state.name() == state))
        })
        .await
}

fn stored(world: &World, query: &str) -> anyhow::Result<String> {
    let output = Command::new("sqlite3")
        .arg("-readonly")
        .arg(world.path("data/push.db"))
        .arg(query)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{query}: {said}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn filters(world: &World) -> anyhow::Result<Vec<String>> {
    let filters = stored(world, "SELECT filter FROM subscriptions ORDER BY filter")?;
    Ok(filters.lines().map(str::to_owned).collect())
}

/// The status of the answer to a message that the census signed.
fn sent(world: &World, endpoint: &str) -> anyhow::Result<String> {
    let key = stored(
        world,
        "SELECT hex(value) FROM secrets WHERE name = 'signing_key'",
    )?;
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/published/push/endpoint.mjs");
    let output = Command::new("node")
        .arg(script)
        .args([endpoint, &key])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Presses the button of a page and waits until it is on, or off.
async fn press(
    world: &World,
    firefox: &mut Firefox,
    url: &str,
    becomes: bool,
) -> anyhow::Result<()> {
    firefox.open(url)?;
    let is_ready = "const button = document.getElementById('notify');
         return button.checkVisibility() && !button.disabled && button.ariaPressed";
    let before = (!becomes).to_string();
    world
        .until("the button shows its state", PATIENCE, |_| {
            Ok(firefox.look(is_ready)? == before.as_str())
        })
        .await?;
    firefox.press(BUTTON)?;
    let after = becomes.to_string();
    let pressed = world.until("the button was pressed", PATIENCE, |_| {
        let look = "return document.getElementById('notify').ariaPressed";
        Ok(firefox.look(look)? == after.as_str())
    });
    let pressed = pressed.await;
    let says = firefox.look("return document.getElementById('notify-status').textContent")?;
    pressed.with_context(|| format!("{says}\n{}", world.log(Role::Push)))?;
    let expect = match becomes {
        true => "Notifications are on. Press again to stop.",
        false => "",
    };
    assert_eq!(says, expect);
    Ok(())
}

async fn notified(
    world: &World,
    firefox: &mut Firefox,
    title: &str,
    body: &str,
) -> anyhow::Result<()> {
    let look = "const registration = await navigator.serviceWorker.ready;
         return (await registration.getNotifications()).map(({ title, body }) => [title, body])";
    let mut shown = Value::Null;
    let found = world.until("a notification is shown", PATIENCE, |_| {
        shown = firefox.look(look)?;
        let all = shown.as_array().context("a list")?;
        // Invariant I7: its owner asked to be left out, so no message says its name.
        assert!(!shown.to_string().contains(LEAVER), "{shown}");
        let says = |one: &Value| one[1].as_str().is_some_and(|text| text.contains(body));
        Ok(all.iter().any(|one| one[0] == title && says(one)))
    });
    let found = found.await;
    found.with_context(|| format!("{title}: {shown}\n{}", world.log(Role::Push)))
}

fn forget_shown(firefox: &mut Firefox) -> anyhow::Result<()> {
    firefox.look(
        "const registration = await navigator.serviceWorker.ready;
         for (const shown of await registration.getNotifications()) shown.close()",
    )?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_is_notified_until_the_button_is_pressed_again() -> anyhow::Result<()> {
    story(&[Role::Push]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_is_notified_through_two_nodes() -> anyhow::Result<()> {
    story(&[Role::PushConnect, Role::PushEndpoint]).await
}

async fn story(roles: &[Role]) -> anyhow::Result<()> {
    if !tests::are_there(&["nginx", "firefox-esr", "node", "sqlite3"]) {
        return Ok(());
    }
    let (folder, profile) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (mut world, web) = census(folder.path(), roles).await?;
    let push_service = web.push_address().replace("http:", "ws:");
    let start = async || Firefox::start(profile.path(), &format!("{push_service}/")).await;
    let of_host = WATCHED.map(|host| format!("{}/why.html#{host}", web.address()));
    let of_software = format!("{}/software/mastodon.html", web.address());
    let buttons = [&of_host[0], &of_host[1], &of_software];

    let mut firefox = start().await?;
    for page in buttons {
        press(&world, &mut firefox, page, true).await?;
    }
    let wanted = [
        format!("{{\"host\":\"{}\"}}", WATCHED[1]),
        format!("{{\"host\":\"{}\"}}", WATCHED[0]),
        "{\"software\":\"mastodon\"}".to_owned(),
    ];
    assert_eq!(filters(&world)?, wanted);

    for host in [NEW, LEAVER] {
        ensure!(world.command(&["add", host])?.status.success());
        until_it_is(&world, host, StateName::Alive).await?;
    }
    for host in [WATCHED[0], LEAVER] {
        ensure!(world.command(&["opt-out", host])?.status.success());
    }
    publish(&world)?;
    notified(&world, &mut firefox, WATCHED[0], LEFT).await?;
    notified(&world, &mut firefox, "New on mastodon", NEW).await?;
    forget_shown(&mut firefox)?;
    firefox.close().await?;

    world.stop(Role::Run).await?;
    world.set("lab.interval_divisor", FAST);
    world.begin(Role::Run).await?;
    until_it_is(&world, WATCHED[1], StateName::Dead).await?;
    // One of three hosts is so much that the list would be held back.
    publish(&world)?;
    world
        .until("a message waits for the browser", PATIENCE, |world| {
            Ok(stored(world, "SELECT count(*) FROM messages")? != "0")
        })
        .await?;
    let mut firefox = start().await?;
    firefox.open(&of_host[1])?;
    notified(&world, &mut firefox, WATCHED[1], DIED).await?;

    let endpoint = firefox.look(
        "const registration = await navigator.serviceWorker.ready;
         return (await registration.pushManager.getSubscription()).endpoint",
    )?;
    let endpoint = endpoint.as_str().context("an endpoint")?;
    assert_eq!(sent(&world, endpoint)?, "201");
    for page in buttons {
        press(&world, &mut firefox, page, false).await?;
    }
    assert_eq!(filters(&world)?, Vec::<String>::new());
    // The browser tells the push service of the end when it has the time.
    world
        .until("the endpoint is gone", PATIENCE, |world| {
            Ok(sent(world, endpoint)? == "410")
        })
        .await?;
    firefox.close().await
}
