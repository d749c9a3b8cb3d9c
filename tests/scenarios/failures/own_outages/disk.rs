//! Disks that are full or read-only, and a database that is locked, moved away or replaced.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;
use tests::Engine;
use tests::world::EGRESS;

/// Room for the database and its log, with some hundred KiB to spare, and for two sets of published
/// files of some hosts.
const DISK_KIB: u32 = 4096;

fn with_a_disk(name: &'static str, kib: u32) -> Options {
    Options {
        engine: Engine::Process,
        disks: vec![(name, kib)],
        ..options()
    }
}

/// Fills a disk to its last byte with one file, which grows with each call.
fn fill(directory: &Path) -> anyhow::Result<PathBuf> {
    let path = directory.join("filled-by-somebody");
    let mut file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(&path)?;
    for piece in [64 * 1024, 1024, 1] {
        while file.write_all(&vec![0; piece]).is_ok() {}
    }
    Ok(path)
}

/// Keeps a disk full until the daemon reports it: what was being written at first frees its room,
/// which may be enough for a part of the next write.
async fn fill_until(world: &World, directory: &Path, says: &str) -> anyhow::Result<PathBuf> {
    let complained = complaints(world, Role::Run).len();
    let filled = fill(directory)?;
    world
        .until("the daemon finds no room", SOON, |world| {
            fill(directory)?;
            let log = complaints(world, Role::Run);
            let mut new = log.iter().skip(complained);
            Ok(new.any(|line| line.contains(says)))
        })
        .await?;
    Ok(filled)
}

#[tokio::test(flavor = "multi_thread")] // S63
async fn a_full_disk_below_the_database_wrongs_nobody() -> anyhow::Result<()> {
    if !may_mount("a_full_disk_below_the_database_wrongs_nobody")? {
        return Ok(());
    }
    let mut world = living(with_a_disk("data", DISK_KIB)).await?;
    let fault = Fault::begin(&world, "disk of the database full")?;
    // SQLite's log has room from before, which is used up first.
    let says = ["OUTAGE", "the database's disk is full: free some space"];
    let filled = fill_until(&world, &world.path("data"), says[1]).await?;
    fault.is_said(&world, &says).await?;
    fault.lasts(&world).await?;
    std::fs::remove_file(&filled)?;
    fault.ends_well(&world).await?;

    let fault = Fault::begin(&world, "disk of the database full at a restart")?;
    world.stop(Role::Run).await?;
    let filled = fill(&world.path("data"))?;
    let before = world.log(Role::Run).len();
    world.begin(Role::Run).await?;
    let said = |world: &World| {
        let log = world.log(Role::Run);
        log.get(before..).unwrap_or_default().to_owned()
    };
    world
        .until("it says that the disk is full", SOON, |world| {
            Ok(said(world).contains("full"))
        })
        .await?;
    // Whether it can start depends on what was left of its log; if it can't, its supervisor
    // restarts it.
    let gave_up = said(&world).contains("fedicensus: ");
    if gave_up {
        world.until_it_ended(Role::Run, SOON).await?;
    }
    std::fs::remove_file(&filled)?;
    fault.is_borne(&world)?;
    if gave_up {
        world.begin(Role::Run).await?;
    }
    fault.ends_well(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_without_room_says_how_much_it_takes_and_leaves_nothing() -> anyhow::Result<()> {
    /// Room for the 32 KiB that SQLite's readers share, but not for a database.
    const BYTES_LEFT: u64 = 48 * 1024;
    if !may_mount("a_copy_without_room_says_how_much_it_takes_and_leaves_nothing")? {
        return Ok(());
    }
    let world = World::prepare(with_a_disk("data", DISK_KIB)).await?;
    let added = world.command(&["add", "a.lab.test", "b.lab.test"])?;
    assert!(added.status.success(), "{added:?}");
    let data = world.path("data");
    let filled = fill(&data)?;
    let bytes = std::fs::metadata(&filled)?.len();
    std::fs::File::options()
        .write(true)
        .open(&filled)?
        .set_len(bytes - BYTES_LEFT)?;
    let copy = data.join("copy.db");
    let copies = || -> std::io::Result<usize> {
        let names = std::fs::read_dir(&data)?.map(|entry| Ok(entry?.file_name()));
        let names = names.collect::<std::io::Result<Vec<_>>>()?;
        let is_copy = |name: &&std::ffi::OsString| name.to_string_lossy().contains("copy");
        Ok(names.iter().filter(is_copy).count())
    };
    for to in ["-", &copy.display().to_string()] {
        let refused = world.command(&["backup", to])?;
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        let expected = format!(
            "no room for the copy: it takes up to 1 MiB in {}",
            data.display()
        );
        assert!(said.contains(&expected), "{said}");
        assert_eq!(copies()?, 0, "something is left");
    }
    std::fs::remove_file(&filled)?;
    let made = world.command(&["backup", &copy.display().to_string()])?;
    assert!(made.status.success(), "{made:?}");
    assert_eq!(copies()?, 1);
    Ok(())
}

/// Asserts that a daemon that can't start ends and says why. A supervisor would restart it again
/// and again.
async fn ends_and_says(world: &mut World, says: &str) -> anyhow::Result<()> {
    let before = world.log(Role::Run).len();
    world.begin(Role::Run).await?;
    world.until_it_ended(Role::Run, SOON).await?;
    let log = world.log(Role::Run);
    let said = log.get(before..).unwrap_or_default();
    anyhow::ensure!(said.contains(says), "{says:?} is not in: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_below_the_list_leaves_the_old_list_whole() -> anyhow::Result<()> {
    if !may_mount("a_full_disk_below_the_list_leaves_the_old_list_whole")? {
        return Ok(());
    }
    let world = living(with_a_disk("public", DISK_KIB)).await?;
    let before = world.nodes()?;
    let fault = Fault::begin(&world, "disk of the published files full")?;
    let says = ["DUMP", "no room left for the new dump; free some space"];
    let filled = fill_until(&world, &world.path("public"), says[1]).await?;
    fault.is_said(&world, &says).await?;
    fault.lasts(&world).await?;
    assert_eq!(world.nodes()?, before, "the old list stands");
    std::fs::remove_file(&filled)?;
    fault.ends_well(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_below_the_egress_wrongs_nobody() -> anyhow::Result<()> {
    if !may_mount("a_full_disk_below_the_egress_wrongs_nobody")? {
        return Ok(());
    }
    let world = living(with_a_disk(EGRESS, 1024)).await?;
    let fault = Fault::begin(&world, "disk of the egress directory full")?;
    let says = [
        "OUTAGE",
        "no egress socket can be made in",
        "check its free space",
    ];
    let filled = fill_until(&world, &world.path(EGRESS), says[1]).await?;
    fault.is_said(&world, &says).await?;
    fault.lasts(&world).await?;
    let log = world.log(Role::Gateway);
    let told = log
        .matches("egress sockets can't be made, so no check can start")
        .count();
    let over = log.matches("egress sockets can be made again").count();
    // What was in flight when the disk was filled frees room, so the fault may be over for a
    // moment.
    assert_eq!(told, 1 + over, "once each, and not once a check: {log}");
    std::fs::remove_file(&filled)?;
    fault.ends_well(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_read_only_at_start_is_said_and_harms_nobody() -> anyhow::Result<()> {
    if !may_mount("a_disk_that_is_read_only_at_start_is_said_and_harms_nobody")? {
        return Ok(());
    }
    let mut world = living(with_a_disk("data", DISK_KIB)).await?;
    let fault = Fault::begin(&world, "database read-only at start")?;
    world.stop(Role::Run).await?;
    world.remount("data", "ro")?;
    ends_and_says(&mut world, "mounted for writing").await?;
    world.remount("data", "rw")?;
    fault.is_borne(&world)?;
    world.begin(Role::Run).await?;
    fault.ends_well(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_somebody_locks_wrongs_nobody() -> anyhow::Result<()> {
    let mut world = living(options()).await?;
    let fault = Fault::begin(&world, "database locked by another process")?;
    let holder = tests::program("examples/hold_lock")
        .context("cargo build --package store --example hold_lock")?;
    let mut holder = Command::new(holder)
        .arg(world.path("data/census.db"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let told = holder.stdout.take().context("piped")?;
    BufReader::new(told).read_line(&mut line)?;
    assert_eq!(line, "locked\n");
    let says = [
        "OUTAGE",
        "the database is locked by another process: end what else writes it",
    ];
    fault.is_said(&world, &says).await?;
    fault.lasts(&world).await?;

    // And no second daemon can start meanwhile.
    world.kill(Role::Run)?;
    ends_and_says(&mut world, "locked").await?;
    drop(holder.stdin.take());
    holder.wait()?;
    world.begin(Role::Run).await?;
    fault.ends_well(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_moved_away_loses_nothing() -> anyhow::Result<()> {
    let mut world = living(options()).await?;
    let (data, away) = (world.path("data"), world.path("data.away"));
    let fault = Fault::begin(&world, "directory of the database gone")?;
    std::fs::rename(&data, &away)?;
    let log = || world.log(Role::Run);
    world
        .until("the daemon says so", SOON, |_| {
            Ok(log().contains("the database is no longer at"))
        })
        .await?;
    let since = Instant::now();
    world
        .until("it has lasted", SOON, |_| Ok(since.elapsed() > HOLD))
        .await?;
    std::fs::rename(&away, &data)?;
    fault.is_borne(&world)?;
    fault.ends_well(&world).await?;

    // With another file in its place, the daemon ends, and the next one uses that file.
    let copy = world.path("copy.db");
    world.stop(Role::Run).await?;
    std::fs::copy(world.path("data/census.db"), &copy)?;
    world.begin(Role::Run).await?;
    world
        .until("the daemon runs", SOON, |world| {
            Ok(world.command(&["health"])?.status.success())
        })
        .await?;
    std::fs::rename(&copy, world.path("data/census.db"))?;
    world.until_it_ended(Role::Run, SOON).await?;
    assert!(world.log(Role::Run).contains("another database was put at"));
    for name in ["data/census.db-wal", "data/census.db-shm"] {
        // They belong to the other one.
        std::fs::remove_file(world.path(name)).ok();
    }
    world.begin(Role::Run).await?;
    all_live(&world).await
}

/// Whether this is the run of this module's test `name` in which it may mount disks. Prints why if
/// none can be mounted, and fails if one must be.
fn may_mount(name: &str) -> anyhow::Result<bool> {
    // The test program names a test by its path without the crate.
    let (_, module) = module_path!().split_once("::").context("a module's path")?;
    let place = tests::disks::inside(&format!("{module}::{name}"))?;
    if place == tests::disks::Place::Impossible {
        tests::skip(
            Need::Privileges,
            "no disk can be mounted here; that takes root and `unshare`",
        );
    }
    Ok(place == tests::disks::Place::Inside)
}
