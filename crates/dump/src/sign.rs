//! Signatures in the format of minisign (<https://jedisct1.github.io/minisign/>), so that readers
//! can verify our files with a program that we didn't write ([docs/signatures.md] says how).
//!
//! Signs bytes with a key and a time, and returns the text of a `.minisig` file. Rejects keys with
//! a passphrase, damaged keys, and keys that other users can access ([`keys`]).
//!
//! It signs a BLAKE2b-512 of the bytes (minisign's `ED`), and then that signature with the trusted
//! comment. It uses `ed25519-dalek`, which the workspace needs anyway. The crate `minisign` was
//! rejected: it has a separate implementation of the curve, asks for passwords on the terminal, and
//! shows the secret key in its `Debug` output.
//!
//! [docs/signatures.md]: https://github.com/fedicensus/fedicensus/blob/main/docs/signatures.md

pub mod keys;

use std::fmt;

use base64ct::{Base64, Encoding as _};
use blake2::digest::consts::U32;
use blake2::{Blake2b, Blake2b512, Digest as _};
use ed25519_dalek::Signer as _;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::row::Moment;

/// How the name of a signature file ends.
pub const SIGNATURE_END: &str = ".minisig";

/// Bytes of a seed, from which a key is derived.
pub const SEED_BYTES: usize = 32;

/// Bytes of a key's id.
const ID_BYTES: usize = 8;

/// minisign's algorithm marks: Ed25519, Ed25519 over a BLAKE2b-512, a key without a passphrase, a
/// checksum by BLAKE2b-256.
const ED25519: &[u8; 2] = b"Ed";
const ED25519_PREHASHED: &[u8; 2] = b"ED";
const NO_PASSPHRASE: &[u8; 2] = b"\0\0";
const CHECKSUM: &[u8; 2] = b"B2";

/// Bytes for the parameters of a passphrase: salt and two limits.
const PASSPHRASE_BYTES: usize = 32 + 8 + 8;

/// Bytes of a checksum, and the value that means that there is none.
const CHECKSUM_BYTES: usize = 32;
const NO_CHECKSUM: [u8; CHECKSUM_BYTES] = [0; CHECKSUM_BYTES];

/// Bytes of a secret key: three marks, parameters of a passphrase, id, both halves, checksum.
const SECRET_BYTES: usize = 3 * 2 + PASSPHRASE_BYTES + ID_BYTES + 64 + CHECKSUM_BYTES;

const UNTRUSTED: &str = "untrusted comment: ";

const TRUSTED: &str = "trusted comment: ";

/// A secret key of minisign without a passphrase: nobody can enter one when a daemon starts.
pub struct SigningKey {
    id: [u8; ID_BYTES],
    key: ed25519_dalek::SigningKey,
}

/// The public half of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey {
    id: [u8; ID_BYTES],
    key: [u8; 32],
}

/// Why a text is not a secret key. No message quotes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoKey {
    /// Not two lines, or the second is not base64 with the right length and marks.
    #[error("is not a secret key of minisign")]
    Malformed,
    #[error(
        "has a passphrase, and nobody can enter it here: remove the passphrase with `minisign -C -W`"
    )]
    Passphrase,
    #[error("is damaged")]
    Damaged,
}

impl SigningKey {
    /// Derives the key from a seed, which must come from the operating system's random generator.
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        let key = ed25519_dalek::SigningKey::from_bytes(seed);
        let mut id = [0; ID_BYTES];
        // minisign uses a random id. A digest of the public key distinguishes keys as well.
        let digest = Blake2b512::digest(key.verifying_key().as_bytes());
        for (byte, of_digest) in id.iter_mut().zip(digest) {
            *byte = of_digest;
        }
        Self { id, key }
    }

    pub fn public(&self) -> PublicKey {
        PublicKey {
            id: self.id,
            key: self.key.verifying_key().to_bytes(),
        }
    }

    /// The content of the `.minisig` file for a file of these bytes. As in minisign, its trusted
    /// comment has the time and the file's name.
    pub fn sign(&self, bytes: &[u8], file_name: &str, time: Moment) -> String {
        let signature = self.key.sign(&Blake2b512::digest(bytes)).to_bytes();
        let comment: String = format!("timestamp:{}\tfile:{file_name}\thashed", time.seconds())
            .chars()
            .filter(|character| *character == '\t' || !character.is_control())
            .collect();
        let global = self.key.sign(&[&signature, comment.as_bytes()].concat());
        let line =
            Base64::encode_string(&[ED25519_PREHASHED.as_slice(), &self.id, &signature].concat());
        let global = Base64::encode_string(&global.to_bytes());
        format!(
            "{UNTRUSTED}signature from a fedicensus key\n{line}\n{TRUSTED}{comment}\n{global}\n"
        )
    }

    /// The secret key in the format for minisign's `-s`.
    fn to_file(&self) -> Zeroizing<String> {
        let secret = Zeroizing::new(self.key.to_keypair_bytes());
        let bytes = Zeroizing::new(
            [
                ED25519.as_slice(),
                NO_PASSPHRASE,
                CHECKSUM,
                &[0; PASSPHRASE_BYTES],
                &self.id,
                secret.as_slice(),
                &checksum(&self.id, &secret),
            ]
            .concat(),
        );
        let line = Zeroizing::new(Base64::encode_string(&bytes));
        Zeroizing::new(format!(
            "{UNTRUSTED}fedicensus secret key {}, without a passphrase\n{}\n",
            self.public().id(),
            *line
        ))
    }

    fn parse(content: &str) -> Result<Self, NoKey> {
        let line = content
            .strip_prefix(UNTRUSTED)
            .and_then(|content| content.lines().nth(1))
            .ok_or(NoKey::Malformed)?;
        let bytes =
            Zeroizing::new(Base64::decode_vec(line).map_err(|_no_base64| NoKey::Malformed)?);
        let mut rest = bytes.as_slice();
        if rest.len() != SECRET_BYTES {
            return Err(NoKey::Malformed);
        }
        if take::<2>(&mut rest)? != ED25519 {
            return Err(NoKey::Malformed);
        }
        if take::<2>(&mut rest)? != NO_PASSPHRASE {
            return Err(NoKey::Passphrase);
        }
        if take::<2>(&mut rest)? != CHECKSUM {
            return Err(NoKey::Malformed);
        }
        take::<PASSPHRASE_BYTES>(&mut rest)?;
        let id = *take::<ID_BYTES>(&mut rest)?;
        let secret = take::<64>(&mut rest)?;
        let sum = take::<CHECKSUM_BYTES>(&mut rest)?;
        // minisign writes no checksum for a key without a passphrase.
        if *sum != NO_CHECKSUM && checksum(&id, secret) != *sum {
            return Err(NoKey::Damaged);
        }
        // Checks that the public half belongs to the secret one.
        let key = ed25519_dalek::SigningKey::from_keypair_bytes(secret)
            .map_err(|_halves_differ| NoKey::Damaged)?;
        Ok(Self { id, key })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.public().id())
            .finish_non_exhaustive()
    }
}

impl PublicKey {
    /// The key's id as minisign shows it: 16 hex digits. minisign before 0.12 omits leading zeros.
    pub fn id(&self) -> String {
        format!("{:016X}", u64::from_le_bytes(self.id))
    }

    /// The content of the file for minisign's `-p`.
    pub fn to_file(&self) -> String {
        format!("{UNTRUSTED}minisign public key {}\n{self}\n", self.id())
    }
}

/// The text for minisign's `-P`.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [ED25519.as_slice(), &self.id, &self.key].concat();
        f.write_str(&Base64::encode_string(&bytes))
    }
}

/// Takes the next `N` bytes.
fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], NoKey> {
    let (taken, left) = rest.split_first_chunk().ok_or(NoKey::Malformed)?;
    *rest = left;
    Ok(taken)
}

/// Checksum of a secret key, to detect damage.
fn checksum(id: &[u8; ID_BYTES], secret: &[u8; 64]) -> [u8; CHECKSUM_BYTES] {
    Blake2b::<U32>::new()
        .chain_update(ED25519)
        .chain_update(id)
        .chain_update(secret)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests;
