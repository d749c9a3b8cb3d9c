//! Key files as text: the only stored form of a secret key.
//!
//! It parses a file's content into a key, and renders a key into such content. It rejects keys with
//! a passphrase, keys of another kind, public keys, and files whose two halves belong to different
//! keys.
//!
//! A key file is an unencrypted OpenSSH private key (PEM, `-----BEGIN OPENSSH PRIVATE KEY-----`),
//! the format of `sigsum-key generate` and `ssh-keygen -t ed25519 -N ''`, so all three can use the
//! same file. A seed of 64 hex digits with optional white space around them, which older Sigsum
//! tools used, is accepted too.

use base64ct::{Base64, Encoding as _};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{LineEnding, PrivateKey};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::key::{KEY_BYTES, SecretKey};

/// Longest key file in bytes. An OpenSSH file with a usual comment has about 400.
pub const FILE_BYTES_MAX: usize = 16 * 1024;

/// The marks before and after an OpenSSH private key.
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// The prefix of an OpenSSH public key.
const PUBLIC_PREFIX: &str = "ssh-ed25519 ";

/// Why a file has no key that could sign a token. No error text quotes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyFileError {
    #[error(
        "is longer than {FILE_BYTES_MAX} bytes, so it is not a key file: is this the right file?"
    )]
    TooLong,
    #[error(
        "is neither an OpenSSH private key nor 64 hex digits: make a key with `fedicensus token key --new`"
    )]
    Malformed,
    #[error("is a public key: name the private one, which is next to it without `.pub`")]
    Public,
    #[error(
        "has a passphrase, and nobody can enter it here: make a separate key for tokens with `fedicensus token key --new`"
    )]
    Encrypted,
    #[error("has a key that is not Ed25519: make one with `fedicensus token key --new`")]
    OtherKind,
    #[error("is damaged: its private and its public half do not match")]
    Halves,
}

/// Parses the key in a file's content.
///
/// # Errors
/// Returns the reason if there is no usable key. The text continues the file's name.
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

/// Decodes the base64 between the marks, with lines of any length: Sigsum's tools write 64
/// characters per line and OpenSSH 70, and `ssh-key` accepts only the latter.
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

/// Renders this key as a file's content.
///
/// # Errors
/// Returns [`KeyFileError::Malformed`] if OpenSSH's format can't represent it, which is not known
/// to happen.
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
