//! Splits bytes into lines, each within a bound.
//!
//! Passes on lines without their ends (LF or CR LF). Of a longer line only the fact is reported. A
//! last line without an end is dropped if the body was cut.

use std::io::BufRead;

use crate::peers::sink::Full;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// The line's bytes.
    Whole(&'a [u8]),
    /// The line is over the bound.
    TooLong,
}

/// Passes each line to `each`, until the end, a cut, or until `each` returns an error.
///
/// Holds at most `bytes_max` bytes and the reader's buffer.
pub(super) fn each_line(
    mut reader: impl BufRead,
    bytes_max: usize,
    mut each: impl FnMut(Line<'_>) -> Result<(), Full>,
) {
    let mut line = Vec::new();
    // The rest of a line over the bound is skipped.
    let mut passing = false;
    let mut begun = false;
    loop {
        // The feeding side knows about a cut or a full sink. Half a line is dropped.
        let Ok(bytes) = reader.fill_buf() else { return };
        let is_end = bytes.is_empty();
        let newline = bytes.iter().position(|&byte| byte == b'\n');
        let part = bytes.get(..newline.unwrap_or(bytes.len()));
        let part = part.unwrap_or_default();
        let fits = line.len().saturating_add(part.len()) <= bytes_max;
        if fits && !passing {
            line.extend_from_slice(part);
        }
        let taken = part.len().saturating_add(usize::from(newline.is_some()));
        reader.consume(taken);
        let outcome = if !fits && !passing {
            // At once, because the line's end may never come.
            passing = true;
            line.clear();
            each(Line::TooLong)
        } else if passing || (newline.is_none() && !(is_end && begun)) {
            Ok(())
        } else {
            each(Line::Whole(line.strip_suffix(b"\r").unwrap_or(&line)))
        };
        if outcome.is_err() || is_end {
            return;
        }
        begun = newline.is_none();
        if newline.is_some() {
            passing = false;
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::BufReader;

    fn lines(bytes: &[u8], bytes_max: usize, buffer: usize) -> Vec<Option<String>> {
        let mut found = Vec::new();
        each_line(BufReader::with_capacity(buffer, bytes), bytes_max, |line| {
            found.push(match line {
                Line::Whole(line) => Some(String::from_utf8(line.to_vec()).unwrap()),
                Line::TooLong => None,
            });
            Ok(())
        });
        found
    }

    fn check(text: &str, expect: &[&str]) {
        let expect: Vec<_> = expect
            .iter()
            .map(|line| (*line != "too long").then(|| (*line).to_owned()))
            .collect();
        for buffer in [1, 2, 3, 100] {
            assert_eq!(lines(text.as_bytes(), 4, buffer), expect, "{text:?}");
        }
    }

    #[test]
    fn lines_are_cut_at_their_ends_and_bounded() {
        check("", &[]);
        check("a", &["a"]);
        check("a\nb\r\n\nc\n", &["a", "b", "", "c"]);
        check("1234\n12345\n6\n", &["1234", "too long", "6"]);
        check("123456789", &["too long"]);
        check("\n", &[""]);
    }

    #[test]
    fn who_takes_no_more_gets_no_more() {
        let mut seen = 0;
        each_line(&b"a\nb\nc\n"[..], 10, |_| {
            seen += 1;
            Err(Full)
        });
        assert_eq!(seen, 1);
    }

    proptest! {
        #[test]
        fn how_it_is_cut_changes_nothing(text in "[ab\r\n]{0,60}", buffer in 1_usize..9) {
            prop_assert_eq!(lines(text.as_bytes(), 6, buffer), lines(text.as_bytes(), 6, 1000));
        }
    }
}
