use super::*;

/// A list in the right format with this many invented top-level rules, and a few true ones.
fn list(icann_rules: usize) -> String {
    let mut text =
        "// a comment\n// ===BEGIN ICANN DOMAINS===\ncom\nuk\nco.uk\n*.ck\n!www.ck\nрф\n"
            .to_owned();
    for index in 6..icann_rules {
        text.push_str(&format!("tld{index}\n"));
    }
    text.push_str("// ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\ngithub.io\n// ===END PRIVATE DOMAINS===\n");
    text
}

fn load(bytes: &[u8]) -> Result<Suffixes, SuffixError> {
    Suffixes::from_bytes(bytes, Path::new("list.dat"))
}

fn check(suffixes: &Suffixes, host: &str, name: &str, is_known: bool) {
    let parsed = Host::parse(host).unwrap();
    let expect = Suffix { name, is_known };
    assert_eq!(suffixes.suffix(&parsed), expect, "{host}");
}

#[test]
fn both_kinds_of_list_find_the_same_suffixes() {
    let loaded = load(list(ICANN_RULES_MIN).as_bytes()).unwrap();
    for suffixes in [Suffixes::compiled(), loaded] {
        check(&suffixes, "a.b.com", "com", true);
        check(&suffixes, "a.co.uk", "co.uk", true);
        check(&suffixes, "co.uk", "co.uk", true);
        check(&suffixes, "a.b.ck", "b.ck", true);
        check(&suffixes, "www.ck", "ck", true);
        check(&suffixes, "me.github.io", "github.io", true);
        check(&suffixes, "пример.рф", "xn--p1ai", true);
        let unknown = "no-such-top-level";
        check(&suffixes, &format!("a.b.{unknown}"), unknown, false);
    }
}

#[test]
fn a_list_that_is_not_whole_is_refused() {
    let few = load(list(ICANN_RULES_MIN - 1).as_bytes());
    assert!(matches!(few, Err(SuffixError::TooFew { found: 999, .. })));
    for mark in MARKS {
        let text = list(ICANN_RULES_MIN).replace(mark, "");
        match load(text.as_bytes()) {
            Err(SuffixError::NoMark { mark: missing, .. }) => assert_eq!(missing, mark),
            other => panic!("without {mark}: {other:?}"),
        }
    }
    let whole = list(ICANN_RULES_MIN);
    let cut = load(&whole.as_bytes()[..whole.len() - 30]);
    assert!(matches!(cut, Err(SuffixError::NoMark { .. })));
    assert!(matches!(load(b""), Err(SuffixError::NoMark { .. })));
}

#[test]
fn a_rule_of_a_million_labels_never_becomes_a_tree() {
    let text = list(ICANN_RULES_MIN).replace("github.io", &"a.".repeat(500_000));
    let refused = load(text.as_bytes()).unwrap_err();
    assert!(matches!(
        refused,
        SuffixError::RuleTooLong { line: 1005, .. }
    ));
}

#[test]
fn what_is_no_text_or_no_rule_is_refused() {
    assert!(matches!(load(b"\xff"), Err(SuffixError::NotText { .. })));
    let text = list(ICANN_RULES_MIN).replace("github.io", "github..io");
    let refused = load(text.as_bytes()).unwrap_err();
    assert!(matches!(refused, SuffixError::BadRule { line: 1005, .. }));
    let huge = vec![b'\n'; FILE_BYTES_MAX + 1];
    for read in [Suffixes::from_bytes, Suffixes::from_excerpt] {
        let error = read(&huge, Path::new("list.dat")).unwrap_err();
        assert!(matches!(error, SuffixError::TooLarge { .. }), "{error}");
        let error = read(&huge[1..], Path::new("list.dat")).unwrap_err();
        assert!(!matches!(error, SuffixError::TooLarge { .. }), "{error}");
    }
}

fn excerpt(text: &str) -> Result<Suffixes, SuffixError> {
    Suffixes::from_excerpt(text.as_bytes(), Path::new("list.dat"))
}

#[test]
fn an_excerpt_may_be_short_but_each_of_its_lines_is_a_rule() {
    let suffixes = excerpt("\u{feff}// x\n\n  org \t!free text\r\nПРИМЕР.example. // y\n").unwrap();
    check(&suffixes, "a.b.org", "org", true);
    check(&suffixes, "a.пример.example", "xn--e1afmkfd.example", true);
    check(&suffixes, "a.example", "example", false);
    for wrong in [
        "/ a comment",
        "!",
        "!uk",
        "!uk.",
        "!.uk",
        "*",
        "*.",
        "*.*",
        "*.*.uk",
        "a.*.uk",
        "*uk",
        "!*.uk",
        "*.!a.uk",
        ".uk",
        "uk..",
        "192.0.2.1",
        "a_b.uk",
        "xn--72g.uk",
    ] {
        match excerpt(&format!("org\n{wrong}")) {
            Err(SuffixError::BadRule { line: 2, rule, .. }) => {
                assert_eq!(Some(rule.as_str()), wrong.split(' ').next());
            }
            Ok(_) if wrong == "*" => {}
            other => panic!("{wrong}: {other:?}"),
        }
    }
    for empty in ["", "\n", "// org"] {
        assert!(matches!(excerpt(empty), Err(SuffixError::Empty { .. })));
    }
    let many: String = (0..=RULES_MAX)
        .map(|number| format!("a{number}\n"))
        .collect();
    assert!(matches!(excerpt(&many), Err(SuffixError::TooMany { .. })));
}

#[test]
fn lines_end_with_lf_cr_lf_or_cr_and_none_is_lost_in_a_comment() {
    for end in ["\n", "\r\n", "\r"] {
        let lines = |lines: &[&str]| lines.join(end);
        let suffixes = excerpt(&lines(&["// x", "org", "", "// y", "b.org", ""])).unwrap();
        check(&suffixes, "a.b.org", "b.org", true);
        match excerpt(&lines(&["// x", "org", "", "uk.."])) {
            Err(SuffixError::BadRule { line: 4, .. }) => {}
            other => panic!("{end:?}: {other:?}"),
        }
        let whole = list(ICANN_RULES_MIN).replace('\n', end);
        assert!(load(whole.as_bytes()).is_ok(), "{end:?}");
    }
}

/// Registered domains by the compiled-in list, or why there is none, as in the list's own tests
/// (publicsuffix/list, `tests/test_psl.txt`).
#[test]
fn registered_domains_are_those_of_the_lists_own_tests() {
    use NoRegisteredDomain::{PublicSuffix, UnknownSuffix};
    for (name, expect) in [
        ("com", Err(PublicSuffix)),
        ("b.example.com", Ok("example.com")),
        ("biz", Err(PublicSuffix)),
        ("b.domain.biz", Ok("domain.biz")),
        ("uk.com", Err(PublicSuffix)),
        ("a.b.example.uk.com", Ok("example.uk.com")),
        ("mm", Err(UnknownSuffix)),
        ("c.mm", Err(PublicSuffix)),
        ("a.b.c.mm", Ok("b.c.mm")),
        ("jp", Err(PublicSuffix)),
        ("kyoto.jp", Err(PublicSuffix)),
        ("test.kyoto.jp", Ok("test.kyoto.jp")),
        ("ide.kyoto.jp", Err(PublicSuffix)),
        ("a.b.ide.kyoto.jp", Ok("b.ide.kyoto.jp")),
        ("c.kobe.jp", Err(PublicSuffix)),
        ("a.b.c.kobe.jp", Ok("b.c.kobe.jp")),
        ("www.city.kobe.jp", Ok("city.kobe.jp")),
        ("kobe.jp", Ok("kobe.jp")),
        ("ck", Err(UnknownSuffix)),
        ("test.ck", Err(PublicSuffix)),
        ("a.b.test.ck", Ok("b.test.ck")),
        ("www.ck", Ok("www.ck")),
        ("www.www.ck", Ok("www.ck")),
        ("k12.ak.us", Err(PublicSuffix)),
        ("www.test.k12.ak.us", Ok("test.k12.ak.us")),
        ("www.食狮.公司.cn", Ok("xn--85x722f.xn--55qx5d.cn")),
        ("shishi.公司.cn", Ok("shishi.xn--55qx5d.cn")),
        ("公司.cn", Err(PublicSuffix)),
        ("a.no-such-top-level", Err(UnknownSuffix)),
        ("no-such-top-level", Err(UnknownSuffix)),
        ("me.github.io", Ok("me.github.io")),
    ] {
        let domain = DomainName::parse(name).unwrap();
        assert_eq!(
            Suffixes::compiled().registered_domain(&domain),
            expect,
            "{name}"
        );
    }
}

/// docs/admission-rules.md and the comment at [`List::Compiled`] describe this for `default`. If
/// this test fails because the names are now found to be public suffixes, change both.
#[test]
fn the_compiled_in_list_overlooks_a_wildcard_beside_a_longer_rule() {
    for (rules, name, overlooked) in [
        ("app\n*.run.app\n*.mtls.run.app", "mtls.run.app", "run.app"),
        (
            "dev\n*.replit.dev\n*.teams.replit.dev",
            "teams.replit.dev",
            "replit.dev",
        ),
        (
            "app\n*.snowflake.app\n*.privatelink.snowflake.app",
            "privatelink.snowflake.app",
            "snowflake.app",
        ),
    ] {
        let domain = DomainName::parse(name).unwrap();
        let compiled = Suffixes::compiled();
        let found = compiled.registered_domain(&domain);
        assert_eq!(found, Ok(overlooked), "{name}");
        let loaded = excerpt(rules).unwrap();
        let found = loaded.registered_domain(&domain);
        assert_eq!(found, Err(NoRegisteredDomain::PublicSuffix), "{name}");
    }
}

#[test]
fn an_exception_prevails_and_the_longest_rule_otherwise() {
    let suffixes = excerpt("*.a\n!x.a\nlong.x.a\nb\nq.b\n*.c.b\nz.y.c.b\n").unwrap();
    let registered = |name: &str| {
        let domain = DomainName::parse(name).unwrap();
        suffixes.registered_domain(&domain).map(str::to_owned).ok()
    };
    let check = |name: &str, expect: Option<&str>| {
        assert_eq!(registered(name).as_deref(), expect, "{name}");
    };
    check("a", None);
    check("y.a", None);
    check("z.y.a", Some("z.y.a"));
    check("x.a", Some("x.a"));
    // A longer rule, but not the one that prevails.
    check("w.long.x.a", Some("x.a"));
    check("c.b", Some("c.b"));
    check("d.c.b", None);
    check("e.d.c.b", Some("e.d.c.b"));
    // A longer rule below it does not match, so the wildcard applies.
    check("y.c.b", None);
    check("w.y.c.b", Some("w.y.c.b"));
    check("v.z.y.c.b", Some("v.z.y.c.b"));
    check("e.q.b", Some("e.q.b"));
    // Only a single `*` covers everything.
    check("a.nowhere", None);
    let everything = excerpt("*").unwrap();
    let domain = DomainName::parse("b.a.nowhere").unwrap();
    assert_eq!(everything.registered_domain(&domain), Ok("a.nowhere"));
}

#[test]
fn names_that_an_owner_hands_out_are_known_by_that_owner() {
    let list = "// ===BEGIN ICANN DOMAINS===\nio\ncom\nuk\nco.uk\n// ===END ICANN DOMAINS===\n\
                // ===BEGIN PRIVATE DOMAINS===\ngithub.io\nblogspot.co.uk\ndyn.com\na.dyn.com\n\
                // ===END PRIVATE DOMAINS===\n";
    let loaded = Suffixes::from_excerpt(list.as_bytes(), Path::new("list")).unwrap();
    let check = |suffixes: &Suffixes, name: &str, expect: Option<&str>| {
        let domain = DomainName::parse(name).unwrap();
        assert_eq!(suffixes.shared_suffix(&domain), expect, "{name}");
    };
    check(&loaded, "me.blogspot.co.uk", Some("blogspot.co.uk"));
    check(&loaded, "x.b.dyn.com", Some("dyn.com"));
    check(&loaded, "x.b.a.dyn.com", Some("dyn.com"));
    for suffixes in [&loaded, &Suffixes::compiled()] {
        check(suffixes, "me.github.io", Some("github.io"));
        check(suffixes, "a.b.me.github.io", Some("github.io"));
        for name in ["a.b.example.com", "a.co.uk", "io", "a.no-such-top-level"] {
            check(suffixes, name, None);
        }
    }
    let compiled = Suffixes::compiled();
    check(
        &compiled,
        "a.s3.dualstack.eu-west-1.amazonaws.com",
        Some("amazonaws.com"),
    );
    let without_sections = Suffixes::from_excerpt(b"github.io\nio\n", Path::new("list")).unwrap();
    check(&without_sections, "me.github.io", None);
}
