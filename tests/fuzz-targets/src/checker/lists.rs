//! A public list in every format as a stream. The cuts change nothing, items before a break are
//! kept, half a name never becomes another name, only names or a text's lines are returned, and a
//! plain reader finds the same.

use crate::input::{is_canonical, pieces};
use checker::list::fuzzing::{End, Reading, read};
use checker::peers::peer_name;
use protocol::limits::{LINE_BYTES_MAX, PROOF_TEXT_BYTES_MAX};
use protocol::{Event, Host, ListFormat};

const NAMES_MAX: u64 = 40;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub fn check(body: &[u8]) {
    for (_, format) in ListFormat::ALL {
        let whole = read(format, &[body], End::Whole, NAMES_MAX).expect("stdout takes all");
        let all = told(&whole, format);
        assert_eq!(
            read(format, &pieces(body), End::Whole, NAMES_MAX).as_ref(),
            Some(&whole),
            "{format}: it matters how a body is cut"
        );
        // A broken connection loses no earlier item and adds none.
        let half = read(format, &[&body[..body.len() / 2]], End::Cut, NAMES_MAX);
        let half = told(&half.expect("stdout takes all"), format);
        assert!(all.starts_with(&half), "{format}: {half:?} of {all:?}");
        if let Some(expect) = plainly_read(body, format) {
            assert_eq!(all, expect, "{format}");
        }
    }
}

/// The returned names or lines, after checking that nothing else was returned.
fn told(reading: &Reading, format: ListFormat) -> Vec<String> {
    let mut all = Vec::new();
    for line in reading.printed.split_inclusive(|&byte| byte == b'\n') {
        assert!(line.len() <= LINE_BYTES_MAX + 1 && line.ends_with(b"\n"));
        let event: Event = serde_json::from_slice(line).expect("an event");
        assert!(event.is_within_bounds());
        match event {
            Event::Peers { hosts } if !is_text(format) => {
                hosts.iter().for_each(is_canonical);
                all.extend(hosts.iter().map(Host::to_string));
            }
            Event::SuffixLines { lines } if is_text(format) => all.extend(lines),
            other => panic!("a list makes it say {other:?}"),
        }
    }
    assert!(is_text(format) || all.len() as u64 <= NAMES_MAX);
    all
}

fn is_text(format: ListFormat) -> bool {
    matches!(format, ListFormat::Suffixes | ListFormat::Proof)
}

/// The result of a reader with the whole body; `None` for formats that can't be read so simply.
fn plainly_read(body: &[u8], format: ListFormat) -> Option<Vec<String>> {
    let body = match body.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest,
        // A byte order mark that was cut is skipped as well.
        None if BYTE_ORDER_MARK.starts_with(body) => b"",
        None => body,
    };
    match format {
        ListFormat::Lines => {
            let lines = body.split(|&byte| byte == b'\n');
            let names = lines.filter_map(|line| {
                let mut words = str::from_utf8(line)
                    .ok()?
                    .split_whitespace()
                    .take_while(|word| !word.starts_with('#') && !word.starts_with("//"));
                let name = words.next()?;
                let is_alone = words.next().is_none();
                peer_name(name).filter(|_| is_alone)
            });
            Some(names.take(40).map(|name| name.to_string()).collect())
        }
        // This simple reader can't find a proof that is cut at its bound.
        ListFormat::Proof if body.len() >= PROOF_TEXT_BYTES_MAX => None,
        ListFormat::Suffixes | ListFormat::Proof => {
            let text = str::from_utf8(body).ok()?;
            let is_plain = !text.contains(|letter: char| letter.is_control() && letter != '\n');
            let lines = is_plain.then(|| text.lines().map(str::to_owned))?;
            let lines: Vec<String> = lines.collect();
            lines.iter().all(|line| line.len() <= 1024).then_some(lines)
        }
        ListFormat::Json | ListFormat::Ndjson | ListFormat::Csv => None,
    }
}
