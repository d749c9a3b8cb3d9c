//! The census's own messages: encrypted for one user agent (RFC 8291), signed by the census (RFC
//! 8292).

use data_encoding::BASE64URL_NOPAD;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use thiserror::Error;

use super::subscription::Subscription;

/// How long a signature is valid. Push services accept a day at most.
const SIGNATURE_SECONDS: i64 = 12 * 60 * 60;

pub const SECRET_BYTES: usize = 16;

/// Bytes of a public key: an uncompressed point.
pub const PUBLIC_KEY_BYTES: u8 = 65;

/// The declared record size. A message is one record (RFC 8291 §4).
const RECORD_BYTES: u32 = 4096;

/// Longest message in bytes, so that it is one record with its mark and its tag.
pub const MESSAGE_BYTES_MAX: usize = 3800;

/// Marks the last record (RFC 8188 §2).
const LAST_RECORD: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SealError {
    #[error("the signing key can't be used")]
    SigningKey,
    #[error("the subscription's keys can't be used")]
    UserKeys,
    #[error("the message can't be encrypted")]
    Encryption,
}

#[derive(Debug)]
pub struct Sender {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// Contact for push services (`sub`): a `mailto:` or `https:` URL.
    contact: String,
}

impl Sender {
    /// A new signing key, as PKCS #8.
    pub fn new_key() -> Result<Vec<u8>, SealError> {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map(|document| document.as_ref().to_vec())
            .or(Err(SealError::SigningKey))
    }

    pub fn new(key: &[u8], contact: String) -> Result<Self, SealError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &random)
            .or(Err(SealError::SigningKey))?;
        Ok(Self {
            pair,
            random,
            contact,
        })
    }

    /// The public key, as pages give it to browsers (`applicationServerKey`).
    pub fn public_key(&self) -> String {
        BASE64URL_NOPAD.encode(self.public_key_bytes())
    }

    pub fn public_key_bytes(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The `Authorization` header for endpoints of this origin, at this time in seconds since 1970.
    pub fn authorization(&self, origin: &str, now_s: i64) -> Result<String, SealError> {
        let part = |value: serde_json::Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let header = part(json!({"typ": "JWT", "alg": "ES256"}));
        let claims = part(json!({
            "aud": origin,
            "exp": now_s.saturating_add(SIGNATURE_SECONDS),
            "sub": self.contact,
        }));
        let signed = format!("{header}.{claims}");
        let signature = self
            .pair
            .sign(&self.random, signed.as_bytes())
            .or(Err(SealError::SigningKey))?;
        let signature = BASE64URL_NOPAD.encode(signature.as_ref());
        Ok(format!(
            "vapid t={signed}.{signature},k={}",
            self.public_key()
        ))
    }
}

/// Encrypts a message for a subscription (`aes128gcm`).
pub fn seal(message: &[u8], subscription: &Subscription) -> Result<Vec<u8>, SealError> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(SealError::Encryption);
    }
    let (their_key, secret) = (&subscription.public_key, &subscription.secret);
    if their_key.len() != usize::from(PUBLIC_KEY_BYTES) || secret.len() != SECRET_BYTES {
        return Err(SealError::UserKeys);
    }
    let random = SystemRandom::new();
    let mut salt = [0; 16];
    random.fill(&mut salt).or(Err(SealError::Encryption))?;
    let key = EphemeralPrivateKey::generate(&ECDH_P256, &random).or(Err(SealError::Encryption))?;
    let our_key = key.compute_public_key().or(Err(SealError::Encryption))?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, their_key);
    let shared = agree_ephemeral(key, &theirs, |shared| {
        let info: [&[u8]; 3] = [b"WebPush: info\0", their_key, our_key.as_ref()];
        expanded::<32>(&Salt::new(HKDF_SHA256, secret).extract(shared), &info)
    });
    let input = shared
        .or(Err(SealError::UserKeys))?
        .or(Err(SealError::Encryption))?;
    let prk = Salt::new(HKDF_SHA256, &salt).extract(&input);
    let sealed = encrypted(message, &prk).or(Err(SealError::Encryption))?;
    let mut body = salt.to_vec();
    body.extend(RECORD_BYTES.to_be_bytes());
    body.push(PUBLIC_KEY_BYTES);
    body.extend(our_key.as_ref());
    body.extend(sealed);
    Ok(body)
}

fn encrypted(message: &[u8], prk: &Prk) -> Result<Vec<u8>, Unspecified> {
    let key = expanded::<16>(prk, &[b"Content-Encoding: aes128gcm\0"])?;
    let nonce = expanded::<NONCE_LEN>(prk, &[b"Content-Encoding: nonce\0"])?;
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    let mut record = message.to_vec();
    record.push(LAST_RECORD);
    key.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::empty(),
        &mut record,
    )?;
    Ok(record)
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn expanded<const BYTES: usize>(prk: &Prk, info: &[&[u8]]) -> Result<[u8; BYTES], Unspecified> {
    let mut bytes = [0; BYTES];
    prk.expand(info, Bytes(BYTES))?.fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use web_push_native::Auth;
    use web_push_native::p256::SecretKey;

    use super::super::subscription::Filter;
    use super::*;
    use crate::endpoint::vapid::{Expected, signer};

    const ORIGIN: &str = "https://push.example";
    const NOW_S: i64 = 1_800_000_000;

    #[test]
    fn what_the_census_signs_holds() {
        let key = Sender::new_key().unwrap();
        let sender = Sender::new(&key, "mailto:census@example".to_owned()).unwrap();
        let authorization = sender.authorization(ORIGIN, NOW_S).unwrap();
        let expected = Expected {
            origin: ORIGIN,
            now_s: NOW_S,
        };
        let found = signer(Some(&authorization), None, expected)
            .unwrap()
            .unwrap();
        assert_eq!(BASE64URL_NOPAD.encode(&found), sender.public_key());
        assert_eq!(
            Sender::new(b"none", String::new()).err(),
            Some(SealError::SigningKey)
        );
    }

    #[test]
    fn only_the_subscriber_reads_a_message() {
        let secret_key = SecretKey::from_slice(&[7; 32]).unwrap();
        let public_key = secret_key.public_key().to_sec1_bytes().to_vec();
        let subscription = Subscription {
            endpoint: String::new(),
            public_key,
            secret: vec![3; SECRET_BYTES],
            filter: Filter::All,
        };
        let sealed = seal(b"hello", &subscription).unwrap();
        let auth = Auth::from([3; SECRET_BYTES]);
        let read = web_push_native::decrypt(sealed.clone(), &secret_key, &auth).unwrap();
        assert_eq!(read, b"hello");
        let other = SecretKey::from_slice(&[8; 32]).unwrap();
        assert!(web_push_native::decrypt(sealed, &other, &auth).is_err());
        let too_long = vec![0; MESSAGE_BYTES_MAX + 1];
        assert_eq!(seal(&too_long, &subscription), Err(SealError::Encryption));
        for broken in [
            Subscription {
                public_key: vec![4; 65],
                ..subscription.clone()
            },
            Subscription {
                secret: vec![3; 15],
                ..subscription
            },
        ] {
            assert_eq!(seal(b"hello", &broken), Err(SealError::UserKeys));
        }
    }
}
