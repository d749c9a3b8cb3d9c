//! Time that passes at once: the moments in a census's database are moved back, and hosts are
//! checked by hand. So a test of a week takes no days, and gives the same result on a slow machine.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use lab::crowd::Crowd;
use store::Stored;
use tests::{PATIENCE, Role, World};

/// Hosts of the crowd, all of them seeds. [`check_until`] needs one: a failure counts if another
/// host was alive shortly before and after.
pub(crate) const CROWD: u32 = 3;

pub(crate) fn stored(world: &World, host: &str) -> anyhow::Result<Stored> {
    // For a moment, the database exists and the seeds are missing.
    world.host(host)?.context("a seed is not known yet")
}

/// Checks `host` by hand until `holds`, each time with a responding host before and after it.
pub(crate) async fn check_until(
    world: &World,
    host: &str,
    what: &str,
    mut holds: impl FnMut(&Stored) -> bool,
) -> anyhow::Result<Stored> {
    let living = Crowd::new(CROWD, 1).names().next().context("a crowd")?;
    // Without a daemon, the command would check alone, and lock the daemon out of the database.
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

/// Lets this much time pass for a stopped census: everything that its database knows about hosts
/// becomes that much older.
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

/// Stops the census in order, lets time pass, and starts it again.
pub(crate) async fn pass_meanwhile(world: &mut World, time: Duration) -> anyhow::Result<()> {
    world.stop(Role::Run).await?;
    pass(world, time)?;
    world.begin(Role::Run).await
}
