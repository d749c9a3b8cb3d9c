//! The set's signature (docs/signatures.md).
//!
//! In: the finished index, the key in the private data folder. Out: `index.json.minisig` and the public keys, beside the index. Refused: nothing: a set
//! that can't be signed is published all the same, since whoever opted out must not wait for it (invariant I7); in the place of its signature stands a
//! text that no program takes for one.

use std::path::Path;

use dump::sign::SIGNATURE_END;
use dump::sign::keys::{KeyError, Keys, Origin};
use dump::{DATA_FOLDER, DumpError, INDEX_FILE, Moment, Sealed};
use thiserror::Error;

use crate::services::clock;

/// What stands in the place of a signature that could not be made.
const UNSIGNED: &str = "untrusted comment: this index is not signed: the census's key could not be used when it was made\n";

/// Why there is no key.
#[derive(Debug, Error)]
pub enum SigningError {
    /// The key in the data folder can't be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The operating system has no chance to give, of which a key could be made.
    #[error("no key can be made: the operating system gives no random bytes ({0})")]
    NoChance(String),
}

/// The key in the private folder `data_dir`; made now if there is none, which the log then says. For a start, at which somebody looks. Blocks.
///
/// # Errors
/// When the key that is there can't be used.
pub fn keys(data_dir: &Path) -> Result<Keys, SigningError> {
    let seed = clock::key_seed().map_err(|error| SigningError::NoChance(error.to_string()))?;
    let (keys, origin) = Keys::open(data_dir, &seed)?;
    if origin == Origin::Made {
        tracing::info!(
            key = keys.key().public().id(),
            "a key was made that signs the published files: keep a copy of signing.key in the data folder"
        );
    }
    Ok(keys)
}

/// Puts the signature of the index, or what says that there is none, and the public keys beside it. Gives the keys, or why there are none: here none
/// is made, since one that is gone may be in a backup, and readers know it.
pub(super) fn attach(
    sealed: &mut Sealed,
    data_dir: &Path,
    now: Moment,
) -> Result<Result<Keys, KeyError>, DumpError> {
    let signature_file = format!("{INDEX_FILE}{SIGNATURE_END}");
    let keys = match Keys::find(data_dir) {
        Ok(keys) => keys,
        Err(error) => {
            tracing::error!(%error, "the published files are not signed");
            sealed.attach(&signature_file, UNSIGNED.as_bytes())?;
            return Ok(Err(error));
        }
    };
    for file in keys.public_files() {
        sealed.attach(&file.name, file.content.as_bytes())?;
    }
    let signature = keys.key().sign(sealed.index(), INDEX_FILE, now);
    sealed.attach(&signature_file, signature.as_bytes())?;
    Ok(Ok(keys))
}

/// Takes keys away that speak for the one that signs no more, once that is published in the public folder.
pub(super) fn remove_others(keys: &Keys, public_dir: &Path) {
    if let Err(error) = keys.remove_others(&public_dir.join(DATA_FOLDER)) {
        tracing::warn!(%error, "a former public key could not be removed; the next dump tries again");
    }
}
