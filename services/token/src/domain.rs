//! Parses the domain in a token.
//!
//! It returns a [`Host`] in canonical form. It rejects invalid names, names too long to carry the
//! label of their record, and Sigsum's test domain unless it is allowed.

use protocol::{Host, HostError};
use thiserror::Error;

use crate::key::KeyHash;
use crate::lookup::Form;

/// Sigsum's domain for tests. Its secret key is published (the seed is the number one), so tokens
/// of this domain and of all names below it prove nothing.
pub const TEST_DOMAIN: &str = "test.sigsum.org";

/// Longest name in DNS, in bytes, without the trailing dot (RFC 1035 §2.3.4).
const DNS_NAME_BYTES_MAX: usize = 253;

/// How tokens of [`TEST_DOMAIN`] and of names below it are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestDomain {
    Refuse,
    /// They are verified like others. For tests only: anyone can make them.
    Allow,
}

/// The subject of a verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitter {
    /// The domain whose DNS publishes the key.
    pub domain: Host,
    pub key_hash: KeyHash,
}

/// Why a domain can't vouch. The text continues "the token's domain".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DomainError {
    #[error("can't be used: {0}")]
    NotAName(#[from] HostError),
    #[error("is too long: no DNS record can lie below it")]
    TooLong,
    #[error(
        "is `{TEST_DOMAIN}` or lies below it, whose secret key is public, so that anybody could have made the token: use a domain and a key of your own"
    )]
    Test,
}

/// Parses the domain in a token of this form into canonical form.
pub fn parse(bytes: &[u8], form: Form, test: TestDomain) -> Result<Host, DomainError> {
    let text = str::from_utf8(bytes).map_err(|_not_text| HostError::Idna)?;
    let domain = Host::parse(text)?;
    if !has_room(&domain, form) {
        return Err(DomainError::TooLong);
    }
    match test {
        TestDomain::Refuse if domain.is_within(TEST_DOMAIN) => Err(DomainError::Test),
        TestDomain::Refuse | TestDomain::Allow => Ok(domain),
    }
}

/// Whether the record's name, which is the form's label followed by `domain`, is short enough for
/// DNS.
pub fn has_room(domain: &Host, form: Form) -> bool {
    let with_dot = form.label().len().saturating_add(1);
    domain.as_str().len().saturating_add(with_dot) <= DNS_NAME_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, DomainError>) {
        assert_eq!(
            parse(text.as_bytes(), Form::Own, TestDomain::Refuse).map(String::from),
            expect.map(str::to_owned),
            "{text:?}"
        );
    }

    #[test]
    fn a_domain_is_taken_in_canonical_form() {
        check("Example.ORG.", Ok("example.org"));
        check("bücher.example", Ok("xn--bcher-kva.example"));
        check("faß.example", Ok("xn--fa-hia.example"));
        check("ｅｘａｍｐｌｅ.org", Ok("example.org"));
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        let not_a_name = |error| Err(DomainError::NotAName(error));
        check("192.0.2.1", not_a_name(HostError::Address));
        check("[2001:db8::1]", not_a_name(HostError::Address));
        check("example.org:443", not_a_name(HostError::MoreThanAHost));
        check("example.org/x", not_a_name(HostError::MoreThanAHost));
        check("a b.example", not_a_name(HostError::Idna));
        check("a\tb.example", not_a_name(HostError::Idna));
        check("a..example", not_a_name(HostError::Idna));
        check("example.org..", not_a_name(HostError::Idna));
        check(
            &format!("{}.example", "a".repeat(64)),
            not_a_name(HostError::Idna),
        );
        // A-labels of `bücher` with `u` and a combining diaeresis, and of `bÜcher`: decoding and
        // encoding either of them yields another label.
        check("xn--bucher-xyd.example", not_a_name(HostError::Idna));
        check("xn--bcher-2pa.example", not_a_name(HostError::Idna));
        assert_eq!(
            parse(b"\xff.example", Form::Own, TestDomain::Allow),
            Err(DomainError::NotAName(HostError::Idna))
        );
    }

    #[test]
    fn a_domain_without_room_for_the_label_is_refused() {
        let name = |bytes: usize| {
            let labels = format!("{0}.{0}.{0}.", "a".repeat(59));
            format!("{labels}{}", "b".repeat(bytes - labels.len() - 2) + ".c")
        };
        // `_fedicensus.` has one byte more than `_sigsum_v1.`.
        for (form, longest) in [(Form::Own, 241), (Form::Sigsum, 242)] {
            let parsed = |bytes| parse(name(bytes).as_bytes(), form, TestDomain::Refuse);
            assert_eq!(parsed(longest).map(String::from), Ok(name(longest)));
            assert_eq!(parsed(longest + 1), Err(DomainError::TooLong));
        }
    }

    #[test]
    fn the_test_domain_is_refused_with_all_below_unless_allowed() {
        check("test.sigsum.org", Err(DomainError::Test));
        check("TEST.Sigsum.org.", Err(DomainError::Test));
        check("a.b.test.sigsum.org", Err(DomainError::Test));
        check("attest.sigsum.org", Ok("attest.sigsum.org"));
        check("sigsum.org", Ok("sigsum.org"));
        check("test.sigsum.org.example", Ok("test.sigsum.org.example"));
        let allowed = parse(b"test.sigsum.org", Form::Own, TestDomain::Allow);
        assert_eq!(allowed.map(String::from), Ok(TEST_DOMAIN.to_owned()));
    }
}
