//! How rules name a submitter's key.

use std::fmt;

/// SHA-256 of a raw 32-byte Ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// Parses 64 hexadecimal digits of either case. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return None;
        };
        let mut hash = [0; 32];
        if pairs.len() != hash.len() {
            return None;
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = (digit(*high)? << 4) | digit(*low)?;
        }
        Some(Self(hash))
    }
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

/// 64 digits in lower case.
impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_64_digits_of_either_case() {
        let digits = "0123456789abcdef".repeat(4);
        let hash = KeyHash::parse(&digits).unwrap();
        assert_eq!(hash.0[..4], [0x01, 0x23, 0x45, 0x67]);
        assert_eq!(hash.to_string(), digits);
        assert_eq!(KeyHash::parse(&digits.to_uppercase()), Some(hash));
    }

    #[test]
    fn what_is_not_quite_a_hash_is_none() {
        let digits = "0123456789abcdef".repeat(4);
        for text in [
            "",
            &"a".repeat(63),
            &"a".repeat(62),
            &format!("{digits}0"),
            &format!("{digits}00"),
            &digits.replace('f', "g"),
            &digits.replacen("01", "+1", 1),
            &digits.replacen("0123", "0x23", 1),
            &digits.replacen("01", "é", 1),
        ] {
            assert_eq!(KeyHash::parse(text), None, "{text}");
        }
    }
}
