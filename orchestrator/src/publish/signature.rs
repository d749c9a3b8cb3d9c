//! Signs the set (docs/signatures.md).
//!
//! The key in the private data folder signs the finished index. `index.json.minisig` and the public
//! keys are written next to the index. A set that can't be signed is published without a signature,
//! because hosts that opted out must not wait for it (invariant I7); a text that no program reads
//! as a signature replaces it.

use std::path::Path;

use dump::sign::SIGNATURE_END;
use dump::sign::keys::{KeyError, Keys, Origin};
use dump::{INDEX_FILE, Moment, Sealed};
use thiserror::Error;

use super::PublishError;
use crate::ground::clock;

/// Replaces a signature that could not be made.
const UNSIGNED: &str = "untrusted comment: this index is not signed: the census's key could not be used when it was made\n";

/// Why there is no key.
#[derive(Debug, Error)]
pub enum SigningError {
    /// The key in the data folder can't be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("no key can be made: the operating system gives no random bytes ({0})")]
    NoChance(String),
}

/// The key in the private folder `data_dir`; if there is none, one is made and this is logged.
/// Called at the start, when an operator watches. Blocks.
pub fn keys(data_dir: &Path) -> Result<Keys, SigningError> {
    let seed = clock::key_seed().map_err(|error| SigningError::NoChance(error.to_string()))?;
    let (keys, origin) = Keys::open(data_dir, &seed)?;
    if origin == Origin::Made {
        tracing::info!(
            key = keys.key().public().id(),
            "a key that signs the published files was created: keep a copy of signing.key from the data folder"
        );
    }
    Ok(keys)
}

/// Adds the signature of the index, or a text that says there is none, and the public keys. Returns
/// why the index is not signed, if so. It makes no key: a missing one may be in a backup, and
/// readers know it.
pub(super) fn attach(
    sealed: &Sealed<'_>,
    data_dir: &Path,
    now: Moment,
) -> Result<Option<KeyError>, PublishError> {
    let signature_file = format!("{INDEX_FILE}{SIGNATURE_END}");
    let keys = match Keys::find(data_dir) {
        Ok(keys) => keys,
        Err(error) => {
            tracing::error!(%error, "the published files are not signed");
            sealed.attach(&signature_file, UNSIGNED.as_bytes())?;
            return Ok(Some(error));
        }
    };
    for file in keys.public_files() {
        sealed.attach(&file.name, file.content.as_bytes())?;
    }
    let signature = keys.key().sign(sealed.index(), INDEX_FILE, now);
    sealed.attach(&signature_file, signature.as_bytes())?;
    Ok(None)
}
