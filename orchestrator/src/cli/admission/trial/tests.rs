use std::path::Path;

use admission::{HashKey, Rules, Suffixes, TestDomain};

use super::*;

const RULES: &str = "key aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1\ndomain a.com 2\npublic default 1";

/// The answers to these lines, and the numbers of the lines reported as wrong.
fn answers(requests: &[u8]) -> (Vec<String>, Vec<u64>) {
    let policy = Policy {
        rules: Rules::parse(RULES.as_bytes(), Path::new("rules")).unwrap(),
        suffixes: Suffixes::compiled(),
        test_domain: TestDomain::Refuse,
    };
    let (mut answers, mut told) = (Vec::new(), Vec::new());
    let counters = Counters::new(HashKey([0; 16]));
    let wrong = |line, why: &str| {
        let is_plain = |letter: char| letter == '…' || letter == ' ' || letter.is_ascii_graphic();
        assert!(why.chars().all(is_plain), "{why:?}");
        told.push(line);
    };
    run(
        &policy,
        counters,
        BufReader::new(requests),
        &mut answers,
        wrong,
    )
    .unwrap();
    let answers = String::from_utf8(answers).unwrap();
    (answers.lines().map(str::to_owned).collect(), told)
}

#[track_caller]
fn check(request: &str, answer: &str) {
    let (found, told) = answers(request.as_bytes());
    assert_eq!((found, told), (vec![answer.to_owned()], vec![]));
}

#[test]
fn an_answer_says_which_counter_decided_and_why() {
    check(
        r#"{"t":0,"domain":"B.a.com","key_hash":null}"#,
        r#"{"allow":true,"rule":"domain","counter":"a.com","count":0,"limit":2,"reason":"its counter has room"}"#,
    );
    check(
        r#"{"t":0,"domain":"a.b.org"}"#,
        r#"{"allow":true,"rule":"public","counter":"b.org","count":0,"limit":1,"reason":"its counter has room"}"#,
    );
    let key = "a".repeat(64);
    check(
        &format!(
            r#"{{"key_hash":"{}","domain":"1.2.3.4","t":0}}"#,
            key.to_uppercase()
        ),
        &format!(
            r#"{{"allow":true,"rule":"key","counter":"{key}","count":0,"limit":1,"reason":"its counter has room"}}"#
        ),
    );
    let refused = |reason: &str| {
        format!(
            r#"{{"allow":false,"rule":null,"counter":null,"count":null,"limit":null,"reason":"{reason}"}}"#
        )
    };
    check(
        r#"{"t":0}"#,
        &refused("its key has no rule, and no domain was proved"),
    );
    check(
        r#"{"t":0,"domain":"com"}"#,
        &refused("it is a public suffix, below which others register names"),
    );
    check(
        r#"{"t":0,"domain":"1.2.3.4"}"#,
        &refused("it is an IP address, not a name"),
    );
    check(
        r#"{"t":0,"domain":"test.sigsum.org"}"#,
        &refused("it is in test.sigsum.org, whose private key is published"),
    );
}

#[test]
fn answers_come_in_the_order_of_requests_one_each() {
    let requests: String = [(7, "a"), (7, "b"), (8, "a"), (86_406, "a"), (86_407, "a")]
        .iter()
        .map(|(t, label)| format!("\n  \r\n{{\"t\":{t},\"domain\":\"{label}.a.com\"}}\r\n"))
        .collect();
    let (found, told) = answers(requests.as_bytes());
    let outcomes: Vec<_> = found
        .iter()
        .map(|answer| (answer.contains("true"), answer.contains("\"count\":0,")))
        .collect();
    assert_eq!(
        outcomes,
        [
            (true, true),
            (true, false),
            (false, false),
            (false, false),
            (true, true)
        ]
    );
    assert_eq!(told, [] as [u64; 0]);
}

#[test]
fn what_is_no_request_is_answered_with_its_line_and_stops_nothing() {
    let long = format!(r#"{{"t":0,"domain":"{}"}}"#, "a".repeat(LINE_BYTES_MAX));
    // No request is lost silently, even if everything read of it is blank.
    let blank = format!(r#"{}{{"t":0}}"#, " ".repeat(LINE_BYTES_MAX + 1));
    let wrong = [
        "nonsense",
        "[0]",
        "{}",
        r#"{"t":-1}"#,
        r#"{"t":1.5}"#,
        r#"{"t":"1"}"#,
        r#"{"t":0,"t":1}"#,
        r#"{"t":18446744073709551616}"#,
        r#"{"t":-1.0}"#,
        r#"{"t":1e400}"#,
        r#"{"t":null}"#,
        r#"{"t":0,"domain":"a.com","domain":"a.com"}"#,
        r#"{"t":0,"key_hash":7}"#,
        r#"{"t":0,"domain":7}"#,
        r#"{"t":0,"key_hash":"aa"}"#,
        r#"{"t":0} {"t":1}"#,
        long.as_str(),
        blank.as_str(),
    ];
    for line in wrong {
        let text =
            format!("{{\"t\":0,\"domain\":\"a.com\"}}\n{line}\n{{\"t\":0,\"domain\":\"a.com\"}}");
        let (found, told) = answers(text.as_bytes());
        assert_eq!((found.len(), told), (3, vec![2]), "{line}");
        assert!(
            found[1].starts_with(r#"{"allow":false,"rule":null"#),
            "{}",
            found[1]
        );
        assert!(
            found[1].contains("\"reason\":\"line 2: it is "),
            "{}",
            found[1]
        );
        assert!(found[2].contains("\"count\":1"), "{}", found[2]);
    }
}

#[test]
fn what_is_wrong_with_a_line_is_said_plainly() {
    for (line, expect) in [
        ("{}", "t is missing"),
        (r#"{"t":null}"#, "t is missing"),
        (r#"{"t":1.5}"#, "t is not a whole number of seconds"),
        (r#"{"t":"1"}"#, "t is not a whole number of seconds"),
        (r#"{"t":0,"domain":7}"#, "domain is not a text"),
        (
            r#"{"t":0,"key_hash":"aa"}"#,
            "key_hash is not 64 hexadecimal digits",
        ),
        (r#"{"t":0,"t":1}"#, "t, domain or key_hash occurs twice"),
        (r#"{"t":0,}"#, "not a JSON object (column 8)"),
        (r#"{"t":0"#, "not a JSON object (column 6)"),
        ("[0]", "not a JSON object"),
    ] {
        let (found, _) = answers(line.as_bytes());
        let reason = format!("\"reason\":\"line 1: it is not a request: {expect}\"}}");
        assert!(found[0].ends_with(&reason), "{line}: {}", found[0]);
    }
}

#[test]
fn whole_numbers_are_seconds_however_they_are_written_and_other_fields_mean_nothing() {
    let room = r#"{"allow":true,"rule":"domain","counter":"a.com","count":0,"limit":2,"reason":"its counter has room"}"#;
    for t in [
        "0",
        "0.0",
        "-0",
        "1.0",
        "1e3",
        "1.5E1",
        "1e18",
        "18446744073709551615",
    ] {
        let other = r#""host":{"t":[1]},"\u001b":1"#;
        check(&format!(r#"{{"t":{t},"domain":"a.com",{other}}}"#), room);
    }
    // The next window begins at the exact number.
    let (found, told) = answers(
        br#"{"t":1e3,"domain":"a.com"}
{"t":87399.0,"domain":"a.com"}
{"t":8.74e4,"domain":"a.com"}"#,
    );
    let counts: Vec<_> = found
        .iter()
        .map(|answer| answer.contains("\"count\":0,"))
        .collect();
    assert_eq!((counts, told), (vec![true, false, true], vec![]));
}

#[test]
fn a_line_may_be_as_long_as_its_bound_and_no_longer() {
    let of_length = |bytes: usize| {
        let request = r#"{"t":0,"domain":"a.com"}"#;
        format!("{request}{}", " ".repeat(bytes - request.len()))
    };
    for end in ["", "\n", "\n\n"] {
        let text = format!("{}{end}", of_length(LINE_BYTES_MAX));
        assert_eq!(answers(text.as_bytes()).1, [] as [u64; 0]);
        let text = format!("{}{end}", of_length(LINE_BYTES_MAX + 1));
        assert_eq!(answers(text.as_bytes()).1, [1]);
    }
}

/// Returns one request, and before it returns the next checks that the answer has been written.
struct Patient<'a> {
    given: usize,
    seen: &'a std::cell::RefCell<Vec<u8>>,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let answers = self
            .seen
            .borrow()
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        assert_eq!(answers, self.given, "an answer waits for the next request");
        if self.given == 3 {
            return Ok(0);
        }
        self.given += 1;
        // The beginning of the next request arrives in the same read.
        let piece: &[u8] = match self.given {
            1 => b"{\"t\":0}\n{\"t\"",
            2 => b":0}\n{",
            _ => b"\"t\":0}\n",
        };
        buffer[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

struct Seen<'a>(&'a std::cell::RefCell<Vec<u8>>);

impl Write for Seen<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_answer_is_written_before_the_next_request_is_waited_for() {
    let policy = Policy {
        rules: Rules::default(),
        suffixes: Suffixes::compiled(),
        test_domain: TestDomain::Refuse,
    };
    let seen = std::cell::RefCell::default();
    let requests = BufReader::new(Patient {
        given: 0,
        seen: &seen,
    });
    let answers = io::BufWriter::new(Seen(&seen));
    let counters = Counters::new(HashKey([0; 16]));
    run(&policy, counters, requests, answers, |_, _| {}).unwrap();
    assert_eq!(
        seen.borrow().iter().filter(|&&byte| byte == b'\n').count(),
        3
    );
}
