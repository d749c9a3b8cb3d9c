use proptest::prelude::*;

use super::*;

#[track_caller]
fn check_with(text: &str, expect: Result<&str, DomainNameError>) {
    let found = DomainName::parse(text);
    assert_eq!(
        found.as_ref().map(DomainName::as_str).map_err(|e| *e),
        expect,
        "{text:?}"
    );
}

#[track_caller]
fn check(text: &str, expect: Result<&str, HostError>) {
    check_with(text, expect.map_err(DomainNameError::Host));
}

#[track_caller]
fn check_label(text: &str) {
    check_with(text, Err(DomainNameError::Label));
}

#[test]
fn what_names_the_same_domain_has_one_form() {
    for text in [
        "bücher.example",
        "BÜCHER.EXAMPLE",
        "bu\u{308}cher.example.",
        "xn--bcher-kva.example",
        "XN--BCHER-KVA.Example",
        "bücher。example",
        "bücher．ｅｘａｍｐｌｅ。",
    ] {
        check(text, Ok("xn--bcher-kva.example"));
    }
    check("\u{212b}ngström.example", Ok("xn--ngstrm-hua5l.example"));
    // ONE DOT LEADER, which UTS 46 rejects without NFKC.
    check("a\u{2024}example", Ok("a.example"));
    check("social", Ok("social"));
    check("social.", Ok("social"));
    check("рф", Ok("xn--p1ai"));
}

#[test]
fn a_sharp_s_and_a_final_sigma_stay_what_they_are() {
    check("FAß.example", Ok("xn--fa-hia.example"));
    check("faẞ.example", Ok("xn--fa-hia.example"));
    check("βόλος.example", Ok("xn--nxasmm1c.example"));
    // Capitals have a single sigma, and it is not the final one.
    check("ΒΌΛΟΣ.example", Ok("xn--nxasmq6b.example"));
}

#[test]
fn an_a_label_that_is_not_its_u_labels_is_refused() {
    // In this order: a character that NFKC changes, a capital, plain ASCII, nothing, invalid
    // Punycode, hyphens without a label.
    for label in ["72g", "RKA-2ha", "é", "99999999", "a-é"] {
        check(&format!("xn--{label}.example"), Err(HostError::Idna));
    }
    check_label("xn--abc-.example");
    check_label("xn--.example");
    check("ab--cd.example", Err(HostError::Idna));
}

#[test]
fn what_could_never_match_is_refused() {
    check("", Err(HostError::Empty));
    check(".", Err(HostError::Empty));
    for empty_label in [
        ".example",
        "a..example",
        "a.example..",
        "..",
        "a。。b",
        "a\u{2025}b",
    ] {
        check_label(empty_label);
    }
    for address in [
        "192.0.2.1",
        "192.0.2.1.",
        "①.②.③.④",
        "[2001:db8::1]",
        "2001:db8::1",
        "1",
        "0x7f.1",
    ] {
        check(address, Err(HostError::Address));
    }
    for more in [
        "a.example:443",
        "https://a.example",
        "a.example/",
        "a@example",
        "℀.example",
    ] {
        check(more, Err(HostError::MoreThanAHost));
    }
    for odd in [
        "*.example",
        "a b.example",
        " a.example",
        "a.example ",
        "a\u{a0}b.example",
        "a\u{3000}b.example",
        "a\t.example",
        "_dmarc.example",
        "-a.example",
        "a-.example",
        "a.example\0",
    ] {
        check_label(odd);
    }
    check(
        &format!("{}.example", "a".repeat(63)),
        Ok(&format!("{}.example", "a".repeat(63))),
    );
    check_label(&format!("{}.example", "a".repeat(64)));
    check(&format!("{}.example", "ä".repeat(64)), Err(HostError::Idna));
    let longest = format!("{}a", "a.".repeat(126));
    check(&longest, Ok(&longest));
    check(&format!("{longest}a"), Err(HostError::TooLong));
    check(&"ä.".repeat(40), Err(HostError::TooLong));
    check(&"\u{fdfa}".repeat(400), Err(HostError::TooLong));
}

#[test]
fn what_is_not_seen_is_refused_and_never_dropped() {
    for character in [
        '\u{ad}',
        '\u{200b}',
        '\u{2060}',
        '\u{2064}',
        '\u{feff}',
        '\u{fe0f}',
        '\u{34f}',
        '\u{180b}',
        '\u{e0100}',
    ] {
        for text in [
            format!("{character}a.example"),
            format!("a{character}b.example"),
            format!("a.example{character}"),
            format!("ä{character}.example"),
            format!("{character}.example"),
            character.to_string(),
        ] {
            check_with(&text, Err(DomainNameError::Unseen { character }));
        }
        // As hosts they are unchanged.
        let host = Host::parse(&format!("a{character}b.example")).unwrap();
        assert_eq!(host.as_str(), "ab.example");
    }
    let told = DomainName::parse("a\u{ad}b.example").unwrap_err();
    assert_eq!(
        told.to_string(),
        "it contains U+00AD, an invisible character that no name may have; remove it"
    );
    // A joiner is part of the name where it is allowed, and rejected elsewhere.
    check("نامه\u{200c}ای.example", Ok("xn--mgba3gch31f060k.example"));
    check("a\u{200c}b.example", Err(HostError::Idna));
    check("a\u{200d}b.example", Err(HostError::Idna));
}

#[test]
fn symbols_that_uts_46_has_are_part_of_names() {
    check("i❤.example", Ok("xn--i-7iq.example"));
    check("🦊.example", Ok("xn--9s9h.example"));
    check("XN--I-7IQ.example", Ok("xn--i-7iq.example"));
}

#[test]
fn tails_go_label_by_label() {
    let name = DomainName::parse("a.b.example").unwrap();
    assert_eq!(
        name.tails().collect::<Vec<_>>(),
        ["a.b.example", "b.example", "example"]
    );
    assert!(name.is_within("b.example") && name.is_within("example"));
    assert!(!name.is_within("") && !name.is_within("ample") && !name.is_within("x.a.b.example"));
}

proptest! {
    #[test]
    fn what_is_a_host_is_the_same_domain(text in "\\PC{1,12}\\.[a-zäßΣİ.]{1,8}") {
        // NFKC turns a handful of old letter forms into other letters than UTS 46 does.
        let is_composed = ComposingNormalizerBorrowed::new_nfkc().is_normalized(&text);
        let is_seen = !text.chars().any(is_dropped);
        if let (true, Ok(host)) = (is_composed && is_seen, Host::parse(&text)) {
            let domain = DomainName::parse(&text);
            prop_assert_eq!(domain, Ok(DomainName::from(&host)), "{}", text);
        }
    }

    #[test]
    fn parsing_twice_changes_nothing(text in "\\PC{0,40}") {
        if let Ok(domain) = DomainName::parse(&text) {
            prop_assert_eq!(DomainName::parse(domain.as_str()), Ok(domain.clone()));
            prop_assert!(domain.as_str().len() <= 253);
            for label in domain.as_str().split('.') {
                prop_assert!((1..=63).contains(&label.len()));
            }
        }
    }
}
