//! Makes a host's bytes safe for logs, reasons and terminals.

use std::fmt::Write as _;

/// Escapes the start of `bytes`: printable ASCII stays, every other byte becomes `\x..`. The output
/// has at most `bytes_max` bytes.
///
/// Output that was cut ends in `…`. Use this for everything from a host or a checker that is shown
/// or stored.
pub fn escaped(bytes: &[u8], bytes_max: usize) -> String {
    let mut shown = String::new();
    for &byte in bytes {
        let before = shown.len();
        if byte == b'\\' {
            shown.push_str("\\\\");
        } else if byte == b' ' || byte.is_ascii_graphic() {
            shown.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            write!(shown, "\\x{byte:02x}").ok();
        }
        if shown.len() > bytes_max {
            shown.truncate(before);
            shown.push('…');
            return shown;
        }
    }
    shown
}

/// Whether a text can be shown unchanged: printable ASCII, optionally with the `…` of a cut at its
/// end.
///
/// Escaping is not idempotent. So a text that a checker should have escaped is escaped again only
/// if this is false.
pub fn is_shown_safely(text: &str) -> bool {
    let text = text.strip_suffix('…').unwrap_or(text);
    text.bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_bytes_never_reach_a_terminal() {
        assert_eq!(escaped(b"a\x1b[2J\n\xff\\", 100), "a\\x1b[2J\\x0a\\xff\\\\");
    }

    #[test]
    fn what_was_escaped_is_shown_safely_and_nothing_else() {
        for text in ["", "a.example", "ftp://x y/\\x1b", "abc…"] {
            assert!(is_shown_safely(text), "{text}");
        }
        for text in ["\u{1b}[2J", "a\nb", "é", "a…b", "……", "\u{7f}"] {
            assert!(!is_shown_safely(text), "{text:?}");
        }
        assert!(is_shown_safely(&escaped(
            "é\0\u{1b}…".repeat(99).as_bytes(),
            200
        )));
    }

    #[test]
    fn output_is_bounded_and_says_that_it_was_cut() {
        assert_eq!(escaped(b"abcdef", 3), "abc…");
        assert_eq!(escaped(b"ab\n", 3), "ab…");
    }
}
