//! Time that passes at once: the moments in a census's database are put back, and hosts are checked
//! by hand. So a story of a week waits for no day, and it tells the same on a slow machine.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use lab::crowd::Crowd;
use store::Stored;
use tests::{PATIENCE, Role, World};

/// Hosts of the crowd, all of them seeds, of which [`check_until`] needs one: a failure counts when
/// others have lived close by.
pub(crate) const CROWD: u32 = 3;

/// A host that is known.
pub(crate) fn stored(world: &World, host: &str) -> anyhow::Result<Stored> {
    // There is a moment at which the database is there and the seeds are not.
    world.host(host)?.context("a seed is not known yet")
}

/// Checks `host` by hand until `holds`, each time with a living host before and after it.
pub(crate) async fn check_until(
    world: &World,
    host: &str,
    what: &str,
    mut holds: impl FnMut(&Stored) -> bool,
) -> anyhow::Result<Stored> {
    let living = Crowd::new(CROWD, 1).names().next().context("a crowd")?;
    // Without a daemon the command would check alone, and keep the database from it.
    world
        .until("the daemon answers", PATIENCE, |world| {
            Ok(!world.status()?["daemon"].is_null())
        })
        .await?;
    let mut found = None;
    world
        .until(&format!("{host} {what}"), PATIENCE, |world| {
            let stored = stored(world, host)?;
            if holds(&stored) {
                found = Some(stored);
            } else if !stored.in_flight {
                world.command(&["check", &living])?;
                world.command(&["check", host])?;
                world.command(&["check", &living])?;
            } else {
                // Its last failure waits for a witness.
                world.command(&["check", &living])?;
            }
            Ok(found.is_some())
        })
        .await?;
    found.context("found above")
}

/// Lets this much time pass for a census that is off: all that its database knows of hosts is that
/// much longer ago.
pub(crate) fn pass(world: &World, time: Duration) -> anyhow::Result<()> {
    let ms = i64::try_from(time.as_millis())?;
    let put_back = format!(
        "UPDATE hosts SET since = since - {ms}, first_seen = first_seen - {ms}, last_alive = last_alive - {ms}, \
         last_checked = last_checked - {ms}, due = due - {ms}; \
         UPDATE history SET at = at - {ms};"
    );
    let database = world.path("data/census.db");
    let put = Command::new("sqlite3")
        .arg(database)
        .arg(put_back)
        .output()
        .context("sqlite3 is missing: apt-get install sqlite3")?;
    ensure!(put.status.success() && put.stderr.is_empty(), "{put:?}");
    Ok(())
}

/// Ends the census in order, lets time pass, and begins it again.
pub(crate) async fn pass_meanwhile(world: &mut World, time: Duration) -> anyhow::Result<()> {
    world.stop(Role::Run).await?;
    pass(world, time)?;
    world.begin(Role::Run).await
}
