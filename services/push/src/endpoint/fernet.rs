//! Fernet: short texts, encrypted and authenticated under a key that only this service has
//! (<https://github.com/fernet/spec>). Time stamps are not checked, since endpoints stay valid
//! until the client gives them up.

use std::fmt;

use aes::Aes128;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _};
use data_encoding::BASE64URL;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use thiserror::Error;

/// Longest text that is decrypted: an endpoint has fewer than 200 characters, a message's id some
/// 250.
pub const FERNET_CHARS_MAX: usize = 1024;

const VERSION: u8 = 0x80;
const TIME_BYTES: usize = 8;
const IV_BYTES: usize = 16;
const MAC_BYTES: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a key is 32 bytes in URL-safe base64, 44 characters with its padding")]
pub struct NoKey;

#[derive(Clone)]
struct Key {
    signing: [u8; 16],
    encryption: [u8; 16],
}

/// Keys: the first encrypts, all decrypt, so that a new one can precede the old ones.
#[derive(Clone)]
pub struct Keys {
    first: Key,
    others: Vec<Key>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Key {
    fn parse(text: &str) -> Result<Self, NoKey> {
        let bytes = BASE64URL.decode(text.as_bytes()).or(Err(NoKey))?;
        let bytes: [u8; 32] = bytes.try_into().or(Err(NoKey))?;
        let (signing, encryption) = bytes.split_at(16);
        Ok(Self {
            signing: signing.try_into().or(Err(NoKey))?,
            encryption: encryption.try_into().or(Err(NoKey))?,
        })
    }

    fn mac(&self, bytes: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.signing).ok()?;
        mac.update(bytes);
        Some(mac)
    }

    fn decrypt(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let signed_bytes = bytes.len().checked_sub(MAC_BYTES)?;
        let (signed, mac) = bytes.split_at_checked(signed_bytes)?;
        self.mac(signed)?.verify_slice(mac).ok()?;
        let (version, rest) = signed.split_first()?;
        let (_, rest) = rest.split_at_checked(TIME_BYTES)?;
        let (iv, body) = rest.split_at_checked(IV_BYTES)?;
        if *version != VERSION {
            return None;
        }
        let cipher = cbc::Decryptor::<Aes128>::new_from_slices(&self.encryption, iv).ok()?;
        cipher.decrypt_padded_vec_mut::<Pkcs7>(body).ok()
    }
}

impl Keys {
    /// Parses keys as an operator writes them: one or several, separated by commas, with or without
    /// square brackets and quotes.
    pub fn parse(text: &str) -> Result<Self, NoKey> {
        let plain = text.replace(['[', ']', '"', '\'', ' '], "");
        let mut keys = plain.split(',').map(Key::parse);
        let first = keys.next().ok_or(NoKey)??;
        let others = keys.collect::<Result<_, _>>()?;
        Ok(Self { first, others })
    }

    /// A new key, from 32 random bytes.
    pub fn text_of(bytes: &[u8; 32]) -> String {
        BASE64URL.encode(bytes)
    }

    /// Encrypts a text at this time, in seconds since 1970, with 16 random bytes.
    pub fn encrypt(&self, plain: &[u8], now_s: u64, iv: &[u8; IV_BYTES]) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend(now_s.to_be_bytes());
        bytes.extend(iv);
        let key = &self.first;
        let cipher = cbc::Encryptor::<Aes128>::new(&key.encryption.into(), iv.into());
        bytes.extend(cipher.encrypt_padded_vec_mut::<Pkcs7>(plain));
        if let Some(mac) = key.mac(&bytes) {
            bytes.extend(mac.finalize().into_bytes());
        }
        BASE64URL.encode(&bytes)
    }

    /// Decrypts a text, padded or not; `None` if no key fits.
    pub fn decrypt(&self, text: &str) -> Option<Vec<u8>> {
        if text.len() > FERNET_CHARS_MAX {
            return None;
        }
        let mut padded = text.trim_end_matches('=').to_owned();
        while !padded.len().is_multiple_of(4) {
            padded.push('=');
        }
        let bytes = BASE64URL.decode(padded.as_bytes()).ok()?;
        let mut keys = std::iter::once(&self.first).chain(&self.others);
        keys.find_map(|key| key.decrypt(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key, text and token of the specification's `generate.json` and `verify.json`.
    const KEY: &str = "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4=";
    const TOKEN: &str = "gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA==";
    const NOW_S: u64 = 499_162_800;

    fn keys() -> Keys {
        Keys::parse(KEY).unwrap()
    }

    #[test]
    fn the_specifications_vectors_hold() {
        let iv = std::array::from_fn(|place| u8::try_from(place).unwrap());
        assert_eq!(keys().encrypt(b"hello", NOW_S, &iv), TOKEN);
        assert_eq!(keys().decrypt(TOKEN).unwrap(), b"hello");
        assert_eq!(
            keys().decrypt(TOKEN.trim_end_matches('=')).unwrap(),
            b"hello"
        );
    }

    /// The tokens of the specification's `invalid.json` that are not about time.
    #[test]
    fn tokens_that_were_changed_are_refused() {
        for token in [
            // The MAC, a missing one, base64, the version, the block length, the padding.
            "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-szkFVzXTuGb4hR8AKtwcaX1YdykQUFBQUFBQUFBQQ==",
            "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPA==",
            "%%%%%%%%%%%%%AECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-szkFVzXTuGb4hR8AKtwcaX1YdykRtfsH-p1YsUD2Q==",
            "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPOm73QeoCk9uGib28Xe5vz6oxq5nmxbx_v7mrfyudzUm",
            "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0ODz4LEpdELGQAad7aNEHbf-JkLPIpuiYRLQ3RtXatOYREu2FWke6CnJNYIbkuKNqOhw==",
            "",
            "gA",
        ] {
            assert_eq!(keys().decrypt(token), None, "{token}");
        }
        for place in 0..TOKEN.len() - 2 {
            let mut changed = TOKEN.as_bytes().to_vec();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(keys().decrypt(&changed), None, "{place}");
        }
        assert_eq!(keys().decrypt(&"A".repeat(FERNET_CHARS_MAX + 4)), None);
    }

    #[test]
    fn the_first_key_encrypts_and_the_old_ones_still_decrypt() {
        let new = Keys::text_of(&[5; 32]);
        let both = Keys::parse(&format!(r#"["{new}", "{KEY}"]"#)).unwrap();
        assert_eq!(both.decrypt(TOKEN).unwrap(), b"hello");
        let token = both.encrypt(b"later", NOW_S, &[1; 16]);
        assert_eq!(keys().decrypt(&token), None);
        assert_eq!(
            Keys::parse(&new).unwrap().decrypt(&token).unwrap(),
            b"later"
        );
        for text in ["", "[]", "AAAA", &format!("{KEY},")] {
            assert!(Keys::parse(text).is_err(), "{text}");
        }
    }
}
