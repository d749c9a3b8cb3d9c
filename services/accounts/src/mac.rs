//! Keyed hashes.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

hide!(Key);

pub(crate) struct Key(Zeroizing<[u8; 32]>);

impl Key {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self(Zeroizing::new(secret))
    }

    /// The hash of these parts, each preceded by its length, so that different splits have
    /// different hashes.
    pub(crate) fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// Whether this is the hash of the parts, in constant time.
    pub(crate) fn is_hash(&self, parts: &[&[u8]], hash: &[u8]) -> bool {
        self.mac(parts).verify_slice(hash).is_ok()
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        #[expect(
            clippy::expect_used,
            reason = "HMAC takes keys of every length, and has no other constructor"
        )]
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_slice())
            .expect("invariant: HMAC takes keys of every length");
        for part in parts {
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            mac.update(&length.to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let key = Key::new([1; 32]);
        let hash = key.hash(&[b"ab", b"c"]);
        assert_ne!(hash, key.hash(&[b"a", b"bc"]));
        assert_ne!(hash, Key::new([2; 32]).hash(&[b"ab", b"c"]));
        assert!(key.is_hash(&[b"ab", b"c"], &hash));
        assert!(!key.is_hash(&[b"ab", b"c"], &hash[..31]));
        assert!(!key.is_hash(&[b"ab", b"d"], &hash));
    }
}
