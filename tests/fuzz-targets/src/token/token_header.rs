//! Tokens in headers, in both forms: one meaning, one spelling, and nothing that a key has not
//! signed.

use std::sync::LazyLock;

use crate::input::is_canonical;
use protocol::Host;
use token::own::{CLOCK_AHEAD_SECONDS_MAX, EXPIRES_IN_SECONDS_MAX};
use token::{
    Candidates, Claim, Form, LogKey, Lookup, OwnToken, SecretKey, SigsumToken, TestDomain,
    UnixSeconds, Wanted, own, sigsum,
};

static KEY: LazyLock<SecretKey> = LazyLock::new(|| SecretKey::from_seed(&[7; 32]));

static KEYS: LazyLock<Candidates> = LazyLock::new(|| Candidates::one(KEY.public()));

static LOG_KEY: LazyLock<LogKey> =
    LazyLock::new(|| LogKey::from_hex(&[b'a'; 64]).expect("hex digits"));

pub fn check(value: &[u8]) {
    let of_own = OwnToken::parse(value, TestDomain::Allow);
    let of_sigsum = SigsumToken::parse(value, TestDomain::Allow);
    if value.is_empty() {
        assert_eq!((of_own, of_sigsum), (Ok(None), Ok(None)));
        return;
    }
    assert!(of_own.is_err() || of_sigsum.is_err(), "it is of both forms");
    if let Ok(token) = of_own {
        let token = token.expect("only an empty value is none");
        own_form(value, &token);
        let refused = OwnToken::parse(value, TestDomain::Refuse).is_err();
        assert_eq!(refused, token.claim.domain.is_within("test.sigsum.org"));
    }
    if let Ok(token) = of_sigsum {
        let token = token.expect("only an empty value is none");
        sigsum_form(value, &token);
        let refused = SigsumToken::parse(value, TestDomain::Refuse).is_err();
        assert_eq!(refused, token.domain.is_within("test.sigsum.org"));
    }
}

fn own_form(value: &[u8], token: &OwnToken) {
    assert!(value.len() <= own::VALUE_BYTES_MAX && value.is_ascii());
    assert_eq!(token.to_string().as_bytes(), value);
    let claim = &token.claim;
    is_canonical(&claim.host);
    can_be_asked(token.form(), &claim.domain);
    let wanted = |now| Wanted {
        purpose: claim.purpose,
        host: &claim.host,
        now: UnixSeconds(now),
    };
    let is_the_owners = claim.purpose != own::Purpose::Submit;
    let may = !is_the_owners || claim.host.is_within(claim.domain.as_str());
    let expires = claim.expires.0;
    for now in [0, expires.saturating_sub(1), expires, expires / 2, u64::MAX] {
        let furthest = now.saturating_add(EXPIRES_IN_SECONDS_MAX + CLOCK_AHEAD_SECONDS_MAX);
        let is_good = may && now < expires && expires <= furthest;
        assert_eq!(claim.fits(wanted(now)).is_ok(), is_good, "{now}");
        assert!(token.verify(&KEYS, wanted(now)).is_err());
    }
    let other = Host::parse("other.example").expect("a name");
    if claim.host != other {
        let wanted = Wanted {
            host: &other,
            ..wanted(expires.saturating_sub(1))
        };
        assert!(claim.fits(wanted).is_err());
    }
    let signed = OwnToken::sign(Claim::clone(claim), &KEY);
    let text = signed.to_string();
    assert_eq!(
        OwnToken::parse(text.as_bytes(), TestDomain::Allow),
        Ok(Some(signed.clone()))
    );
    if may && expires > 0 {
        let verified = signed
            .verify(&KEYS, wanted(expires - 1))
            .expect("it is signed");
        assert_eq!(verified.submitter.domain, claim.domain);
        assert_eq!(verified.submitter.key_hash, KEY.public().hash());
    }
}

fn sigsum_form(value: &[u8], token: &SigsumToken) {
    assert!(value.len() <= sigsum::VALUE_BYTES_MAX);
    can_be_asked(token.form(), &token.domain);
    let spaces = value.iter().filter(|&&byte| byte == b' ').count();
    assert_eq!(spaces, 1);
    let digits = value.split_last_chunk::<128>().expect("a signature").1;
    assert!(digits.iter().all(u8::is_ascii_hexdigit));
    let text = token.to_string();
    assert_eq!(
        SigsumToken::parse(text.as_bytes(), TestDomain::Allow).as_ref(),
        Ok(&Some(token.clone()))
    );
    assert!(token.verify(&KEYS, *LOG_KEY).is_err());
}

fn can_be_asked(form: Form, domain: &Host) {
    is_canonical(domain);
    let name = Lookup::begin(form, domain.clone()).name();
    assert!(name.len() <= 253);
    assert_eq!(name, format!("{}.{domain}", form.label()));
}
