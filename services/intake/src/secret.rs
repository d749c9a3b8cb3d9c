//! Proofs by a secret: the host publishes a hash, and only the sender of its secret can act.
//!
//! The record at `_fedicensus.HOST` is [`PREFIX`] and 64 hex digits in lower case: the SHA-256 of
//! the ASCII text `fedicensus/v1/proof HOST SECRET`, with one space between the words and nothing
//! after them. HOST is the canonical name, and SECRET 64 hex digits in lower case. The first word
//! keeps these hashes apart from all others of the census.

use std::fmt;

use protocol::{Host, escaped};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use token::record::RECORDS_TRIED_MAX;

use crate::wire::HashInHex;

/// Begins every proof in a record or file.
pub const PREFIX: &str = "fedicensus-proof=";

/// A wish that anyone could repeat while its record stays.
const OPT_OUT: &str = "fedicensus-proof=opt-out";

/// Records and bytes of a record that an answer repeats: enough to recognise a mistake.
const SHOWN_MAX: usize = 5;
const SHOWN_BYTES_MAX: usize = 100;

/// 32 random bytes of an owner. They are never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub HashInHex);

impl Secret {
    /// The hash that the host's record must have.
    pub fn hash(&self, host: &Host) -> [u8; 32] {
        let secret = hex::encode(self.0.0);
        Sha256::digest(format!("fedicensus/v1/proof {host} {secret}")).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The record with this hash.
pub fn record(hash: &[u8; 32]) -> String {
    format!("{PREFIX}{}", hex::encode(hash))
}

/// Checks that `wanted` is the only record with a hash among all TXT records of `name`, in any
/// order. With two of them, a secret that was used up could replace its successor and work again.
///
/// # Errors
/// Says which record was looked for, where, what was found, and what to do.
pub fn check(records: &[String], wanted: &str, name: &str) -> Result<(), String> {
    let is_hash = |text: &str| HashInHex::try_from(text.to_owned()).is_ok();
    let is_other =
        |record: &String| record != wanted && record.strip_prefix(PREFIX).is_some_and(is_hash);
    let problem = if records.len() > RECORDS_TRIED_MAX {
        "publish at most ten TXT records there"
    } else if !records.iter().any(|record| record == wanted) {
        "publish it, and wait until DNS has it: an answer without it is remembered for an hour at most"
    } else if records.iter().any(is_other) {
        "remove the other records with a hash"
    } else if records.iter().any(|record| record == OPT_OUT) {
        "first remove `fedicensus-proof=opt-out` there, because anyone can point the census to it"
    } else {
        return Ok(());
    };
    Err(format!(
        "the TXT record `{wanted}` was looked for at {name}, and DNS has {}: {problem}",
        found(records)
    ))
}

fn found(records: &[String]) -> String {
    let shown: Vec<_> = records
        .iter()
        .take(SHOWN_MAX)
        .map(|record| format!("`{}`", escaped(record.as_bytes(), SHOWN_BYTES_MAX)))
        .collect();
    match records.len().saturating_sub(shown.len()) {
        _ if shown.is_empty() => "no TXT record there".to_owned(),
        0 => format!("{} there", shown.join(", ")),
        more => format!("{} and {more} more there", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "_fedicensus.a.example";

    fn wanted(host: &str) -> String {
        let secret = Secret(HashInHex([0; 32]));
        record(&secret.hash(&Host::parse(host).unwrap()))
    }

    /// Checks what is said of these records; an empty text means that they prove the host.
    fn says(records: &[&str], expect: &str) {
        let records: Vec<_> = records.iter().map(|&record| record.to_owned()).collect();
        let said = check(&records, &wanted("a.example"), NAME).err();
        let said = said.unwrap_or_default();
        assert!(said.contains(expect), "{records:?}: {said}");
        assert_eq!(said.is_empty(), expect.is_empty(), "{records:?}: {said}");
    }

    /// Computed with `printf 'fedicensus/v1/proof %s %s' a.example 000… | sha256sum`.
    #[test] // S57
    fn a_record_is_what_sha256sum_prints_of_host_and_secret() {
        assert_eq!(wanted("a.example"), VECTOR);
        assert_eq!(wanted("A.Example."), VECTOR);
        assert_ne!(wanted("b.example"), VECTOR, "another host's");
        let secret = Secret(HashInHex([0; 32]));
        assert_eq!(format!("{secret:?}"), "Secret", "no log has it");
    }
    const VECTOR: &str =
        "fedicensus-proof=919f2cfb6158a987ced5192d7daf06a6b8f2bb795ca4e311fb53dba113a3e1d2";

    #[test] // S57
    fn only_one_record_with_a_hash_proves_a_host_in_any_order() {
        let (own, other) = (wanted("a.example"), wanted("b.example"));
        let (own, other) = (own.as_str(), other.as_str());
        let long = format!("{own}0");
        let long = long.as_str();
        says(&[own], "");
        for records in [["v=spf1 -all", own], [own, "v=spf1 -all"], [long, own]] {
            says(&records, "");
        }
        says(&[], "DNS has no TXT record there: publish it");
        says(&[other], other);
        says(&[long], "publish it");
        for records in [[own, other], [other, own]] {
            says(&records, "remove the other records");
        }
        for records in [[own, OPT_OUT], [OPT_OUT, own]] {
            says(&records, "first remove `fedicensus-proof=opt-out`");
        }
        let mut crowded = vec!["x"; RECORDS_TRIED_MAX];
        crowded.push(own);
        says(&crowded, "at most ten");
        crowded.rotate_right(1);
        says(&crowded, "at most ten");
    }

    #[test]
    fn what_dns_has_is_shown_bounded_and_escaped() {
        let records = ["\u{fffd}\u{202e}", &"y".repeat(128), "1", "2", "3", "4"];
        let records = records.map(str::to_owned);
        let said = check(&records, "fedicensus-proof=x", NAME).unwrap_err();
        assert!(said.contains(NAME) && said.contains("`fedicensus-proof=x`"));
        assert!(said.contains("`\\xef\\xbf\\xbd\\xe2\\x80\\xae`"), "{said}");
        assert!(said.contains("`3` and 1 more there"), "{said}");
        assert!(!said.contains(&"y".repeat(101)), "{said}");
    }
}
