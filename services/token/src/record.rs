//! TXT records: the keys that a domain publishes.
//!
//! It takes the records of one name in the order received, and returns the keys among the first
//! ten. A record that is not exactly one key in hex is ignored, but counts among the ten, so that
//! padding causes no extra work.

use thiserror::Error;

use crate::key::{KEY_BYTES, KeyHash, PublicKey, Signature};

/// Most records that are tried. Each costs a verification, and ten keys at once are more than
/// enough to replace one by another.
pub const RECORDS_TRIED_MAX: usize = 10;

const KEY_DIGITS: usize = 2 * KEY_BYTES;

/// A TXT record's content, cut off after one byte more than a key, which suffices to show that it
/// is not a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxtRecord(Vec<u8>);

impl TxtRecord {
    /// The record with these strings, joined (RFC 1035 §3.3.14).
    pub fn from_strings<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Self {
        let mut content = Vec::new();
        for string in strings {
            let room = KEY_DIGITS.saturating_add(1).saturating_sub(content.len());
            content.extend(string.as_ref().iter().take(room));
        }
        Self(content)
    }
}

/// The keys that may have signed a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    keys: Vec<PublicKey>,
    malformed: usize,
    untried: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "none of the domain's keys has signed this ({tried} tried; records without a valid key: {malformed}; records beyond the first {RECORDS_TRIED_MAX}: {untried}): publish the public key of the one that signs as a TXT record, 64 hex digits and nothing else, and wait until DNS has it"
)]
pub struct NotSigned {
    /// Number of keys that were tried.
    pub tried: usize,
    /// Number of records among the first ten without a key.
    pub malformed: usize,
    /// Number of records after the first ten.
    pub untried: usize,
}

impl Candidates {
    /// The keys in the first [`RECORDS_TRIED_MAX`] of these records.
    pub fn from_records(records: &[TxtRecord]) -> Self {
        let looked_at = records.iter().take(RECORDS_TRIED_MAX);
        let keys: Vec<_> = looked_at
            .clone()
            .filter_map(|record| PublicKey::from_hex(&record.0).ok())
            .collect();
        Self {
            malformed: looked_at.count().saturating_sub(keys.len()),
            untried: records.len().saturating_sub(RECORDS_TRIED_MAX),
            keys,
        }
    }

    pub fn one(key: PublicKey) -> Self {
        Self {
            keys: vec![key],
            malformed: 0,
            untried: 0,
        }
    }

    /// The keys, in the order of the attempts.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// The hash of the first key that made `signature` over `message`.
    pub(crate) fn signer(
        &self,
        message: &[u8],
        signature: &Signature,
    ) -> Result<KeyHash, NotSigned> {
        self.keys
            .iter()
            .find(|key| key.has_signed(message, signature))
            .map(|key| key.hash())
            .ok_or(NotSigned {
                tried: self.keys.len(),
                malformed: self.malformed,
                untried: self.untried,
            })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::SecretKey;

    fn key(number: u8) -> SecretKey {
        SecretKey::from_seed(&[number; KEY_BYTES])
    }

    fn record(text: &str) -> TxtRecord {
        TxtRecord::from_strings([text])
    }

    fn of(number: u8) -> TxtRecord {
        record(&key(number).public().to_string())
    }

    fn signer(records: &[TxtRecord]) -> Result<KeyHash, NotSigned> {
        let signature = key(1).sign(b"message");
        Candidates::from_records(records).signer(b"message", &signature)
    }

    #[test]
    fn a_record_is_one_key_in_hex_of_either_case_and_nothing_else() {
        let digits = key(1).public().to_string();
        let hash = key(1).public().hash();
        assert_eq!(signer(&[record(&digits)]), Ok(hash));
        assert_eq!(signer(&[record(&digits.to_uppercase())]), Ok(hash));
        let (first, second) = digits.split_at(7);
        let strings = TxtRecord::from_strings([first, "", second]);
        assert_eq!(signer(&[strings]), Ok(hash));
        for wrong in [
            String::new(),
            format!("{digits} "),
            format!("\"{digits}\""),
            format!("k={digits}"),
            format!("{digits}{digits}"),
            format!("{digits}{}", "x".repeat(70_000)),
            digits.split_at(63).0.to_owned(),
        ] {
            let expect = NotSigned {
                tried: 0,
                malformed: 1,
                untried: 0,
            };
            assert_eq!(signer(&[record(&wrong)]), Err(expect), "{wrong:.80}");
        }
    }

    #[test]
    fn any_of_the_first_ten_records_may_hold_the_key() {
        for place in 0..RECORDS_TRIED_MAX {
            let mut records: Vec<_> = (2..11).map(of).collect();
            records.insert(place, of(1));
            assert_eq!(signer(&records), Ok(key(1).public().hash()), "{place}");
        }
    }

    #[test]
    fn the_eleventh_record_is_not_tried_even_when_the_others_hold_no_key() {
        let mut records: Vec<_> = (2..11).map(of).collect();
        records.push(record("no key"));
        records.extend([of(1), of(1)]);
        let expect = NotSigned {
            tried: 9,
            malformed: 1,
            untried: 2,
        };
        assert_eq!(signer(&records), Err(expect));
    }

    #[test]
    fn the_order_of_the_records_is_kept() {
        let candidates = Candidates::from_records(&[of(3), record(""), of(1), of(2)]);
        let expect = [3, 1, 2].map(|number| key(number).public());
        assert_eq!(candidates.keys(), expect);
    }

    proptest! {
        #[test]
        fn how_a_record_is_cut_into_strings_changes_nothing(
            content in proptest::collection::vec(any::<u8>(), 0..200),
            cut in 0_usize..200,
        ) {
            let (first, second) = content.split_at(cut.min(content.len()));
            prop_assert_eq!(
                TxtRecord::from_strings([first, second]),
                TxtRecord::from_strings([&content])
            );
        }
    }
}
