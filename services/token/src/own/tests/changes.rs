//! No part of a token can be changed.

use proptest::prelude::*;

use super::*;
use crate::key::PublicKey;
use crate::lookup::{Lookup, NotFound, Step, TxtAnswer};
use crate::tests::with_one_bit_changed;

/// The whole path from a header's value to a verified token: DNS has one domain's key, and the
/// request matches the token's content.
fn vouched(value: &[u8], domain: &str) -> Option<Verified> {
    let token = read(value).ok().flatten()?;
    let lookup = Lookup::begin(token.form(), token.claim.domain.clone());
    let answer = if lookup.name() == format!("_fedicensus.{domain}") {
        TxtAnswer::Records(vec![TxtRecord::from_strings([PUBLIC_KEY])])
    } else {
        TxtAnswer::NotFound(NotFound::NoSuchName)
    };
    let Step::Found(records) = lookup.answer(answer) else {
        return None;
    };
    let wanted = Wanted {
        purpose: token.claim.purpose,
        ..opt_out(&token.claim.host)
    };
    let keys = Candidates::from_records(&records);
    token.verify(&keys, wanted).ok()
}

#[test]
fn no_bit_of_the_known_token_can_be_changed() {
    assert!(vouched(VALUE.as_bytes(), "example.org").is_some());
    for changed in with_one_bit_changed(VALUE.as_bytes()) {
        let text = String::from_utf8_lossy(&changed).into_owned();
        assert_eq!(vouched(&changed, "example.org"), None, "{text}");
    }
}

#[test]
fn no_bit_of_the_signed_bytes_the_signature_or_the_key_can_be_changed() {
    let token = known_token();
    let signed = token.claim.signed_bytes();
    let key = secret_key().public();
    assert!(key.has_signed(&signed, &token.signature));
    for changed in with_one_bit_changed(&signed) {
        assert!(!key.has_signed(&changed, &token.signature));
    }
    let digits = hex::decode(token.signature.to_string()).unwrap();
    for changed in with_one_bit_changed(&digits) {
        let changed = Signature::from_hex(hex::encode(changed).as_bytes()).unwrap();
        assert!(!key.has_signed(&signed, &changed));
    }
    for changed in with_one_bit_changed(&key.to_bytes()) {
        if let Ok(other) = PublicKey::from_hex(hex::encode(changed).as_bytes()) {
            assert!(!other.has_signed(&signed, &token.signature));
        }
    }
}

/// Names from two letters, so that one claim often contains the same text as another, split
/// differently.
fn short_claim() -> impl Strategy<Value = Claim> {
    let name = || "[ab]{1,3}\\.[ab]{1,3}";
    let purpose = proptest::sample::select(Purpose::ALL.to_vec());
    (purpose, name(), name(), 0_u64..2).prop_map(|(purpose, domain, of, expires)| Claim {
        purpose,
        domain: host(&domain),
        host: host(&of),
        expires: UnixSeconds(expires),
    })
}

fn any_claim() -> impl Strategy<Value = Claim> {
    let name = "[a-z][a-z0-9]{0,20}\\.example";
    let purpose = proptest::sample::select(Purpose::ALL.to_vec());
    (purpose, name, "[a-z]{1,9}", 0_u64..u64::MAX).prop_map(|(purpose, domain, label, expires)| {
        Claim {
            purpose,
            host: host(&format!("{label}.{domain}")),
            domain: host(&domain),
            expires: UnixSeconds(expires),
        }
    })
}

proptest! {
        #[test]
    fn whatever_is_made_is_read_and_verifies_and_no_bit_of_it_can_be_changed(
        seed in any::<[u8; 32]>(),
        claim in any_claim(),
        left in 1..=EXPIRES_IN_SECONDS_MAX,
        changed in any::<proptest::sample::Selector>(),
    ) {
        let key = SecretKey::from_seed(&seed);
        let keys = Candidates::one(key.public());
        let token = OwnToken::sign(claim.clone(), &key);
        let value = token.to_string().into_bytes();
        prop_assert_eq!(read(&value), Ok(Some(token.clone())));
        let now = UnixSeconds(claim.expires.0.saturating_sub(left));
        let wanted = Wanted { purpose: claim.purpose, host: &claim.host, now };
        if claim.expires.0 > 0 {
            prop_assert_eq!(token.verify(&keys, wanted).unwrap().host, claim.host.clone());
        }
        if let Ok(Some(read)) = read(&changed.select(with_one_bit_changed(&value))) {
            prop_assert_ne!(&read, &token);
            let said = read.claim.signed_bytes();
            prop_assert!(!key.public().has_signed(&said, &read.signature));
        }
    }

    #[test]
    fn a_token_is_good_in_exactly_one_span_of_time(
        now in prop_oneof![0_u64..200_000, Just(EXPIRES), any::<u64>()],
        ahead in -100_000_i64..100_000,
    ) {
        let expires = now.saturating_add_signed(ahead);
        let mut claim = claim(Purpose::Submit, "a.example", "b.example");
        claim.expires = UnixSeconds(expires);
        let wanted = Wanted { purpose: Purpose::Submit, host: &claim.host, now: UnixSeconds(now) };
        let furthest = now.saturating_add(EXPIRES_IN_SECONDS_MAX + CLOCK_AHEAD_SECONDS_MAX);
        prop_assert_eq!(claim.fits(wanted).is_ok(), now < expires && expires <= furthest);
    }

    #[test]
    fn two_claims_never_sign_the_same_bytes(one in short_claim(), other in short_claim()) {
        prop_assert_eq!(one == other, one.signed_bytes() == other.signed_bytes());
    }

    #[test]
    fn no_text_breaks_it(value in "(v1 )?(submit|opt-out|opt-in)? ?\\PC{0,80}") {
        if let Ok(Some(token)) = read(value.as_bytes()) {
            prop_assert_eq!(token.to_string(), value);
        }
    }
}
