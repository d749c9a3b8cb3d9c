//! A domain's TXT records, one per line: which keys are tried, in which order, and how many; and
//! where the lookup searches for them.

use std::sync::LazyLock;

use crate::input::{OWN, pieces};
use token::record::RECORDS_TRIED_MAX;
use token::{
    Candidates, Failure, Form, LogKey, Lookup, LookupError, NotFound, SigsumToken, Step,
    TestDomain, TxtAnswer, TxtRecord,
};

/// Sigsum's published token, the log key that it is for, and the key that signed it.
static TOKEN: LazyLock<SigsumToken> = LazyLock::new(|| {
    let value = b"test.sigsum.org 7eb7ebc84046d87b60a885e276bc24854e766dff5be1f21bac96b96eacd02a3d2028fab8d6cbecd7459dbfbb320a9d772c0afe42e9a38e86233e04266219030a";
    let token = SigsumToken::parse(value, TestDomain::Allow).expect("a token");
    token.expect("it is not empty")
});

static LOG_KEY: LazyLock<LogKey> = LazyLock::new(|| {
    let digits = b"cda2517e17dcba133eb0e71bf77473f94a77d7e61b1de4e1e64adfd0938d6182";
    LogKey::from_hex(digits).expect("a key")
});

const KEY: &str = "4cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29";

pub fn check(data: &[u8]) {
    let lines: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
    let records: Vec<_> = lines
        .iter()
        .map(|line| TxtRecord::from_strings([line]))
        .collect();
    for (line, record) in lines.iter().zip(&records) {
        assert_eq!(TxtRecord::from_strings(pieces(line)), *record);
    }
    let candidates = Candidates::from_records(&records);
    let first = &records[..records.len().min(RECORDS_TRIED_MAX)];
    assert_eq!(Candidates::from_records(first).keys(), candidates.keys());

    // Records that look like keys; those that are not curve points are left out.
    let mut likely = lines.iter().take(RECORDS_TRIED_MAX).filter_map(|line| {
        let is_key = line.len() == 64 && line.iter().all(u8::is_ascii_hexdigit);
        is_key.then(|| String::from_utf8_lossy(line).to_ascii_lowercase())
    });
    for key in candidates.keys() {
        let key = key.to_string();
        assert!(likely.any(|line| line == key), "{key} is out of order");
    }

    let is_known = |line: &&[u8]| line.eq_ignore_ascii_case(KEY.as_bytes());
    let is_there = lines.iter().take(RECORDS_TRIED_MAX).any(is_known);
    match TOKEN.verify(&candidates, *LOG_KEY) {
        Ok(submitter) => {
            assert!(is_there);
            assert_eq!(submitter.domain, TOKEN.domain);
        }
        Err(not_signed) => {
            assert!(!is_there);
            assert_eq!(not_signed.tried, candidates.keys().len());
            let all = not_signed.tried + not_signed.malformed + not_signed.untried;
            assert_eq!(all, records.len());
        }
    }
    looked_up(data, &records);
}

/// The data's first bytes are the answers. There are at most two lookups, the second only after an
/// absence, and the error is the first one's.
fn looked_up(data: &[u8], records: &[TxtRecord]) {
    let answer = |place: usize| match data.get(place).map_or(0, |byte| byte % 6) {
        0 => TxtAnswer::Records(records.to_vec()),
        1 => TxtAnswer::Records(Vec::new()),
        2 => TxtAnswer::NotFound(NotFound::NoSuchName),
        3 => TxtAnswer::NotFound(NotFound::NoData),
        4 => TxtAnswer::Failed(Failure::ServerFailed),
        _ => TxtAnswer::Failed(Failure::TimedOut),
    };
    for form in [Form::Own, Form::Sigsum] {
        let lookup = Lookup::begin(form, OWN.clone());
        let first = lookup.name();
        let mut step = lookup.answer(answer(0));
        if let Step::Ask(next) = step {
            assert_eq!(form, Form::Sigsum);
            assert!(!matches!(answer(0), TxtAnswer::Failed(_)));
            assert_eq!(next.name(), format!("_sigsum_v0.{}", *OWN));
            step = next.answer(answer(1));
        }
        match step {
            Step::Ask(next) => panic!("a third question: {}", next.name()),
            Step::Found(found) => assert_eq!(found, records),
            Step::Ended(LookupError::NotFound { name, .. } | LookupError::Failed { name, .. }) => {
                assert_eq!(name, first);
            }
        }
    }
}
