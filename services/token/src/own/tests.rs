mod changes;

use super::*;
use crate::record::TxtRecord;
use crate::tests::{KEY_HASH, PUBLIC_KEY, keys, secret_key};
use kit::host;

/// Made by another implementation of Ed25519 from the table of bytes and the seed `00…01`.
const VALUE: &str = "v1 opt-out example.org social.example.org 1767225600 93927b8852bfc2b7ecc5d24fd2295e1a60de1984544013f2ac38ebcfcb0fefe6a2820b444653a50010d4fb4a5fbfdc78a7c7588ce8b775845449749116eb530c";
const SIGNED: &str = "6665646963656e7375732f76312f746f6b656e0000076f70742d6f7574000b6578616d706c652e6f72670012736f6369616c2e6578616d706c652e6f7267000000006955b900";
const EXPIRES: u64 = 1_767_225_600;
const HOST: &str = "social.example.org";

fn read(value: &[u8]) -> Result<Option<OwnToken>, OwnError> {
    OwnToken::parse(value, TestDomain::Refuse)
}

fn claim(purpose: Purpose, domain: &str, of: &str) -> Claim {
    Claim {
        purpose,
        domain: host(domain),
        host: host(of),
        expires: UnixSeconds(EXPIRES),
    }
}

fn known_token() -> OwnToken {
    read(VALUE.as_bytes()).unwrap().unwrap()
}

/// An hour before it expires.
fn opt_out(host: &Host) -> Wanted<'_> {
    Wanted {
        purpose: Purpose::OptOut,
        host,
        now: UnixSeconds(EXPIRES - 3600),
    }
}

fn wanted(purpose: Purpose, of: &str, now: u64) -> Result<Verified, Rejected> {
    let wanted = Wanted {
        purpose,
        host: &host(of),
        now: UnixSeconds(now),
    };
    known_token().verify(&keys(), wanted)
}

#[test]
fn the_known_token_verifies_and_is_made_again() {
    let verified = wanted(Purpose::OptOut, HOST, EXPIRES - 3600).unwrap();
    let expect = claim(Purpose::OptOut, "example.org", HOST);
    assert_eq!(verified.submitter.domain, expect.domain);
    assert_eq!(verified.submitter.key_hash.to_string(), KEY_HASH);
    assert_eq!(verified.purpose, expect.purpose);
    assert_eq!(verified.host, expect.host);
    assert_eq!(verified.expires, expect.expires);
    assert_eq!(hex::encode(expect.signed_bytes()), SIGNED);
    assert_eq!(OwnToken::sign(expect, &secret_key()).to_string(), VALUE);
}

#[test]
fn a_token_is_good_until_the_second_at_which_it_expires() {
    let at = |now| wanted(Purpose::OptOut, HOST, now);
    assert!(at(EXPIRES - 1).is_ok());
    for seconds_ago in [0, 1, 1_000_000] {
        let expired = Rejected::Expired { seconds_ago };
        assert_eq!(at(EXPIRES + seconds_ago), Err(expired));
    }
}

#[test]
fn a_token_is_not_good_before_it_expires_within_a_day_and_the_clocks_difference() {
    let at = |now| wanted(Purpose::OptOut, HOST, now);
    let furthest = EXPIRES_IN_SECONDS_MAX + CLOCK_AHEAD_SECONDS_MAX;
    assert!(at(EXPIRES - furthest).is_ok());
    let not_yet = |seconds| Err(Rejected::NotYet { seconds });
    assert_eq!(at(EXPIRES - furthest - 1), not_yet(1));
    assert_eq!(at(0), not_yet(EXPIRES - furthest));
}

#[test]
fn a_token_is_good_for_its_purpose_alone() {
    for wrong in [Purpose::Submit, Purpose::OptIn] {
        let signed = Purpose::OptOut;
        let expect = Rejected::WrongPurpose {
            signed,
            wanted: wrong,
        };
        assert_eq!(wanted(wrong, HOST, EXPIRES - 1), Err(expect));
    }
}

#[test]
fn a_token_is_good_for_its_host_alone() {
    for wrong in ["example.org", "a.social.example.org", "social.example.com"] {
        let (signed, of) = (host(HOST), host(wrong));
        let expect = Rejected::WrongHost { signed, wanted: of };
        let found = wanted(Purpose::OptOut, wrong, EXPIRES - 1);
        assert_eq!(found, Err(expect));
    }
}

#[test]
fn anybody_submits_a_host_but_only_its_own_domains_decide_for_it() {
    for purpose in Purpose::ALL {
        for (domain, is_its_own) in [
            ("social.example.org", true),
            ("example.org", true),
            ("a.social.example.org", false),
            ("ocial.example.org", false),
            ("other.example", false),
        ] {
            let of = host(HOST);
            let wanted = Wanted {
                purpose,
                ..opt_out(&of)
            };
            let token = OwnToken::sign(claim(purpose, domain, of.as_str()), &secret_key());
            let verified = token.verify(&keys(), wanted);
            if is_its_own || purpose == Purpose::Submit {
                assert!(verified.is_ok(), "{token} {verified:?}");
            } else {
                let expect = Rejected::NotTheOwner {
                    purpose,
                    domain: host(domain),
                    host: of,
                };
                assert_eq!(verified, Err(expect));
            }
        }
    }
}

#[test]
fn a_rejection_says_what_to_do() {
    let check = |purpose, of, now, expect| {
        let text = wanted(purpose, of, now).unwrap_err().to_string();
        assert!(text.contains(expect), "{text}");
    };
    let late = "expired 7 s ago: make a new one";
    check(Purpose::OptOut, HOST, EXPIRES + 7, late);
    check(Purpose::OptOut, HOST, 0, "make one that expires sooner");
    let purpose = "signed to opt-out, not to opt-in";
    check(Purpose::OptIn, HOST, EXPIRES - 1, purpose);
    let other = "for social.example.org, not for a.example";
    check(Purpose::OptOut, "a.example", EXPIRES - 1, other);
}

#[test]
fn what_no_key_of_the_domain_has_signed_is_not_true() {
    let of = host(HOST);
    let wanted = opt_out(&of);
    let other = SecretKey::from_seed(&[7; 32]);
    let forged = OwnToken::sign(known_token().claim, &other);
    let not_signed = NotSigned {
        tried: 1,
        malformed: 0,
        untried: 0,
    };
    let found = forged.verify(&keys(), wanted);
    assert_eq!(found, Err(Rejected::NotSigned(not_signed)));
    let of_other = other.public().to_string();
    let records = ["no key", PUBLIC_KEY, &of_other].map(|text| TxtRecord::from_strings([text]));
    let keys = Candidates::from_records(&records);
    let verified = forged.verify(&keys, wanted).unwrap();
    assert_eq!(verified.submitter.key_hash, other.public().hash());
}

#[test]
fn an_empty_value_is_no_token() {
    assert_eq!(read(b""), Ok(None));
}

#[test]
fn what_is_not_exactly_of_the_form_is_refused() {
    use OwnError::{Expires, Purpose, Shape, Signature, Spelling, TooLong, Version};
    let address = OwnError::Domain(DomainError::NotAName(HostError::Address));
    let test_domain = OwnError::Domain(DomainError::Test);
    let single_label = OwnError::Host(HostError::SingleLabel);
    let digits = format!(" {}", "1".repeat(VALUE_BYTES_MAX));
    for (from, to, expect) in [
        ("v1 ", "v2 ", Version),
        ("v1 ", "V1 ", Version),
        ("v1 ", "", Version),
        ("v1 ", " v1 ", Version),
        ("v1 ", "v1  ", Shape),
        ("example.org social", "example.org  social", Shape),
        ("example.org social", "example.org\tsocial", Shape),
        (" example.org", "", Shape),
        ("30c", "30c ", Shape),
        ("30c", "30c more", Shape),
        ("opt-out", "optout", Purpose),
        ("opt-out", "OPT-OUT", Purpose),
        ("opt-out", "", Purpose),
        (" 1767225600", " -1", Expires),
        (" 1767225600", " 1e9", Expires),
        (" 1767225600", " 18446744073709551616", Expires),
        (" 1767225600", " +1767225600", Spelling),
        (" 1767225600", " 01767225600", Spelling),
        ("9392", "09392", Signature),
        ("9392", "392", Signature),
        ("30c", "30", Signature),
        ("30c", "30c\n", Signature),
        ("30c", "30C", Spelling),
        (" example.org", " Example.org", Spelling),
        (" example.org", " example.org.", Spelling),
        (" example.org", " bücher.example", Spelling),
        ("social.", "Social.", Spelling),
        ("social.", "ſocial.", Spelling),
        (" example.org", " 192.0.2.1", address),
        (" example.org", " test.sigsum.org", test_domain),
        ("social.example.org", "localhost", single_label),
        (" 1767225600", &digits, TooLong),
    ] {
        let value = VALUE.replacen(from, to, 1);
        assert_ne!(value, VALUE, "{from:?}");
        assert_eq!(read(value.as_bytes()), Err(expect), "{value}");
    }
    assert_eq!(read(b"v1"), Err(Version));
    assert_eq!(read(b"\xff"), Err(Spelling));
    assert_eq!(read(crate::tests::VALUE.as_bytes()), Err(Version));
}

#[test]
fn the_longest_token_there_can_be_is_read() {
    let label = "a".repeat(63);
    let of = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    assert_eq!(of.len(), 253);
    let domain = format!("{label}.{label}.{label}.{}", "b".repeat(49));
    let mut claim = claim(Purpose::OptOut, &domain, &of);
    claim.expires = UnixSeconds(u64::MAX);
    let token = OwnToken::sign(claim, &secret_key());
    let value = token.to_string();
    // A domain leaves room for its record's label.
    assert_eq!(value.len(), VALUE_BYTES_MAX - 12);
    assert_eq!(read(value.as_bytes()), Ok(Some(token)));
}

/// Different splits of the same text into fields must not sign the same bytes.
#[test]
fn where_one_field_ends_and_the_next_begins_is_signed() {
    let bytes = |domain, of| claim(Purpose::Submit, domain, of).signed_bytes();
    assert_ne!(bytes("a.bc", "d.ef"), bytes("a.b", "cd.ef"));
}

#[test]
fn a_signature_of_sigsums_form_is_none_of_this_and_the_other_way_round() {
    let log_key = crate::tests::log_key();
    let sigsum = crate::SigsumToken::sign(host("example.org"), log_key, &secret_key());
    let mut token = known_token();
    let digits = token.signature;
    token.signature = sigsum.signature;
    let of = token.claim.host.clone();
    let wanted = opt_out(&of);
    assert!(token.verify(&keys(), wanted).is_err());
    let sigsum = crate::SigsumToken {
        signature: digits,
        ..sigsum
    };
    assert!(sigsum.verify(&keys(), crate::tests::log_key()).is_err());
}
