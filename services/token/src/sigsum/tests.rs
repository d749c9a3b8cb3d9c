use proptest::prelude::*;

use super::*;
use crate::key::PublicKey;
use crate::lookup::{Lookup, Step, TxtAnswer};
use crate::record::TxtRecord;
use crate::tests::{
    KEY_HASH, LOG_KEY, PUBLIC_KEY, VALUE, keys as known_keys, log_key, secret_key,
    with_one_bit_changed,
};

fn read(value: &[u8]) -> Result<Option<SigsumToken>, SigsumError> {
    SigsumToken::parse(value, TestDomain::Allow)
}

fn known_token() -> SigsumToken {
    read(VALUE.as_bytes()).unwrap().unwrap()
}

#[test]
fn the_known_token_verifies_and_is_made_again() {
    let token = known_token();
    assert_eq!(token.domain.as_str(), "test.sigsum.org");
    assert_eq!(secret_key().public().to_string(), PUBLIC_KEY);
    let submitter = token.verify(&known_keys(), log_key()).unwrap();
    assert_eq!(submitter.domain.as_str(), "test.sigsum.org");
    assert_eq!(submitter.key_hash.to_string(), KEY_HASH);
    let made = SigsumToken::sign(token.domain, log_key(), &secret_key());
    assert_eq!(made.to_string(), VALUE);
}

#[test]
fn what_is_signed_are_59_bytes() {
    let bytes = signed_bytes(log_key());
    assert_eq!(bytes.len(), 59);
    assert_eq!(bytes[..26], *b"sigsum.org/v1/submit-token");
    assert_eq!(bytes[26], 0);
    assert_eq!(hex::encode(&bytes[27..]), LOG_KEY);
}

#[test]
fn case_matters_neither_in_the_digits_nor_in_the_domain() {
    assert_eq!(
        read(VALUE.to_uppercase().as_bytes()),
        Ok(Some(known_token()))
    );
}

#[test]
fn an_empty_value_is_no_token() {
    assert_eq!(read(b""), Ok(None));
}

#[test]
fn what_is_not_exactly_of_the_form_is_refused() {
    let (domain, digits) = VALUE.split_once(' ').unwrap();
    let without = |count| digits.split_at(count).1;
    let shape = SigsumError::Shape;
    let signature = SigsumError::Signature;
    for (value, expect) in [
        (domain.to_owned(), shape),
        (digits.to_owned(), shape),
        (format!("{domain}  {digits}"), shape),
        (format!("{domain} {digits} "), shape),
        (format!(" {domain} {digits}"), shape),
        (format!("{domain} {digits} {digits}"), shape),
        (format!("{domain}\t{digits}"), shape),
        (format!("  {digits}"), shape),
        (format!(" {digits}"), SigsumError::NoDomain),
        (" ".to_owned(), SigsumError::NoDomain),
        (format!("{domain} "), signature),
        (format!("{domain} {}", without(1)), signature),
        (format!("{domain} {}", without(2)), signature),
        (format!("{domain} {digits}00"), signature),
        (format!("{domain} {digits}\n"), signature),
        (format!("{domain} 0x{}", without(2)), signature),
        (format!("{domain} {}g", without(1)), signature),
        (
            format!("192.0.2.1 {digits}"),
            SigsumError::Domain(DomainError::NotAName(protocol::HostError::Address)),
        ),
        (
            format!("{} {digits}", "a".repeat(VALUE_BYTES_MAX - 128)),
            SigsumError::TooLong,
        ),
    ] {
        assert_eq!(read(value.as_bytes()), Err(expect), "{value:.100}");
    }
}

#[test]
fn the_test_domain_is_refused_unless_allowed() {
    let below = format!("a.{VALUE}");
    for value in [VALUE, &below] {
        assert_eq!(
            SigsumToken::parse(value.as_bytes(), TestDomain::Refuse),
            Err(SigsumError::Domain(DomainError::Test))
        );
        assert!(SigsumToken::parse(value.as_bytes(), TestDomain::Allow).is_ok());
    }
}

#[test]
fn a_token_for_another_log_does_not_verify() {
    let other = LogKey::from_hex(PUBLIC_KEY.as_bytes()).unwrap();
    assert!(known_token().verify(&known_keys(), other).is_err());
}

/// The whole path from a header's value to a submitter: DNS has one domain's key under the present
/// label, and nothing else.
fn vouched(value: &[u8], domain: &str, log_key: LogKey) -> Option<Submitter> {
    let token = read(value).ok().flatten()?;
    let mut lookup = Lookup::begin(token.form(), token.domain.clone());
    let records = loop {
        let answer = if lookup.name() == format!("_sigsum_v1.{domain}") {
            TxtAnswer::Records(vec![TxtRecord::from_strings([PUBLIC_KEY])])
        } else {
            TxtAnswer::NotFound(crate::NotFound::NoSuchName)
        };
        match lookup.answer(answer) {
            Step::Ask(next) => lookup = next,
            Step::Found(records) => break records,
            Step::Ended(_) => return None,
        }
    };
    token
        .verify(&Candidates::from_records(&records), log_key)
        .ok()
}

#[test]
fn no_bit_of_the_known_token_can_be_changed() {
    let same = known_token();
    let mut only_the_case = 0;
    assert!(vouched(VALUE.as_bytes(), "test.sigsum.org", log_key()).is_some());
    for changed in with_one_bit_changed(VALUE.as_bytes()) {
        if changed.eq_ignore_ascii_case(VALUE.as_bytes()) {
            assert_eq!(read(&changed), Ok(Some(same.clone())));
            only_the_case += 1;
        } else {
            assert_eq!(
                vouched(&changed, "test.sigsum.org", log_key()),
                None,
                "{changed:?}"
            );
        }
    }
    let letters = VALUE.bytes().filter(u8::is_ascii_alphabetic).count();
    assert_eq!(only_the_case, letters);
}

#[test]
fn no_bit_of_the_signature_or_of_a_key_can_be_changed() {
    let token = known_token();
    let digits = VALUE.split_once(' ').unwrap().1;
    for changed in with_one_bit_changed(&hex::decode(digits).unwrap()) {
        let changed = SigsumToken {
            domain: token.domain.clone(),
            signature: Signature::from_hex(hex::encode(changed).as_bytes()).unwrap(),
        };
        assert!(changed.verify(&known_keys(), log_key()).is_err());
    }
    for changed in with_one_bit_changed(&log_key().to_bytes()) {
        let log_key = LogKey::from_hex(hex::encode(changed).as_bytes()).unwrap();
        assert!(token.verify(&known_keys(), log_key).is_err());
    }
    for changed in with_one_bit_changed(&secret_key().public().to_bytes()) {
        if let Ok(key) = PublicKey::from_hex(hex::encode(changed).as_bytes()) {
            assert!(token.verify(&Candidates::one(key), log_key()).is_err());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_made_is_read_and_verifies_and_no_bit_of_it_can_be_changed(
        seed in any::<[u8; 32]>(),
        log_seed in any::<[u8; 32]>(),
        domain in "[a-z][a-z0-9]{0,20}\\.example",
        changed in any::<proptest::sample::Selector>(),
    ) {
        let key = SecretKey::from_seed(&seed);
        let log_key = LogKey::from_hex(hex::encode(log_seed).as_bytes()).unwrap();
        let token = SigsumToken::sign(Host::parse(&domain).unwrap(), log_key, &key);
        let value = token.to_string().into_bytes();
        prop_assert_eq!(read(&value), Ok(Some(token.clone())));
        let keys = Candidates::one(key.public());
        prop_assert_eq!(token.verify(&keys, log_key).unwrap().key_hash, key.public().hash());
        if let Ok(Some(read)) = read(&changed.select(with_one_bit_changed(&value)))
            && read != token && read.domain == token.domain
        {
            prop_assert!(read.verify(&keys, log_key).is_err());
        }
    }

    #[test]
    fn no_bytes_break_it(value in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(Some(token)) = read(&value) {
            prop_assert_eq!(read(token.to_string().as_bytes()), Ok(Some(token)));
        }
    }
}
