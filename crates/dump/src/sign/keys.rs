//! The census's key on the disk, and those that it took the place of.
//!
//! In: the private data folder. Out: the key, and the public files that lead a reader from any of the last keys to this one. Refused: a key that
//! can't be read, is empty, is damaged, or may be read by others; none is ever made in the place of one that is there.
//!
//! Invariant: a key is made or replaced by one at a time, who holds the lock of the folder: the daemon and the command line are two processes. Reading
//! needs no lock: files are replaced by renaming, and the history is good for the key before as well as for the one that follows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{NoKey, PublicKey, SEED_BYTES, SIGNATURE_END, SigningKey};
use crate::instance::Moment;

/// The public key, in the public folder.
pub const PUBLIC_KEY_FILE: &str = "fedicensus.pub";

/// How the names of all public keys begin and end.
const PUBLIC_KEY_START: &str = "fedicensus";
const PUBLIC_KEY_END: &str = ".pub";

/// Names that are looked at in the public folder of keys: it holds some tens.
const FOLDER_NAMES_MAX: usize = 10_000;

/// The secret key, in the private data folder.
pub const SECRET_KEY_FILE: &str = "signing.key";

/// The public keys from the oldest that is kept to the newest, each signed by the one before it, in the private data folder.
const HISTORY_FILE: &str = "signing.history";

/// Held by whoever makes or replaces the key. Empty, and left there: who removed it would take it from under the next one.
const LOCK_FILE: &str = "signing.lock";

/// A secret is its owner's alone.
const MODE: u32 = 0o600;

/// The permissions of everybody else.
const OTHERS: u32 = 0o077;

/// Former keys that are kept: with a rotation a year, somebody who looked eight years ago still finds the way.
const FORMER_MAX: usize = 8;

/// Bytes of the secret key's file. Ours has 310.
const KEY_FILE_BYTES_MAX: usize = 4096;

/// Bytes of the history: a key and its signature have about 600.
const HISTORY_BYTES_MAX: usize = (FORMER_MAX + 2) * 2048;

/// Why there is no key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The file can't be read.
    #[error("{}: can't be read ({source}); no new key is made while one is there: mend it, or put a backup in its place", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds nothing.
    #[error("{}: is empty; put a backup in its place, or remove it for a new key, which readers then have to learn anew", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Others may read or write the file, or it is none.
    #[error("{}: is within other users' reach (mode {mode:o}); if nobody can have read it, `chmod 600` it, else make a new key", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file holds something else.
    #[error("{}: {source}; put a backup in its place, or remove it for a new key, which readers then have to learn anew", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// What it is.
        source: NoKey,
    },
    /// The former keys can't be read.
    #[error("{}: is damaged; put a backup in its place, or remove it: who knows a former key alone then has to learn the new one anew", path.display())]
    History {
        /// The file.
        path: PathBuf,
    },
    /// The file can't be written.
    #[error("{}: can't be written ({source}); the key that was there stands", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no key.
    #[error("{}: is not there; put a backup in its place; without one the next start makes a new key, which readers then have to learn anew", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
}

/// Whether a key was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was.
    Found,
    /// It was made just now: to be said in the log, since readers have to learn it.
    Made,
}

/// Whether the old key speaks for the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handover {
    /// It signs the new one: readers who know the old key need nobody else.
    Signed,
    /// It is stolen or not trusted any more: it signs nothing, it is not shown, and readers have to learn the new key anew.
    None,
}

/// A file for the public folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicFile {
    /// Its name.
    pub name: String,
    /// Its content.
    pub content: String,
}

/// The key that signs, and the public halves of those before it.
#[derive(Debug)]
pub struct Keys {
    key: SigningKey,
    /// The oldest first; the last one is the key's own.
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
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn find(folder: &Path) -> Result<Self, KeyError> {
        let key = present_key(folder)?;
        let chain = read_chain(folder, &key.public())?;
        Ok(Self { key, chain })
    }

    /// The key in the private `folder`. Where there is none, one is made from `seed`, which is of the operating system's chance.
    ///
    /// # Errors
    /// See [`KeyError`]. Nothing that is there was changed.
    pub fn open(folder: &Path, seed: &[u8; SEED_BYTES]) -> Result<(Self, Origin), KeyError> {
        if let Some(found) = none_if_missing(Self::find(folder))? {
            return Ok((found, Origin::Found));
        }
        let _lock = lock(folder)?;
        // Another may have made one meanwhile.
        if let Some(found) = none_if_missing(Self::find(folder))? {
            return Ok((found, Origin::Found));
        }
        let key = SigningKey::from_seed(seed);
        write(folder, SECRET_KEY_FILE, key.to_file().as_bytes())?;
        // What is left of a key that was taken away signs nothing for this one.
        let chain = vec![Link::first(&key.public())];
        Ok((Self { key, chain }, Origin::Made))
    }

    /// Puts a new key, made from `seed`, in the place of the one in `folder`, and keeps no copy of the old one.
    ///
    /// # Errors
    /// See [`KeyError`]. The old key stands then.
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
                    // Its signature is of a key that is not shown any more.
                    oldest.signature = None;
                }
                chain
            }
            Handover::None => vec![Link::first(&key.public())],
        };
        // The history first: until the key follows, the last link is of a key that nobody has, and is passed over.
        write_chain(folder, &chain)?;
        write(folder, SECRET_KEY_FILE, key.to_file().as_bytes())?;
        Ok(Self { key, chain })
    }

    /// The key that signs.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// What readers need: `fedicensus.pub`; after a rotation `fedicensus.pub.minisig`, which is of the key before, in `fedicensus-old.pub`, and so
    /// on with `fedicensus-old-2.pub`.
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

    /// Removes the files of keys from the public `folder` that are none of [`Keys::public_files`]: nobody is to follow a key there that speaks for this
    /// one no more.
    ///
    /// # Errors
    /// When the folder can't be read or a file can't be removed.
    pub fn remove_others(&self, folder: &Path) -> io::Result<()> {
        let ours = self.public_files();
        for entry in fs::read_dir(folder)?.take(FOLDER_NAMES_MAX) {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else {
                continue;
            };
            let stem = name.strip_suffix(SIGNATURE_END).unwrap_or(name);
            let is_a_key = stem.starts_with(PUBLIC_KEY_START) && stem.ends_with(PUBLIC_KEY_END);
            if is_a_key && !ours.iter().any(|file| file.name == name) {
                fs::remove_file(folder.join(name))?;
            }
        }
        Ok(())
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

/// Waits until nobody else makes or replaces the key, which takes milliseconds. The lock goes with the file that is given, or with its process.
fn lock(folder: &Path) -> Result<File, KeyError> {
    let path = folder.join(LOCK_FILE);
    let taken = || {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(MODE)
            .open(&path)?;
        file.lock()?;
        Ok(file)
    };
    taken().map_err(|source| KeyError::Unwritable {
        path: path.clone(),
        source,
    })
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

/// The public keys up to `public`.
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
        // Another key was put in its place, or there was only ever this one.
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

/// Whom a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Its owner alone: refused within others' reach.
    Secret,
    /// Everybody may read it.
    Public,
}

/// The content of a file of ours, within a bound; none when it is not there.
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
    // All at once: a vector that grows would leave pieces of the key behind.
    let room = bytes_max.saturating_add(1);
    let mut content = Zeroizing::new(Vec::with_capacity(room));
    file.take(u64::try_from(room).unwrap_or(u64::MAX))
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    Ok(Some(content))
}

/// Replaces a file of the folder. Whoever calls it holds the folder's lock.
fn write(folder: &Path, name: &str, content: &[u8]) -> Result<(), KeyError> {
    let path = folder.join(name);
    files::replace(&path, files::Mode::Private, content)
        .map_err(|source| KeyError::Unwritable { path, source })
}

#[cfg(test)]
mod tests;
