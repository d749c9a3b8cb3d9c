//! The census's signing key on disk, and its predecessors.
//!
//! Reads the key from the private data folder, and makes the public files that lead a reader from
//! any of the last keys to this one. A key that can't be read, is empty, is damaged, or is readable
//! by other users is an error; it is never replaced automatically.
//!
//! Invariant: a key is created or replaced only by the holder of the folder's lock, since the
//! daemon and the command line are two processes. Reading needs no lock: files are replaced by
//! renaming, and the history is valid both for the old and for the new key.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use files::Lock;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{NoKey, PublicKey, SEED_BYTES, SIGNATURE_END, SigningKey};
use crate::row::Moment;

/// File name of the public key, in the public folder.
pub const PUBLIC_KEY_FILE: &str = "fedicensus.pub";

/// File name of the secret key, in the private data folder.
pub const SECRET_KEY_FILE: &str = "signing.key";

/// The public keys from the oldest kept to the newest, each signed by the one before it, in the
/// private data folder.
const HISTORY_FILE: &str = "signing.history";

/// Locked while the key is created or replaced. Empty, and never deleted: deleting it would
/// invalidate the lock of the next holder.
const LOCK_FILE: &str = "signing.lock";

/// The permission bits of all other users.
const OTHERS: u32 = 0o077;

/// Former keys that are kept: with one rotation a year, a reader who last looked eight years ago
/// can still follow.
const FORMER_MAX: usize = 8;

/// Bytes of the secret key's file. A file of this program has 310.
const KEY_FILE_BYTES_MAX: usize = 4096;

/// Bytes of the history: a key and its signature have about 600.
const HISTORY_BYTES_MAX: usize = (FORMER_MAX + 2) * 2048;

#[derive(Debug, Error)]
pub enum KeyError {
    #[error("{}: can't be read ({source}); no new key is made while one exists: repair it, or put a backup in its place", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: is empty; put a backup in its place, or remove it for a new key, which readers must then get from you", path.display())]
    Empty { path: PathBuf },
    #[error("{}: other users can read or write it (mode {mode:o}); if nobody has read it, `chmod 600` it, otherwise make a new key", path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{}: {source}; put a backup in its place, or remove it for a new key, which readers must then get from you", path.display())]
    NoKey { path: PathBuf, source: NoKey },
    #[error("{}: is damaged; put a backup in its place, or remove it: readers must then get the new key from you", path.display())]
    History { path: PathBuf },
    #[error("{}: can't be written ({source}); the former key stays", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{} is missing: put a backup in its place; without a backup the next start makes a new key, which readers must then get from you", path.display())]
    Missing { path: PathBuf },
}

/// Whether a key was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Found,
    /// The key was created just now. The caller should log it, since readers have to learn the new
    /// key.
    Made,
}

/// Whether the old key signs the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handover {
    /// It signs the new one: readers who trust the old key can verify the new one.
    Signed,
    /// It is stolen or no longer trusted: it signs nothing and is not published, and readers have
    /// to learn the new key.
    None,
}

/// A file for the public folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicFile {
    pub name: String,
    pub content: String,
}

/// The signing key, and the public halves of its predecessors.
#[derive(Debug)]
pub struct Keys {
    key: SigningKey,
    /// The oldest first. The last one is the key's public half.
    chain: Vec<Link>,
}

/// A public key's file, and its signature by the key before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Link {
    public: String,
    signature: Option<String>,
}

impl Keys {
    /// The key in the private `folder`.
    pub fn find(folder: &Path) -> Result<Self, KeyError> {
        let key = present_key(folder)?;
        let chain = read_chain(folder, &key.public())?;
        Ok(Self { key, chain })
    }

    /// The key in the private `folder`. If there is none, one is derived from `seed`, which must
    /// come from the operating system's random generator.
    pub fn open(folder: &Path, seed: &[u8; SEED_BYTES]) -> Result<(Self, Origin), KeyError> {
        if let Some(found) = none_if_missing(Self::find(folder))? {
            return Ok((found, Origin::Found));
        }
        let _lock = lock(folder)?;
        // Another process may have created one before this one got the lock.
        if let Some(found) = none_if_missing(Self::find(folder))? {
            return Ok((found, Origin::Found));
        }
        let key = SigningKey::from_seed(seed);
        write(folder, SECRET_KEY_FILE, key.to_file().as_bytes())?;
        // The history of a key that was removed vouches for nothing.
        let chain = vec![Link::first(&key.public())];
        Ok((Self { key, chain }, Origin::Made))
    }

    /// Replaces the key in `folder` with a new one, derived from `seed`, and keeps no copy of the
    /// old one.
    pub fn rotate(
        folder: &Path,
        seed: &[u8; SEED_BYTES],
        handover: Handover,
        time: Moment,
    ) -> Result<Self, KeyError> {
        let _lock = lock(folder)?;
        let old = present_key(folder)?;
        let key = SigningKey::from_seed(seed);
        let public = key.public().to_file();
        let chain = match handover {
            Handover::Signed => {
                let mut chain = read_chain(folder, &old.public())?;
                let signature = old.sign(public.as_bytes(), PUBLIC_KEY_FILE, time);
                chain.push(Link {
                    public,
                    signature: Some(signature),
                });
                let surplus = chain.len().saturating_sub(FORMER_MAX.saturating_add(1));
                chain.drain(..surplus);
                if let Some(oldest) = chain.first_mut() {
                    // Its signature is by a key that is no longer published.
                    oldest.signature = None;
                }
                chain
            }
            Handover::None => vec![Link::first(&key.public())],
        };
        // The history first: until the key is written too, the last link is of a key that does not
        // exist, and is ignored.
        write_chain(folder, &chain)?;
        write(folder, SECRET_KEY_FILE, key.to_file().as_bytes())?;
        Ok(Self { key, chain })
    }

    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The files for readers: `fedicensus.pub`. After a rotation also `fedicensus.pub.minisig`, a
    /// signature by the key before, which is in `fedicensus-old.pub`. Earlier keys continue with
    /// `fedicensus-old-2.pub`.
    pub fn public_files(&self) -> Vec<PublicFile> {
        let mut files = Vec::new();
        for (age, link) in self.chain.iter().rev().enumerate() {
            let name = match age {
                0 => PUBLIC_KEY_FILE.to_owned(),
                1 => "fedicensus-old.pub".to_owned(),
                _ => format!("fedicensus-old-{age}.pub"),
            };
            if let Some(signature) = &link.signature {
                files.push(PublicFile {
                    name: format!("{name}{SIGNATURE_END}"),
                    content: signature.clone(),
                });
            }
            files.push(PublicFile {
                name,
                content: link.public.clone(),
            });
        }
        files
    }
}

impl Link {
    fn first(public: &PublicKey) -> Self {
        Self {
            public: public.to_file(),
            signature: None,
        }
    }
}

/// Waits until no other process creates or replaces the key, which takes milliseconds.
fn lock(folder: &Path) -> Result<Lock, KeyError> {
    let path = folder.join(LOCK_FILE);
    Lock::wait(&path).map_err(|source| KeyError::Unwritable { path, source })
}

fn none_if_missing(found: Result<Keys, KeyError>) -> Result<Option<Keys>, KeyError> {
    match found {
        Err(KeyError::Missing { .. }) => Ok(None),
        found => found.map(Some),
    }
}

fn present_key(folder: &Path) -> Result<SigningKey, KeyError> {
    let path = folder.join(SECRET_KEY_FILE);
    let Some(content) = read(&path, KEY_FILE_BYTES_MAX, Content::Secret)? else {
        return Err(KeyError::Missing { path });
    };
    if content.trim_ascii().is_empty() {
        return Err(KeyError::Empty { path });
    }
    std::str::from_utf8(&content)
        .map_err(|_no_text| NoKey::Malformed)
        .and_then(SigningKey::parse)
        .map_err(|source| KeyError::NoKey { path, source })
}

fn read_chain(folder: &Path, public: &PublicKey) -> Result<Vec<Link>, KeyError> {
    let path = folder.join(HISTORY_FILE);
    let mut chain: Vec<Link> = match read(&path, HISTORY_BYTES_MAX, Content::Public)? {
        Some(content) => {
            serde_json::from_slice(&content).map_err(|_damaged| KeyError::History { path })?
        }
        None => Vec::new(),
    };
    let own = public.to_file();
    match chain.iter().position(|link| link.public == own) {
        Some(place) => chain.truncate(place.saturating_add(1)),
        // The key file was replaced by another key, or there was only ever this one.
        None => chain = vec![Link::first(public)],
    }
    Ok(chain)
}

fn write_chain(folder: &Path, chain: &[Link]) -> Result<(), KeyError> {
    let content = serde_json::to_vec(chain).map_err(|error| KeyError::Unwritable {
        path: folder.join(HISTORY_FILE),
        source: error.into(),
    })?;
    write(folder, HISTORY_FILE, &content)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Only its owner: an error if others can access it.
    Secret,
    Public,
}

/// The content of a file, within a bound. `None` if it does not exist.
fn read(
    path: &Path,
    bytes_max: usize,
    of: Content,
) -> Result<Option<Zeroizing<Vec<u8>>>, KeyError> {
    let unreadable = |source| KeyError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let about = file.metadata().map_err(unreadable)?;
    if !about.is_file() {
        return Err(unreadable(ErrorKind::IsADirectory.into()));
    }
    if of == Content::Secret && about.mode() & OTHERS != 0 {
        return Err(KeyError::Exposed {
            path: path.to_owned(),
            mode: about.mode() & 0o7777,
        });
    }
    if about.len() > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        return Err(unreadable(ErrorKind::FileTooLarge.into()));
    }
    // Allocated at once: a growing vector would leave pieces of the key in memory.
    let room = bytes_max.saturating_add(1);
    let mut content = Zeroizing::new(Vec::with_capacity(room));
    file.take(u64::try_from(room).unwrap_or(u64::MAX))
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    Ok(Some(content))
}

/// Replaces a file of the folder. The caller holds the folder's lock.
fn write(folder: &Path, name: &str, content: &[u8]) -> Result<(), KeyError> {
    let path = folder.join(name);
    files::replace(&path, files::Mode::Private, content)
        .map_err(|source| KeyError::Unwritable { path, source })
}

#[cfg(test)]
mod tests;
