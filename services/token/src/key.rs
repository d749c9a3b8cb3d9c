//! Keys, signatures and their hex forms. Ed25519 throughout (RFC 8032), verified strictly.

use std::fmt;

use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

/// Bytes of a public key, of a secret key's seed and of a hash.
pub const KEY_BYTES: usize = 32;

pub const SIGNATURE_BYTES: usize = 64;

/// Why a text is not a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error("it is not 64 hex digits")]
    NotHex,
    /// The bytes are not a point of the curve, or one of the few for which anyone can sign.
    #[error("it is 64 hex digits, but not a usable Ed25519 public key")]
    NotAKey,
}

/// A public key as a domain publishes it: a point of the curve for which only the key's owner can
/// sign.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// A signing key. Dropping it wipes its bytes, and its debug output shows none.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

/// A signature with any content, verified or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; SIGNATURE_BYTES]);

/// The SHA-256 of a public key's 32 raw bytes, which identifies a submitter in rules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; KEY_BYTES]);

/// The key that identifies a Sigsum log, or a census in its place. No signature is verified with
/// it; Sigsum's tokens sign it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LogKey([u8; KEY_BYTES]);

impl PublicKey {
    /// Parses 64 hex digits of either case, and nothing else.
    pub fn from_hex(digits: &[u8]) -> Result<Self, KeyError> {
        let bytes = bytes_of_hex(digits).ok_or(KeyError::NotHex)?;
        VerifyingKey::from_bytes(&bytes)
            .ok()
            .filter(|key| !key.is_weak())
            .map(Self)
            .ok_or(KeyError::NotAKey)
    }

    /// The 32 raw bytes.
    pub fn to_bytes(self) -> [u8; KEY_BYTES] {
        self.0.to_bytes()
    }

    /// The hash that identifies it in rules.
    pub fn hash(self) -> KeyHash {
        KeyHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Whether this key made `signature` over `message`. Strict: a message has only one valid
    /// signature, and points of small order are rejected.
    pub fn has_signed(&self, message: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

impl SecretKey {
    /// Derives the key from a seed (RFC 8032 §5.1.5). The seed is secret: draw it from the
    /// operating system.
    pub fn from_seed(seed: &[u8; KEY_BYTES]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The seed, for the key file.
    pub(crate) fn to_seed(&self) -> Zeroizing<[u8; KEY_BYTES]> {
        Zeroizing::new(self.0.to_bytes())
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).to_bytes())
    }
}

impl Signature {
    /// Parses 128 hex digits of either case, and nothing else.
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        bytes_of_hex(digits).map(Self)
    }
}

impl KeyHash {
    /// The 32 raw bytes.
    pub fn to_bytes(self) -> [u8; KEY_BYTES] {
        self.0
    }
}

impl LogKey {
    /// Parses 64 hex digits of either case, and nothing else.
    pub fn from_hex(digits: &[u8]) -> Result<Self, KeyError> {
        bytes_of_hex(digits).map(Self).ok_or(KeyError::NotHex)
    }

    /// The 32 raw bytes.
    pub fn to_bytes(self) -> [u8; KEY_BYTES] {
        self.0
    }
}

/// Parses exactly `N` bytes as hex digits of either case.
fn bytes_of_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

/// Implements the display of public values as hex digits in lower case.
macro_rules! shown_as_hex {
    ($($name:ty),+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )+};
}

shown_as_hex!(PublicKey, Signature, KeyHash, LogKey);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests as known;

    #[test]
    fn a_public_key_is_64_hex_digits_of_either_case_and_nothing_else() {
        let digits = known::PUBLIC_KEY;
        let key = PublicKey::from_hex(digits.as_bytes()).unwrap();
        let without = |count| digits.split_at(count).1;
        assert_eq!(key.to_string(), digits);
        assert_eq!(
            PublicKey::from_hex(digits.to_uppercase().as_bytes()),
            Ok(key)
        );
        for wrong in [
            "",
            without(1),
            without(2),
            &format!("{digits}0"),
            &format!("{digits}00"),
            &format!(" {digits}"),
            &format!("{digits}\n"),
            &format!("0x{}", without(2)),
            &format!("+{}", without(1)),
            &format!("{}٣", without(2)),
        ] {
            assert_eq!(
                PublicKey::from_hex(wrong.as_bytes()),
                Err(KeyError::NotHex),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn what_is_no_point_and_what_everybody_can_sign_under_is_no_key() {
        // No x belongs to this y; the neutral point; a point of order eight.
        for digits in [
            format!("02{}", "00".repeat(31)),
            format!("01{}", "00".repeat(31)),
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a".to_owned(),
        ] {
            assert_eq!(
                PublicKey::from_hex(digits.as_bytes()),
                Err(KeyError::NotAKey),
                "{digits}"
            );
        }
    }

    /// Adds the group's order to the signature's second half: implementations that only reduce it
    /// accept both.
    #[test]
    fn a_signature_with_its_scalar_written_otherwise_is_refused() {
        const ORDER: [u8; 32] = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9,
            0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
        ];
        let key = known::secret_key();
        let signature = key.sign(b"message");
        assert!(key.public().has_signed(b"message", &signature));
        let mut other = signature.0;
        let mut carry = 0;
        for (byte, order) in other[32..].iter_mut().zip(ORDER) {
            let sum = u16::from(*byte) + u16::from(order) + carry;
            *byte = u8::try_from(sum & 0xff).unwrap();
            carry = sum >> 8;
        }
        assert_eq!(carry, 0);
        assert!(!key.public().has_signed(b"message", &Signature(other)));
    }

    /// The key's owner can make such a signature, whose first half is the neutral point;
    /// implementations that are not strict accept it.
    #[test]
    fn a_signature_with_a_point_of_small_order_is_refused() {
        use ed25519_dalek::Verifier as _;
        let digits = b"0100000000000000000000000000000000000000000000000000000000000000d5818d5ae371fbe92eee240fc62ffe248a43b21afb920d8f49d007811e608509";
        let signature = Signature::from_hex(digits).unwrap();
        let key = known::secret_key().public();
        let loosely = ed25519_dalek::Signature::from_bytes(&signature.0);
        assert!(key.0.verify(b"message", &loosely).is_ok());
        assert!(!key.has_signed(b"message", &signature));
    }

    #[test]
    fn the_hash_is_the_raw_keys_sha_256() {
        assert_eq!(
            known::secret_key().public().hash().to_string(),
            known::KEY_HASH
        );
    }

    #[test]
    fn a_secret_key_shows_nothing_of_itself() {
        let shown = format!("{:?}", known::secret_key());
        assert_eq!(shown, "SecretKey(not shown)");
    }
}
