//! Key files on disk: readable by their owner only, never overwritten, read up to a size limit.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use token::SecretKey;
use token::key_file::{FILE_BYTES_MAX, parse, render};
use zeroize::Zeroizing;

use crate::ground::clock;

/// Read and write for the owner only.
const MODE: u32 = 0o600;

/// The permission bits of all other users.
const OTHERS: u32 = 0o077;

/// Makes a key and the file that keeps it.
///
/// # Errors
/// The file exists already or can't be written; in either case, no new file is left.
pub(super) fn make(path: &Path) -> anyhow::Result<SecretKey> {
    let seed = clock::key_seed().context("the system has no random numbers for a key")?;
    let key = SecretKey::from_seed(&seed);
    let content = render(&key).context("the key has no form for a file")?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path)
        .map_err(|error| {
            let advice = if error.kind() == ErrorKind::AlreadyExists {
                "exists, and no key is ever overwritten: name another file, or omit --new to show that key"
            } else {
                "can't be made"
            };
            anyhow::Error::new(error).context(format!("{} {advice}", path.display()))
        })?;
    if let Err(error) = file
        .write_all(content.as_bytes())
        .and_then(|()| file.sync_all())
    {
        // A partly written file would block the next attempt.
        std::fs::remove_file(path).ok();
        return Err(error).with_context(|| format!("{} can't be written", path.display()));
    }
    Ok(key)
}

/// Reads the key in a file, or from the pipe of a program that keeps secrets.
///
/// # Errors
/// The file can't be read or holds no key that could sign a token.
pub(super) fn read(path: &Path) -> anyhow::Result<SecretKey> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| {
        let advice = if error.kind() == ErrorKind::NotFound {
            " (`fedicensus token key --new` makes a key)"
        } else {
            ""
        };
        anyhow::Error::new(error).context(format!("{shown} can't be read{advice}"))
    })?;
    let about = file
        .metadata()
        .with_context(|| format!("{shown} can't be read"))?;
    if about.is_dir() {
        bail!("{shown} is a folder: name the key's file");
    }
    if about.is_file() && about.mode() & OTHERS != 0 {
        tracing::warn!("other users may read or write {shown}: chmod 600 {shown}");
    }
    // In one allocation: a growing vector would leave pieces of the key in memory.
    let bytes_max = FILE_BYTES_MAX.saturating_add(1);
    let mut content = Zeroizing::new(Vec::with_capacity(bytes_max));
    file.take(u64::try_from(bytes_max).unwrap_or(u64::MAX))
        .read_to_end(&mut content)
        .with_context(|| format!("{shown} can't be read"))?;
    parse(&content).map_err(|error| anyhow!("{shown} {error}"))
}
