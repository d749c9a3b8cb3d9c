//! Key files, as text: the one place where a secret key has a form.
//!
//! In: a file's content. Out: the key; or the content that keeps one. Refused: keys under a passphrase, of another kind, public ones, and files whose
//! two halves are not of one key.
//!
//! A key file is an unencrypted OpenSSH private key (PEM, `-----BEGIN OPENSSH PRIVATE KEY-----`), as `sigsum-key generate` and
//! `ssh-keygen -t ed25519 -N ''` make it too: one file serves all three. A seed as 64 hex digits, with white space around them at most, is read as well;
//! it is what Sigsum's tools had before.

use base64ct::{Base64, Encoding as _};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{LineEnding, PrivateKey};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::key::{KEY_BYTES, SecretKey};

/// Longest key file in bytes. One of OpenSSH with a comment of the usual length has some 400.
pub const FILE_BYTES_MAX: usize = 16 * 1024;

/// The marks before and after an OpenSSH private key.
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// What a public key of OpenSSH's begins with.
const PUBLIC_PREFIX: &str = "ssh-ed25519 ";

/// Why a file holds no key that could sign a token. No text quotes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyFileError {
    /// Over [`FILE_BYTES_MAX`].
    #[error("is longer than {FILE_BYTES_MAX} bytes and no key file: is this the right file?")]
    TooLong,
    /// Neither of the two forms.
    #[error(
        "is neither an OpenSSH private key nor 64 hex digits: make a key with `fedicensus token key --new`"
    )]
    Malformed,
    /// The key's public half.
    #[error("is a public key: name the private one, which lies beside it without `.pub`")]
    Public,
    /// A passphrase is needed.
    #[error(
        "is under a passphrase, which nobody can be asked for here: make a key for tokens alone with `fedicensus token key --new`"
    )]
    Encrypted,
    /// Another algorithm.
    #[error("holds a key that is not Ed25519: make one with `fedicensus token key --new`")]
    OtherKind,
    /// The private half is not the public half's.
    #[error("is damaged: its private and its public half are not of one key")]
    Halves,
}

/// The key in a file of this content.
///
/// # Errors
/// Why there is none. The text goes on from the file's name.
pub fn parse(content: &[u8]) -> Result<SecretKey, KeyFileError> {
    if content.len() > FILE_BYTES_MAX {
        return Err(KeyFileError::TooLong);
    }
    let text = content.trim_ascii();
    let mut seed = Zeroizing::new([0; KEY_BYTES]);
    if hex::decode_to_slice(text, seed.as_mut()).is_ok() {
        return Ok(SecretKey::from_seed(&seed));
    }
    if text.starts_with(PUBLIC_PREFIX.as_bytes()) {
        return Err(KeyFileError::Public);
    }
    let private = PrivateKey::from_bytes(&unwrapped(text)?).map_err(|error| {
        if matches!(error, ssh_key::Error::AlgorithmUnknown) {
            KeyFileError::OtherKind
        } else {
            KeyFileError::Malformed
        }
    })?;
    if private.is_encrypted() {
        return Err(KeyFileError::Encrypted);
    }
    let pair = private
        .key_data()
        .ed25519()
        .ok_or(KeyFileError::OtherKind)?;
    let key = SecretKey::from_seed(pair.private.as_ref());
    if key.public().to_bytes() == pair.public.0 {
        Ok(key)
    } else {
        Err(KeyFileError::Halves)
    }
}

/// What stands in base64 between the marks, in lines of any length: Sigsum's tools make them of 64 letters and OpenSSH of 70, and `ssh-key` reads
/// the latter alone.
fn unwrapped(text: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let body = text
        .strip_prefix(BEGIN.as_bytes())
        .and_then(|rest| rest.strip_suffix(END.as_bytes()))
        .ok_or(KeyFileError::Malformed)?;
    let mut letters = Zeroizing::new(body.to_vec());
    letters.retain(|letter| !matches!(letter, b'\r' | b'\n'));
    let mut bytes = Zeroizing::new(vec![0; letters.len()]);
    let length = Base64::decode(letters.as_slice(), bytes.as_mut_slice())
        .map_err(|_how| KeyFileError::Malformed)?
        .len();
    bytes.truncate(length);
    Ok(bytes)
}

/// The content of a file that keeps this key.
///
/// # Errors
/// [`KeyFileError::Malformed`], when it can't be written in OpenSSH's form: not known to happen.
pub fn render(key: &SecretKey) -> Result<Zeroizing<String>, KeyFileError> {
    let pair = Ed25519Keypair {
        public: ssh_key::public::Ed25519PublicKey(key.public().to_bytes()),
        private: ssh_key::private::Ed25519PrivateKey::from_bytes(&key.to_seed()),
    };
    PrivateKey::new(KeypairData::Ed25519(pair), "")
        .and_then(|private| private.to_openssh(LineEnding::LF))
        .map_err(|_how| KeyFileError::Malformed)
}

#[cfg(test)]
mod tests;
