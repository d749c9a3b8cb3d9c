//! Shortens and cleans software names and versions, which come from strangers.
//!
//! Any text becomes one short line. The templates escape it.

use dump::text::steers;

/// Characters of a name or version that are shown. The longest in use are below 60.
pub const SHOWN_CHARS_MAX: usize = 64;

/// The text for display: at most [`SHOWN_CHARS_MAX`] characters, with `…` as the last one if it was
/// cut. Blanks at its ends are removed, and control and format characters become `U+FFFD`. `None`
/// if nothing is left.
pub fn shown(text: &str) -> Option<String> {
    let mut out = String::new();
    for (at, letter) in text.trim().chars().enumerate() {
        if at.saturating_add(1) == SHOWN_CHARS_MAX
            && text.trim().chars().nth(SHOWN_CHARS_MAX).is_some()
        {
            out.push('…');
            break;
        }
        out.push(if steers(letter) { '\u{fffd}' } else { letter });
    }
    (!out.is_empty()).then_some(out)
}

/// A canonical name in Unicode; `None` if that is the same. Punycode of an invalid label stays
/// unchanged.
pub(crate) fn unicode(host: &str) -> Option<String> {
    if !host.contains("xn--") {
        return None;
    }
    let (name, valid) = idna::domain_to_unicode(host);
    (valid.is_ok() && name != host).then_some(name)
}

/// A word at the beginning of a heading or an option.
pub(crate) fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// A number in groups of three digits with no-break spaces, `1 234 567`: readable in every
/// language.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    out
}

/// A size for people: `12 kB`, `3.4 MB`.
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1_000_000 {
        format!("{}\u{a0}kB", bytes.div_ceil(1000))
    } else {
        let tenths = bytes / 100_000;
        format!("{}.{}\u{a0}MB", tenths / 10, tenths % 10)
    }
}

/// A share in percent, rounded to one decimal: `33.3 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let tenths = u128::from(part)
        .saturating_mul(2000)
        .saturating_add(u128::from(whole))
        .checked_div(u128::from(whole).saturating_mul(2))
        .unwrap_or(0);
    format!("{}.{}\u{a0}%", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: Option<&str>) {
        assert_eq!(shown(text).as_deref(), expect, "{text:?}");
    }

    #[test]
    fn what_steers_is_replaced_and_what_is_long_is_cut() {
        check("mastodon", Some("mastodon"));
        check(" \n ", None);
        check("", None);
        check("a\tb\u{202e}c\0", Some("a\u{fffd}b\u{fffd}c\u{fffd}"));
        check("עברית", Some("עברית"));
        let full = "x".repeat(SHOWN_CHARS_MAX);
        check(&full, Some(&full));
        let cut = format!("{}…", "x".repeat(SHOWN_CHARS_MAX - 1));
        check(&"x".repeat(10_000), Some(&cut));
    }

    #[test]
    fn names_have_their_unicode_letters_where_they_are_valid() {
        for (host, expect) in [
            ("a.example", None),
            ("xn--bcher-kva.example", Some("bücher.example")),
            ("a.xn--bcher-kva.example", Some("a.bücher.example")),
            ("xn--zz.example", None),
            ("axn--b.example", None),
        ] {
            assert_eq!(unicode(host).as_deref(), expect, "{host}");
        }
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        for (number, expect) in [
            (0, "0"),
            (999, "999"),
            (1000, "1\u{a0}000"),
            (1_234_567, "1\u{a0}234\u{a0}567"),
        ] {
            assert_eq!(grouped(number), expect);
        }
        assert_eq!(size(0), "0\u{a0}kB");
        assert_eq!(size(1001), "2\u{a0}kB");
        assert_eq!(size(3_450_000), "3.4\u{a0}MB");
    }

    #[test]
    fn shares_are_rounded_and_a_share_of_nothing_is_none() {
        for (part, whole, expect) in [
            (0, 0, "0.0\u{a0}%"),
            (1, 3, "33.3\u{a0}%"),
            (2, 3, "66.7\u{a0}%"),
            (7, 7, "100.0\u{a0}%"),
            (u64::MAX, u64::MAX, "100.0\u{a0}%"),
        ] {
            assert_eq!(share(part, whole), expect);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_short_line(text in "\\PC{0,200}|.{0,200}") {
            if let Some(shown) = shown(&text) {
                prop_assert!(shown.chars().count() <= SHOWN_CHARS_MAX);
                prop_assert!(!shown.chars().any(steers));
                // Shortening twice changes nothing: counts use the shown text.
                prop_assert_eq!(super::shown(&shown), Some(shown.clone()));
            }
        }
    }
}
