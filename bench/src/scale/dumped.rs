//! A dump by its parts.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use bench::shared::cost::Meter;
use bench::shared::making::{self, NOW, World};
use census::time::Calendar;
use dump::{DumpError, ListedRow, ListedState, Moment, Packing};
use publish::{Cancel, Disk, Tree};
use store::{Listed, Reader, StateName};

use crate::say;

/// Creates a census with this many living hosts and dumps it.
pub(crate) fn measure(folder: &Path, rows: u64) -> Result<()> {
    let path = folder.join("living.db");
    making::make(&path, rows, World::Living)?;
    // Opened and closed as the daemon does it, so that it has a write-ahead log.
    store::open(&path)?.close();
    let reader = store::open_read_only(&path)?;
    say(&format!(
        "\nDumping {rows} living hosts:\n\n| part | s of the clock | s of processor time |\n|---|---|---|"
    ))?;
    time("rows read and nothing written", || {
        let mut bytes = 0;
        let listed = reader.listed(NOW, Calendar::REAL, |row| {
            bytes += row.host.len();
            anyhow::Ok(())
        })?;
        ensure!(listed == rows, "{listed} listed of {rows}");
        Ok(())
    })?;
    time("`nodes.json` alone, synced", || {
        let file = File::create(folder.join("nodes.json"))?;
        let mut buffer = BufWriter::new(file);
        names(&reader, &mut buffer)?;
        Ok(buffer
            .into_inner()
            .map_err(|error| error.into_error())?
            .sync_all()?)
    })?;
    let public = folder.join("names");
    std::fs::create_dir(&public)?;
    let begin = |public: &Path| Tree::begin(Disk::SYSTEM, public, &Cancel::default());
    let tree = begin(&public)?;
    time("the same with `.gz`", || {
        let none = |_row: &mut dyn FnMut(&ListedRow) -> Result<(), DumpError>| Ok(());
        let mut draft = dump::write::<DumpError>(&tree, moment(NOW.0), none)?;
        let write = |file: &mut dyn Write| names(&reader, file).map_err(std::io::Error::other);
        draft.add("names.json", "application/json", Packing::Gzip, write)?;
        draft.seal()?;
        Ok(tree.publish()?)
    })?;
    let public = folder.join("public");
    std::fs::create_dir(&public)?;
    let tree = begin(&public)?;
    let mut draft = None;
    time("rows into the files of all formats", || {
        draft = Some(dump::write(&tree, moment(NOW.0), |row| all(&reader, row))?);
        Ok(())
    })?;
    time("their `.gz` and digests", || {
        draft.take().context("a draft")?.seal()?;
        Ok(())
    })?;
    time("all of them synced and published", || Ok(tree.publish()?))
}

fn time(what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let meter = Meter::begin();
    work().with_context(|| what.to_owned())?;
    let cost = meter.end(1);
    say(&format!(
        "| {what} | {:.2} | {:.2} |",
        1.0 / cost.rate,
        1.0 / cost.cpu_rate
    ))
}

fn names(reader: &Reader, file: &mut (impl Write + ?Sized)) -> Result<()> {
    let mut separator = "[";
    reader.listed(NOW, Calendar::REAL, |row| -> Result<()> {
        file.write_all(separator.as_bytes())?;
        separator = ",";
        Ok(serde_json::to_writer(&mut *file, row.host)?)
    })?;
    Ok(file.write_all(b"]\n")?)
}

fn all(reader: &Reader, row: &mut dyn FnMut(&ListedRow) -> Result<(), DumpError>) -> Result<()> {
    reader.listed(NOW, Calendar::REAL, |listed| {
        Ok::<(), anyhow::Error>(row(&listed_row(listed))?)
    })?;
    Ok(())
}

fn listed_row(listed: Listed<'_>) -> ListedRow {
    ListedRow {
        host: listed.host.to_owned(),
        state: match listed.state {
            StateName::Dying => ListedState::Dying,
            StateName::Moving => ListedState::Moving,
            _ => ListedState::Alive,
        },
        first_seen: moment(listed.first_seen.0),
        last_alive: moment(listed.last_alive.0),
        instance: listed.instance,
    }
}

fn moment(milliseconds: i64) -> Moment {
    Moment::from_milliseconds(milliseconds)
}
