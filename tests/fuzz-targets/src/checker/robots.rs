//! robots.txt: junk before, after or between rules changes nothing, and an owner's rule at the end
//! applies whatever precedes it.

use checker::robots::{Extent, Rules};
use url::Url;

const PATHS: [&str; 4] = [
    "/.well-known/nodeinfo",
    "/nodeinfo/2.0",
    "/api/v1/instance/peers?a=%20b",
    "/",
];

pub fn check(file: &[u8]) {
    let rules = Rules::parse(file, Extent::Whole);
    let allowed = answers(&rules);
    let commented = [&b"# by hand\r\n\n"[..], file].concat();
    // The first bytes of a file are its encoding, and only there.
    let marks = [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"];
    if !marks.iter().any(|mark| file.starts_with(mark)) {
        let marked = [&b"\xef\xbb\xbf"[..], file].concat();
        assert_eq!(answers(&Rules::parse(&marked, Extent::Whole)), allowed);
        assert_eq!(answers(&Rules::parse(&commented, Extent::Whole)), allowed);
    }
    let dos = file
        .split(|&byte| byte == b'\n')
        .collect::<Vec<_>>()
        .join(&b"\r\n"[..]);
    assert_eq!(answers(&Rules::parse(&dos, Extent::Whole)), allowed);

    // A cut file counts as its complete lines.
    let end = file
        .iter()
        .rposition(|byte| matches!(byte, b'\n' | b'\r' | 0));
    let whole_lines = end.map_or(&b""[..], |end| &file[..end]);
    assert_eq!(
        answers(&Rules::parse(file, Extent::Cut)),
        answers(&Rules::parse(whole_lines, Extent::Whole))
    );

    let opted_out = [file, b"\nUser-agent: Fedicensus/9 (+x)\nDisallow: /\n"].concat();
    if !may_allow(file) {
        let answers = answers(&Rules::parse(&opted_out, Extent::Whole));
        assert_eq!(answers, [false; PATHS.len()], "the owner's word was lost");
    }
}

fn answers(rules: &Rules) -> [bool; PATHS.len()] {
    let origin = Url::parse("https://own.example").expect("an address");
    PATHS.map(|path| rules.allow(&origin.join(path).expect("an address")))
}

/// Whether a line could be an `allow` rule: it must begin with an `a`.
fn may_allow(file: &[u8]) -> bool {
    file.split(|byte| matches!(byte, b'\n' | b'\r' | 0))
        .any(|line| {
            line.trim_ascii_start()
                .first()
                .is_none_or(|byte| byte.eq_ignore_ascii_case(&b'a') || !byte.is_ascii())
                && !line.trim_ascii().is_empty()
        })
}
