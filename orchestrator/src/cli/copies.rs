//! Backs up a database while it is in use, and restores one. Neither needs the daemon.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};

use ::push::process::Node;
use ::push::storage::sqlite::{Limits, Sqlite};

use anyhow::{Context as _, bail};
use files::{Disk, Mode};
use store::Copied;

use super::ask::Progress;
use super::{OK, input_name, say};
use crate::config::Config;
use crate::roles::{serve_alone, serve_push};

pub(super) fn backup(config: &Config, file: &Path) -> anyhow::Result<u8> {
    let database = config.database();
    let progress = Progress::begin("copying the database");
    if file != Path::new("-") {
        let copied = store::backup(&database, file).with_context(|| failed(&database))?;
        drop(progress);
        say(&format!("wrote {}: {}", file.display(), in_words(&copied)))?;
        return Ok(OK);
    }
    let mut out = stdout()?;
    let copied = store::backup_into(&database, &mut out).with_context(|| failed(&database))?;
    drop(progress);
    tracing::info!("wrote the backup: {}", in_words(&copied));
    Ok(OK)
}

/// Standard output, for a database. A terminal is refused: it would convert line ends and corrupt
/// the file.
fn stdout() -> anyhow::Result<io::StdoutLock<'static>> {
    let out = io::stdout().lock();
    if out.is_terminal() {
        bail!(
            "standard output is a terminal: send it to a file; with `compose exec` give -T, and with `exec` no -t"
        );
    }
    Ok(out)
}

pub(super) fn backup_push(config: &Config, file: &Path) -> anyhow::Result<u8> {
    let database = &config.push_settings.database;
    let copy = |to: &Path| -> anyhow::Result<()> {
        Ok(Sqlite::open_existing(database, Limits::ORDINARY)?.back_up(to)?)
    };
    if file != Path::new("-") {
        copy(file).with_context(|| failed(database))?;
        say(&format!("wrote {}", file.display()))?;
        return Ok(OK);
    }
    let mut out = stdout()?;
    let temporary = database.with_extension("backup");
    // May be left by a backup that was killed.
    remove(&temporary)?;
    let written = copy(&temporary)
        .and_then(|()| Ok(io::copy(&mut File::open(&temporary)?, &mut out)?))
        .and_then(|_bytes| Ok(out.flush()?));
    remove(&temporary)?;
    written.with_context(|| failed(database))?;
    Ok(OK)
}

fn remove(file: &Path) -> anyhow::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn restore_push(config: &Config, file: &Path) -> anyhow::Result<u8> {
    let database = &config.push_settings.database;
    let _serving = serve_push("restore --push", config, Node::Push)
        .with_context(|| not_restored(database, file))?;
    let kept = put_back(database, file).with_context(|| not_restored(database, file))?;
    let what = format!("{}; start the push service now", database.display());
    say_restored(&what, kept.as_deref())
}

fn say_restored(what: &str, kept: Option<&Path>) -> anyhow::Result<u8> {
    say(&format!("restored {what}"))?;
    if let Some(kept) = kept {
        say(&format!(
            "the former database is kept as {}; remove it when everything works",
            kept.display()
        ))?;
    }
    Ok(OK)
}

/// Restores a database. Returns the path at which the former database is kept, if there was one.
fn put_back(database: &Path, file: &Path) -> anyhow::Result<Option<PathBuf>> {
    let new = database.with_extension("new");
    remove_with_log(database, "new")?;
    io::copy(
        &mut source(file)?,
        &mut Disk::SYSTEM.create(&new, Mode::Private)?,
    )?;
    if let Err(error) = Sqlite::open_existing(&new, Limits::ORDINARY) {
        remove_with_log(database, "new")?;
        return Err(error.into());
    }
    let mut kept = None;
    if database.exists() {
        let place = database.with_extension("replaced");
        if place.exists() {
            bail!("{} is in the way: move it elsewhere", place.display());
        }
        // Opening it merges its log, which would otherwise be applied to the new database. The log
        // of a damaged database is lost.
        drop(Sqlite::open(database, Limits::ORDINARY));
        fs::rename(database, &place)?;
        kept = Some(place);
    }
    for log in ["db-wal", "db-shm"] {
        remove(&database.with_extension(log))?;
    }
    fs::rename(&new, database)?;
    Ok(kept)
}

/// Removes a database with the files that SQLite puts next to it.
fn remove_with_log(database: &Path, extension: &str) -> anyhow::Result<()> {
    for end in ["", "-wal", "-shm"] {
        remove(&database.with_extension(format!("{extension}{end}")))?;
    }
    Ok(())
}

fn source(file: &Path) -> anyhow::Result<Box<dyn Read>> {
    Ok(if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(open(file)?)
    })
}

fn failed(database: &Path) -> String {
    format!("no backup of {} was made", database.display())
}

fn not_restored(database: &Path, file: &Path) -> String {
    let (database, file) = (database.display(), input_name(file));
    format!("{database} was not restored from {file}")
}

pub(super) fn restore(config: &Config, file: &Path) -> anyhow::Result<u8> {
    let database = config.database();
    let mut source = source(file)?;
    let _serving =
        serve_alone("restore", &database).with_context(|| not_restored(&database, file))?;
    let progress = Progress::begin("reading and checking the backup");
    let restored =
        store::restore(&database, &mut source).with_context(|| not_restored(&database, file))?;
    drop(progress);
    let (database, copied) = (database.display(), in_words(&restored.copied));
    let what = format!("{database}: {copied}; start the daemon now");
    say_restored(&what, restored.replaced.as_deref())
}

fn open(file: &Path) -> anyhow::Result<File> {
    let log = {
        let mut name = file.as_os_str().to_owned();
        name.push("-wal");
        name
    };
    // Part of such a database is in its log only.
    if Path::new(&log).metadata().is_ok_and(|log| log.len() > 0) {
        bail!(
            "{} is not one whole file, there is a log next to it: make a backup of it with `fedicensus backup`",
            file.display()
        );
    }
    File::open(file).with_context(|| format!("cannot read {}", file.display()))
}

fn in_words(copied: &Copied) -> String {
    format!("{} bytes, schema {}", copied.bytes, copied.schema)
}
