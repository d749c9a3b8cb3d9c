//! robots.txt: what we may request (RFC 9309).
//!
//! Turns the answer to the first request into [`Rules`], which decide on every later request. HTML,
//! a byte order mark and Latin-1 give no rules and no error. Of a file over its bound, all whole
//! lines count.

use robotxt::Robots;
use url::Url;

/// The product token under which a robots.txt names us, in any case.
pub const TOKEN: &str = "Fedicensus";

/// What robots.txt allows us to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rules {
    /// There is no such file, so all is allowed.
    AllowAll,
    /// The file's groups for us, or for everybody.
    Groups(Box<Robots>),
}

/// Whether a file was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The file was read to its end.
    Whole,
    /// The file is over its bound; what was read may end in the middle of a line.
    Cut,
}

impl Rules {
    /// Parses a file. Never fails: lines that are no rule are skipped.
    pub fn parse(file: &[u8], extent: Extent) -> Self {
        let decoded = from_utf_16(file);
        let file = decoded.as_deref().unwrap_or(file);
        let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        let file = match extent {
            Extent::Whole => file,
            Extent::Cut => whole_lines(file),
        };
        // The parser keeps a record of every line and a parsed URL of every sitemap. A file of
        // nothing but line ends would cost 30 times its size. So it only gets the lines that
        // matter.
        let mut rules = Vec::new();
        for line in file.split(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
            if matters(line) {
                rules.extend_from_slice(product_only(line));
                rules.push(b'\n');
            }
        }
        Self::Groups(Box::new(Robots::parse(&rules, TOKEN)))
    }

    /// Whether we may request `url`, an address of the file's own host.
    pub fn allow(&self, url: &Url) -> bool {
        match self {
            Self::AllowAll => true,
            Self::Groups(robots) => robots.is_url_allowed(url),
        }
    }
}

/// A UTF-16 file as UTF-8, since some editors on Windows write UTF-16. `None` if the file has no
/// UTF-16 byte order mark, the only sign that it is not other text.
fn from_utf_16(file: &[u8]) -> Option<Vec<u8>> {
    let (text, unit): (_, fn([u8; 2]) -> u16) = match file {
        [0xff, 0xfe, text @ ..] => (text, u16::from_le_bytes),
        [0xfe, 0xff, text @ ..] => (text, u16::from_be_bytes),
        _ => return None,
    };
    let units = text.as_chunks().0.iter().map(|bytes| unit(*bytes));
    let letters = char::decode_utf16(units);
    let text: String = letters
        .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    Some(text.into_bytes())
}

/// The file without its unfinished last line: a cut rule could forbid more than the whole one.
fn whole_lines(file: &[u8]) -> &[u8] {
    let end = file
        .iter()
        .rposition(|byte| matches!(byte, b'\n' | b'\r' | 0));
    end.and_then(|end| file.get(..end)).unwrap_or_default()
}

/// The spellings of `user-agent` that the parser knows, in lower case.
const AGENT_KEYS: [&[u8]; 3] = [b"user-agent", b"user agent", b"useragent"];

/// Cuts a `user-agent` line at the first byte that can't belong to a product token (RFC 9309
/// §2.2.1). Owners copy the whole string from their logs, or write `Fedicensus*`, and mean us all
/// the same. Other lines stay unchanged.
fn product_only(line: &[u8]) -> &[u8] {
    let key = line.trim_ascii_start();
    let value = AGENT_KEYS.iter().find_map(|agent| {
        let (key, value) = key.split_at_checked(agent.len())?;
        key.eq_ignore_ascii_case(agent).then_some(value)
    });
    let Some(value) = value else {
        return line;
    };
    let is_before = |byte: &&u8| matches!(byte, b' ' | b'\t' | b':');
    let before = value.iter().take_while(is_before).count();
    let is_token = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
    let product = value.get(before..).unwrap_or_default();
    let token = match product {
        [b'*', next, ..] if is_token(&next) => 0,
        [b'*', ..] => 1,
        _ => product.iter().take_while(is_token).count(),
    };
    let cut = line.len().saturating_sub(product.len());
    line.get(..cut.saturating_add(token)).unwrap_or(line)
}

/// Whether a line can be a `user-agent`, `allow`, `disallow` or `crawl-delay` line, in any case and
/// with some misspellings.
fn matters(line: &[u8]) -> bool {
    line.trim_ascii_start()
        .first()
        .is_some_and(|byte| matches!(byte.to_ascii_lowercase(), b'u' | b'a' | b'd' | b'c'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};

    fn check(file: &[u8], path: &str, expect: bool) {
        let rules = Rules::parse(file, Extent::Whole);
        let url = Url::parse("https://a.example").unwrap().join(path).unwrap();
        assert_eq!(
            rules.allow(&url),
            expect,
            "{path} of {}",
            String::from_utf8_lossy(file)
        );
    }

    const WELL_KNOWN: &str = "/.well-known/nodeinfo";

    #[test]
    fn our_group_counts_in_any_case_and_before_everybodys() {
        check(b"User-agent: *\nDisallow: /", WELL_KNOWN, false);
        check(b"User-agent: fedicensus\nDisallow: /", WELL_KNOWN, false);
        check(b"User-Agent: FEDICENSUS\nDisallow: /", WELL_KNOWN, false);
        check(
            b"User-agent: *\nDisallow: /\n\nUser-agent: Fedicensus\nAllow: /",
            WELL_KNOWN,
            true,
        );
        check(
            b"User-agent: fedicensus\nuser-agent: other\nDisallow: /nodeinfo/",
            "/nodeinfo/2.0",
            false,
        );
        check(b"User-agent: GPTBot\nDisallow: /", WELL_KNOWN, true);
        check(b"User-agent: GPTBot/1.0\nDisallow: /", WELL_KNOWN, true);
        check(
            b"User-agent: Fedicensus/0.1.0\nDisallow: /",
            WELL_KNOWN,
            false,
        );
        check(
            b"user-agent:Fedicensus/0.1.0 (+https://a.example/)\nDisallow: /",
            WELL_KNOWN,
            false,
        );
        for agent in [
            "user-agent: Fedicensus*",
            "User-Agent : fedicensus;",
            "useragent: Fedicensus,other",
            "User agent: Fedicensus2",
            "user-agent Fedicensus/0.1.0",
            "\tuser-agent:\tFedicensus\u{a0}",
            "User-agent: */1.0",
        ] {
            let file = format!("{agent}\nDisallow: /");
            check(file.as_bytes(), WELL_KNOWN, false);
        }
        for agent in [
            "Fedicensus-images",
            "Fedi*",
            "*bot",
            "xFedicensus",
            "2Fedicensus",
            "/Fedicensus",
        ] {
            let file = format!("User-agent: {agent}\nDisallow: /");
            check(file.as_bytes(), WELL_KNOWN, true);
        }
        check(
            b"User-agent: *\nDisallow: /fedicensus/1\nAllow: /",
            "/fedicensus/1",
            false,
        );
    }

    #[test]
    fn queries_are_asked_with_their_path() {
        check(b"User-agent: *\nDisallow: /*?page=", "/api?page=2", false);
        check(b"User-agent: *\nDisallow: /*?page=", "/api", true);
    }

    #[test]
    fn odd_files_are_borne() {
        check(b"\xff\xfe", "/x", true);
        check(b"\xff\xfe\x00\xd8U", "/x", true);
        check(b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /\r\n", "/x", false);
        check(b"User-agent: *\rDisallow: /", "/x", false);
        check(b"# caf\xe9\nUser-agent: *\nDisallow: /caf\xe9", "/x", true);
        check(b"<!DOCTYPE html>\n<a href=\"/\">x</a>", "/x", true);
        check(b"", "/x", true);
        check(b"Disallow: /", "/x", true);
    }

    #[test]
    fn a_cut_rule_never_counts() {
        let rules = Rules::parse(b"User-agent: *\nDisallow: /x/\nDisallow: /", Extent::Cut);
        let url = Url::parse("https://a.example/y").unwrap();
        assert!(rules.allow(&url));
        assert_eq!(whole_lines(b"no end"), b"");
    }

    #[test]
    fn a_file_of_its_full_size_is_parsed_quickly() {
        let mut many = b"User-agent: *\n".to_vec();
        while many.len() < 500 * 1024 {
            many.extend_from_slice(b"allow:*a*\n");
        }
        let url = Url::parse(&format!("https://a.example/{}", "b".repeat(2000))).unwrap();
        // The CPU time of this thread only, so that other work on the machine can't fail the test.
        let spent_s = || clock_gettime(ClockId::ThreadCPUTime).tv_sec;
        let before = spent_s();
        assert!(Rules::parse(&many, Extent::Whole).allow(&url));
        let lines = vec![b'\n'; 500 * 1024];
        assert!(Rules::parse(&lines, Extent::Whole).allow(&url));
        assert!(spent_s() - before < 10);
    }
}
