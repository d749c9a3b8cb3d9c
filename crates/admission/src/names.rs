//! The policy on names: which ones may enter the census, and to which owner they belong.
//!
//! It takes text, or a parsed [`Host`], and returns a host to check or a [`Refusal`]. For an
//! admitted host it also returns the registered domain, by which the gateway paces look-ups. If the
//! list of suffixes changes, a name that was admitted before may be refused later, and its row is
//! parked.

use protocol::{Host, HostError};
use thiserror::Error;

use crate::special;
use crate::suffixes::Suffixes;

/// How names that are reserved for special use are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    Refuse,
    /// Names below `.test` and `.example` are admitted, as if these were known suffixes; all others
    /// are refused. In lab mode only.
    AllowInLab,
}

/// Admits names to the census.
#[derive(Debug)]
pub struct Names {
    /// The public suffixes, which separate owners.
    pub suffixes: Suffixes,
    /// How reserved names are treated.
    pub reserved: Reserved,
}

/// Why a name may not enter. The text is a sentence about the name, and the caller prepends the
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error(transparent)]
    NotAName(#[from] HostError),
    /// It is a public suffix such as `co.uk`, below which others register names, and not a host.
    #[error("it is a public suffix, below which others register names, not a host")]
    PublicSuffix,
    /// No rule of the public suffix list covers it: most likely a typing error.
    #[error("no rule of the public suffix list has its top-level domain")]
    UnknownSuffix,
    #[error("it is in `{domain}`, which is reserved for special use")]
    SpecialUse { domain: &'static str },
}

impl Names {
    /// Parses `text` into a host in canonical form.
    pub fn admit(&self, text: &str) -> Result<Host, Refusal> {
        self.admit_host(Host::parse(text)?)
    }

    /// Returns `host` if it may enter the census.
    /// Returns the reason if it may not enter. Never [`Refusal::NotAName`].
    pub fn admit_host(&self, host: Host) -> Result<Host, Refusal> {
        if let Some(domain) = special::reserved_domain(&host) {
            return if self.is_admitted_in_lab(domain) {
                Ok(host)
            } else {
                Err(Refusal::SpecialUse { domain })
            };
        }
        let suffix = self.suffixes.suffix(&host);
        if !suffix.is_known {
            Err(Refusal::UnknownSuffix)
        } else if suffix.name == host.as_str() {
            Err(Refusal::PublicSuffix)
        } else {
            Ok(host)
        }
    }

    /// The registered domain of `host`: its public suffix plus one label. As far as names can tell,
    /// it identifies the owner.
    ///
    /// For a host that would not be admitted it is the best guess: the host itself if it is a bare
    /// suffix, otherwise its last two labels.
    pub fn registered_domain(&self, host: &Host) -> String {
        let name = host.as_str();
        let suffix = self.suffixes.suffix(host).name;
        name.strip_suffix(suffix)
            .and_then(|rest| rest.strip_suffix('.'))
            .map(|rest| rest.rsplit_once('.').map_or(rest, |(_, label)| label))
            .map_or_else(|| name.to_owned(), |label| format!("{label}.{suffix}"))
    }

    fn is_admitted_in_lab(&self, domain: &str) -> bool {
        match self.reserved {
            Reserved::Refuse => false,
            Reserved::AllowInLab => special::is_lab_domain(domain),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(reserved: Reserved) -> Names {
        Names {
            suffixes: Suffixes::compiled(),
            reserved,
        }
    }

    fn check(reserved: Reserved, text: &str, expect: Result<&str, Refusal>) {
        assert_eq!(
            names(reserved).admit(text).map(String::from),
            expect.map(str::to_owned),
            "{text:?}"
        );
    }

    #[test]
    fn names_that_can_be_owned_enter_in_canonical_form() {
        check(Reserved::Refuse, "Mastodon.Social.", Ok("mastodon.social"));
        check(Reserved::Refuse, "a.b.co.uk", Ok("a.b.co.uk"));
        check(Reserved::Refuse, "bücher.de", Ok("xn--bcher-kva.de"));
        check(Reserved::Refuse, "me.github.io", Ok("me.github.io"));
    }

    #[test]
    fn names_that_cannot_be_owned_are_refused_with_their_reason() {
        let special = |domain| Err(Refusal::SpecialUse { domain });
        check(Reserved::Refuse, "co.uk", Err(Refusal::PublicSuffix));
        check(Reserved::Refuse, "github.io", Err(Refusal::PublicSuffix));
        check(Reserved::Refuse, "foo.ck", Err(Refusal::PublicSuffix));
        check(Reserved::Refuse, "a.cmo", Err(Refusal::UnknownSuffix));
        check(Reserved::Refuse, "a.onion", special("onion"));
        check(Reserved::Refuse, "a.test", special("test"));
        check(Reserved::Refuse, "a.example", special("example"));
        check(Reserved::Refuse, "www.example.com", special("example.com"));
        check(Reserved::Refuse, "printer.local", special("local"));
        check(Reserved::Refuse, "router.home.arpa", special("arpa"));
        check(
            Reserved::Refuse,
            "localhost",
            Err(Refusal::NotAName(HostError::SingleLabel)),
        );
        check(
            Reserved::Refuse,
            "a.social:443",
            Err(Refusal::NotAName(HostError::MoreThanAHost)),
        );
    }

    #[test]
    fn the_lab_admits_its_two_reserved_suffixes_and_no_other() {
        check(Reserved::AllowInLab, "a.test", Ok("a.test"));
        check(Reserved::AllowInLab, "a.b.example", Ok("a.b.example"));
        check(
            Reserved::AllowInLab,
            "mastodon.social",
            Ok("mastodon.social"),
        );
        check(
            Reserved::AllowInLab,
            "a.onion",
            Err(Refusal::SpecialUse { domain: "onion" }),
        );
        check(
            Reserved::AllowInLab,
            "www.example.com",
            Err(Refusal::SpecialUse {
                domain: "example.com",
            }),
        );
        check(
            Reserved::AllowInLab,
            "a.no-such-top-level",
            Err(Refusal::UnknownSuffix),
        );
    }

    #[test]
    fn a_registered_domain_is_the_suffix_and_one_label() {
        for (host, expect) in [
            ("mastodon.social", "mastodon.social"),
            ("a.b.c.co.uk", "c.co.uk"),
            ("a.me.github.io", "me.github.io"),
            ("a.b.www.ck", "www.ck"),
            ("a.b.test", "b.test"),
            ("persona.example", "persona.example"),
            ("co.uk", "co.uk"),
            ("a.b.no-such-top-level", "b.no-such-top-level"),
        ] {
            assert_eq!(
                names(Reserved::AllowInLab).registered_domain(&Host::parse(host).unwrap()),
                expect
            );
        }
    }

    #[test]
    fn a_refusal_reads_as_a_sentence_about_the_name() {
        let refusal = names(Reserved::Refuse).admit("a.onion").unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "it is in `onion`, which is reserved for special use"
        );
    }

    /// Names from labels that matter to the policy, so that suffixes and reserved names are
    /// frequent.
    fn name() -> impl Strategy<Value = String> {
        let label = prop_oneof![
            "[a-z][a-z0-9]{0,5}",
            Just("co".to_owned()),
            Just("uk".to_owned()),
            Just("com".to_owned()),
            Just("ck".to_owned()),
            Just("www".to_owned()),
            Just("github".to_owned()),
            Just("io".to_owned()),
            Just("test".to_owned()),
            Just("example".to_owned()),
            Just("onion".to_owned()),
        ];
        proptest::collection::vec(label, 2..6).prop_map(|labels| labels.join("."))
    }

    proptest! {
        #[test]
        fn an_admitted_host_is_admitted_again(text in name()) {
            let names = names(Reserved::Refuse);
            if let Ok(host) = names.admit(&text) {
                prop_assert_eq!(names.admit(host.as_str()), Ok(host.clone()));
                prop_assert_eq!(special::reserved_domain(&host), None);
            }
        }

        #[test]
        fn whatever_the_world_may_enter_may_enter_the_lab(text in name()) {
            if let Ok(host) = names(Reserved::Refuse).admit(&text) {
                prop_assert_eq!(names(Reserved::AllowInLab).admit(&text), Ok(host));
            }
        }

        #[test]
        fn a_registered_domain_holds_its_host_and_is_its_own(text in name()) {
            let names = names(Reserved::AllowInLab);
            if let Ok(host) = names.admit(&text) {
                let domain = names.registered_domain(&host);
                prop_assert!(host.is_within(&domain), "{} {}", host, domain);
                let own = names.admit(&domain).unwrap();
                prop_assert_eq!(names.registered_domain(&own), domain);
            }
        }

        #[test]
        fn no_text_breaks_it(text in "\\PC{0,60}") {
            names(Reserved::Refuse).admit(&text).ok();
        }
    }
}
