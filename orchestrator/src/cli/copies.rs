//! Copies of the database: out of it while it is in use, and back in its place. Neither needs the daemon.

use std::fs::File;
use std::io::{IsTerminal as _, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use store::Copied;

use super::{OK, say};
use crate::config::Config;

pub(super) fn backup(config: &Config, file: &Path) -> anyhow::Result<u8> {
    let database = config.database();
    if file != Path::new("-") {
        let copied = store::backup(&database, file).with_context(|| failed(&database))?;
        say(&format!("wrote {}: {}", file.display(), in_words(&copied)))?;
        return Ok(OK);
    }
    let mut out = std::io::stdout().lock();
    // A terminal would turn line ends into others, and the file that somebody hopes to have is spoilt.
    if out.is_terminal() {
        bail!(
            "standard output is a terminal: send it to a file; with `compose exec` give -T, and with `exec` no -t"
        );
    }
    let copied = store::backup_into(&database, &mut out).with_context(|| failed(&database))?;
    tracing::info!("wrote the backup: {}", in_words(&copied));
    Ok(OK)
}

fn failed(database: &Path) -> String {
    format!("no backup of {} was made", database.display())
}

pub(super) fn restore(config: &Config, file: &Path) -> anyhow::Result<u8> {
    let database = config.database();
    let mut source: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(open(file)?)
    };
    let restored = store::restore(&database, &mut source).with_context(|| {
        format!(
            "{} was not restored from {}",
            database.display(),
            file.display()
        )
    })?;
    say(&format!(
        "restored {}: {}; start the daemon now",
        database.display(),
        in_words(&restored.copied)
    ))?;
    if let Some(replaced) = restored.replaced {
        say(&format!(
            "what was there is kept as {}; remove it when all is well",
            replaced.display()
        ))?;
    }
    Ok(OK)
}

fn open(file: &Path) -> anyhow::Result<File> {
    let log = {
        let mut name = file.as_os_str().to_owned();
        name.push("-wal");
        name
    };
    // Part of such a database stands in its log alone.
    if Path::new(&log).metadata().is_ok_and(|log| log.len() > 0) {
        bail!(
            "{} is not one whole file, there is a log beside it: make a backup of it with `fedicensus backup`",
            file.display()
        );
    }
    File::open(file).with_context(|| format!("cannot read {}", file.display()))
}

fn in_words(copied: &Copied) -> String {
    format!("{} bytes, schema {}", copied.bytes, copied.schema)
}
