use proptest::prelude::*;
use protocol::HostError;

use super::*;
use crate::domain::DomainNameError;

const KEY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OTHER_KEY: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn parse(bytes: &[u8]) -> Result<Rules, RulesError> {
    Rules::parse(bytes, Path::new("rules"))
}

/// The rules as text: keys by their first byte.
fn lines(rules: &Rules) -> Vec<String> {
    let (keys, domains, public) = (rules.keys.iter(), rules.domains.iter(), rules.public.iter());
    let keys = keys.map(|(key, limit)| format!("key {:x} {limit}", key.0[0]));
    let domains = domains.map(|(domain, limit)| format!("domain {domain} {limit}"));
    let public = public.map(|public| format!("public {} {}", public.list, public.limit));
    keys.chain(domains).chain(public).collect()
}

#[track_caller]
fn check(text: impl AsRef<[u8]>, expect: &[&str]) {
    assert_eq!(lines(&parse(text.as_ref()).unwrap()), expect);
}

/// Checks that the line is rejected for this reason, alone and as the second of three.
#[track_caller]
fn check_wrong(line: impl AsRef<[u8]>, problem: Problem) {
    for (number, before, after) in [(1, "", ""), (2, "domain x.example 1\n", "\nkey")] {
        let bytes = [before.as_bytes(), line.as_ref(), after.as_bytes()].concat();
        let shown = String::from_utf8_lossy(line.as_ref()).into_owned();
        match parse(&bytes) {
            Err(RulesError::Malformed { path, lines }) => {
                assert_eq!(path, Path::new("rules"));
                let expect = LineError {
                    line: number,
                    text: shown,
                    problem,
                };
                assert_eq!(lines[0], expect);
            }
            other => panic!("{shown:?}: {other:?}"),
        }
    }
}

#[test]
fn the_three_lines_are_read_in_any_order_and_any_white_space() {
    let text = format!(
        "\t public   suffixes.dat\t50  \nkey {KEY} 0\n\n domain Räka.Example. 007\ndomain social 1\nkey {} 20",
        OTHER_KEY.to_uppercase()
    );
    let expect = [
        "key aa 0",
        "key bb 20",
        "domain social 1",
        "domain xn--rka-qla.example 7",
        "public suffixes.dat 50",
    ];
    check(text, &expect);
    check("", &[]);
    check("\n\n \n", &[]);
}

#[test]
fn a_comment_begins_anywhere_and_may_be_in_any_encoding() {
    check("# domain a.example 1\n   # x\n#", &[]);
    check("domain a.example 1#2", &["domain a.example 1"]);
    check("domain a.example 1 # one # two", &["domain a.example 1"]);
    check(b"domain a.example 1 # gr\xfc\xdfe", &["domain a.example 1"]);
    check_wrong("domain a.example# 1", Problem::Fields { found: 2 });
    check_wrong("key#", Problem::Fields { found: 1 });
}

#[test]
fn line_ends_and_a_byte_order_mark_are_free() {
    for text in [
        "domain a.example 1\r\ndomain b.example 2\r\n",
        "domain a.example 1\ndomain b.example 2",
        "\u{feff}domain a.example 1\n\r\ndomain b.example 2\r",
    ] {
        check(text, &["domain a.example 1", "domain b.example 2"]);
    }
    // If CR alone was meant to end lines, no rule is lost, not even after a comment.
    for text in [
        "domain a.example 1\rdomain b.example 2",
        "# comment\rdomain b.example 2",
        "domain a.example 1\r# comment",
        "domain a.example\r1",
        "\rdomain a.example 1",
        "\r\t",
    ] {
        check_wrong(text, Problem::CarriageReturn);
    }
    assert!(parse(b"domain a.example 1\r\r\n").is_err());
    // In the middle of a file the byte order mark is an ordinary character.
    for before in ["\n\u{feff}", "\u{feff}\u{feff}"] {
        let text = format!("{before}domain a.example 1");
        assert!(parse(text.as_bytes()).is_err(), "{text:?}");
    }
}

#[test]
fn a_line_is_judged_by_fields_then_keyword_then_limit_then_item() {
    check_wrong("Key zz x y", Problem::Fields { found: 4 });
    check_wrong("limit", Problem::Fields { found: 1 });
    check_wrong("Key zz x", Problem::Keyword);
    check_wrong("KEY zz 1", Problem::Keyword);
    check_wrong("keys zz 1", Problem::Keyword);
    check_wrong("key zz x", Problem::Limit);
    check_wrong("domain *.example -1", Problem::Limit);
    check_wrong("public suffixes.dat 2147483648", Problem::Limit);
    check_wrong("key zz 1", Problem::Key);
    check_wrong(format!("key {}g 1", "a".repeat(63)), Problem::Key);
    check_wrong("public a\0b 1", Problem::File);
    check_wrong(b"domain \xff.example x y z", Problem::NotText);
}

#[test]
fn a_domain_that_no_name_could_match_is_an_error() {
    for item in [".example", "*.example", "*.a.example", "*.", ".a..example"] {
        check_wrong(format!("domain {item} 1"), Problem::AllBelow);
    }
    for item in "a..example a.example.. * *a.example a.*.example a_b.example".split(' ') {
        let why = DomainNameError::Label;
        check_wrong(format!("domain {item} 1"), Problem::Domain(why));
    }
    let character = '\u{200b}';
    let why = DomainNameError::Unseen { character };
    check_wrong("domain a\u{200b}.example 1", Problem::Domain(why));
    for (item, why) in [
        (".", HostError::Empty),
        ("192.0.2.1", HostError::Address),
        ("[2001:db8::1]", HostError::Address),
        ("2001:db8::1", HostError::Address),
        ("a.example:443", HostError::MoreThanAHost),
        ("xn--72g.example", HostError::Idna),
        ("xn--RKA-2ha.example", HostError::Idna),
    ] {
        check_wrong(format!("domain {item} 1"), Problem::Domain(why.into()));
    }
}

#[test]
fn a_second_line_for_the_same_item_is_an_error_however_it_is_written() {
    let twice = |first: &str, second: &str| {
        let error = parse(format!("\n{first}\n{second}").as_bytes()).unwrap_err();
        match error {
            RulesError::Malformed { lines, .. } => {
                assert_eq!((lines.len(), lines[0].line), (1, 3));
                lines[0].problem
            }
            RulesError::TooLarge { .. } | RulesError::TooManyLines { .. } => panic!("{error}"),
        }
    };
    let same = Problem::Twice { first: 2 };
    let upper = KEY.to_uppercase();
    let keys = twice(&format!("key {KEY} 1"), &format!("key {upper} 2"));
    assert_eq!(keys, same);
    let domains = twice("domain räka.example 1", "domain XN--RKA-QLA.example. 1");
    assert_eq!(domains, same);
    let public = twice("public a 0", "public b 0");
    assert_eq!(public, Problem::SecondPublic { first: 2 });
}

#[test]
fn every_wrong_line_of_a_file_is_told() {
    let text = b"domain a.example\ndomain b.example 1\n# x\ndomain b.example 2\nhost c 3\r\n";
    let error = parse(text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rules:1: it has 2 field(s) instead of three: `key HEX LIMIT`, `domain NAME LIMIT` or `public FILE LIMIT`: \"domain a.example\"\n\
         rules:4: line 2 has the same item; keep one of them: \"domain b.example 2\"\n\
         rules:5: it begins with none of `key`, `domain` and `public`: \"host c 3\""
    );
}

#[test]
fn an_errors_text_can_do_a_terminal_no_harm_and_is_short() {
    let error = parse(b"\x1b[2J\"\xe2\x80\xae a b").unwrap_err().to_string();
    assert!(error.ends_with(r#": "\u{1b}[2J\"\u{202e} a b""#), "{error}");
    // Cut in the middle of a letter.
    let long = format!("x{}", "ä".repeat(5000));
    let error = parse(long.as_bytes()).unwrap_err().to_string();
    assert!(error.len() < 300 && error.ends_with("ä…\""), "{error}");
}

#[test]
fn what_is_too_big_is_refused_before_it_is_parsed() {
    let wrong = parse("x\n".repeat(LINES_MAX).trim_end().as_bytes());
    let Err(RulesError::Malformed { lines, .. }) = wrong else {
        panic!("{wrong:?}");
    };
    assert_eq!(lines.len(), LINES_MAX);
    assert!(parse("\n".repeat(LINES_MAX).as_bytes()).is_ok());
    let many = parse("\n".repeat(LINES_MAX + 1).as_bytes());
    assert!(matches!(many, Err(RulesError::TooManyLines { .. })));
    assert!(parse(&vec![b' '; FILE_BYTES_MAX]).is_ok());
    let large = parse(&vec![b' '; FILE_BYTES_MAX + 1]);
    assert!(matches!(large, Err(RulesError::TooLarge { .. })));
}

#[test]
fn a_public_line_that_is_off_names_no_file_to_open() {
    let file = |text: &str| {
        let rules = parse(text.as_bytes()).unwrap();
        rules.list_file().map(Path::to_owned)
    };
    assert_eq!(file("public /x/list.dat 1"), Some("/x/list.dat".into()));
    assert_eq!(file("public ./default 1"), Some("./default".into()));
    assert_eq!(file("public /x/list.dat 0"), None);
    assert_eq!(file("public default 1"), None);
    assert_eq!(file("domain a.example 1"), None);
}

fn any_line() -> impl Strategy<Value = String> {
    let keyword = prop_oneof!["key", "domain", "public", "Key", "#", ""];
    let item = prop_oneof![
        "[ab]{64}",
        "[a-c]\\.(test|example)\\.?",
        "\\PC{0,6}",
        Just(KEY.to_owned())
    ];
    let limit = prop_oneof!["[0-9]{1,11}", "[-+x#0-9]{0,3}"];
    (keyword, item, limit, "[ \t#]{0,2}x?")
        .prop_map(|(keyword, item, limit, rest)| format!("{keyword} {item} {limit}{rest}"))
}

proptest! {
    #[test]
    fn rules_written_out_are_read_as_the_same_and_their_order_means_nothing(
        (lines, shuffled) in proptest::collection::vec(any_line(), 0..12)
            .prop_flat_map(|lines| (Just(lines.clone()), Just(lines).prop_shuffle()))
    ) {
        let parsed = parse(lines.join("\n").as_bytes());
        let other = parse(shuffled.join("\r\n").as_bytes());
        prop_assert_eq!(parsed.is_ok(), other.is_ok());
        if let (Ok(rules), Ok(same)) = (parsed, other) {
            prop_assert_eq!(&rules, &same);
            let full = |rules: &Rules| {
                let keys = rules.keys.iter().map(|(key, limit)| format!("key {key} {limit}"));
                keys.chain(self::lines(rules).into_iter().filter(|line| !line.starts_with("key"))).collect::<Vec<_>>().join("\n")
            };
            prop_assert_eq!(parse(full(&rules).as_bytes()).unwrap(), rules);
        }
    }

    #[test]
    fn a_file_holds_as_many_errors_as_its_lines_alone(lines in proptest::collection::vec(any_line(), 0..12)) {
        let alone = lines.iter().filter(|line| parse(line.as_bytes()).is_err()).count();
        let together = match parse(lines.join("\n").as_bytes()) {
            Ok(_) => 0,
            Err(RulesError::Malformed { lines, .. }) => {
                lines.iter().filter(|line| !matches!(line.problem, Problem::Twice { .. } | Problem::SecondPublic { .. })).count()
            }
            Err(other) => panic!("{other}"),
        };
        prop_assert_eq!(together, alone);
    }

    #[test]
    fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        parse(&bytes).ok();
    }
}
