//! `instances.csv`: RFC 4180 with a header line, for spreadsheets and other programs that read
//! tables.
//!
//! Lines end with CR LF, and fields are quoted where necessary. No field can be a formula for a
//! spreadsheet.
//!
//! Software and version are whatever a host says, and a spreadsheet executes text that begins with
//! `=`, `+`, `-` or `@`. Such text gets a leading apostrophe, which makes it plain text. A
//! spreadsheet that separates fields at semicolons or tabs, the default in much of Europe, finds
//! cells within a field. So text after a semicolon, a tab or a line break is guarded like the field
//! itself.
//!
//! So that every program can undo this, text that begins with an apostrophe gets one too. A reader
//! removes one apostrophe at the beginning and one after each of these separators, and has the
//! original text. An unknown value is empty, and an empty text is a single apostrophe.

use std::io;

use crate::row::ListedRow;
use crate::set::formats::Format;

#[derive(Debug)]
pub(crate) struct Csv;

/// Marks what follows as text. Readers remove it.
const APOSTROPHE: char = '\'';

/// Characters other than the comma that a spreadsheet may read as the end of a field or a line.
const PARTS_CELLS: [char; 4] = [';', '\t', '\r', '\n'];

impl Format for Csv {
    fn head(&self) -> &'static [u8] {
        b"host,software,version,state,first_seen,last_alive,open_registrations,variant\r\n"
    }

    fn row(&self, _earlier: u64, row: &ListedRow, out: &mut Vec<u8>) -> io::Result<()> {
        let (first_seen, last_alive) = (row.first_seen.to_string(), row.last_alive.to_string());
        let instance = &row.instance;
        let fields = [
            Some(row.host.as_str()),
            instance.software.as_deref(),
            instance.version.as_deref(),
            Some(row.state.as_str()),
            Some(&first_seen),
            Some(&last_alive),
            instance.open_registrations.map(word),
            instance.variant.as_deref(),
        ];
        push_csv_line(fields, out);
        Ok(())
    }

    fn tail(&self) -> &'static [u8] {
        b""
    }
}

fn word(truth: bool) -> &'static str {
    if truth { "true" } else { "false" }
}

/// Appends a line. No field is a formula for a spreadsheet.
pub fn push_csv_line<'f>(fields: impl IntoIterator<Item = Option<&'f str>>, out: &mut Vec<u8>) {
    for (number, field) in fields.into_iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        push_field(field, out);
    }
    out.extend_from_slice(b"\r\n");
}

fn push_field(field: Option<&str>, out: &mut Vec<u8>) {
    let Some(text) = field else {
        return;
    };
    let guarded = guarded(text);
    if guarded.contains(['"', ',', '\r', '\n']) {
        out.push(b'"');
        out.extend_from_slice(guarded.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(guarded.as_bytes());
    }
}

/// Puts an apostrophe before everything that a spreadsheet could execute.
fn guarded(text: &str) -> String {
    let mut out = String::new();
    if text.is_empty() || text.starts_with(char::is_control) || needs_apostrophe(text) {
        out.push(APOSTROPHE);
    }
    for (number, cell) in text.split_inclusive(PARTS_CELLS).enumerate() {
        // Spreadsheets remove quotes at the beginning of a cell before they read it.
        let unquoted = cell.trim_start_matches(|letter| is_blank(letter) || letter == '"');
        if number > 0 && (needs_apostrophe(cell) || needs_apostrophe(unquoted)) {
            out.push(APOSTROPHE);
        }
        out.push_str(cell);
    }
    out
}

/// Some spreadsheets skip blanks, control characters and a byte order mark before a formula, and
/// read full-width signs as the ordinary ones.
fn needs_apostrophe(text: &str) -> bool {
    let after_blanks = text.trim_start_matches(is_blank);
    text.starts_with(APOSTROPHE)
        || after_blanks.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
}

fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || letter == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use protocol::Instance;

    use super::*;
    use crate::set::formats::written;

    fn row(software: Option<&str>, version: Option<&str>) -> ListedRow {
        let instance = Instance {
            software: software.map(str::to_owned),
            version: version.map(str::to_owned),
            ..Instance::default()
        };
        ListedRow {
            instance,
            ..ListedRow::example("a.example")
        }
    }

    fn line(row: ListedRow) -> String {
        let text = String::from_utf8(written(&Csv, &[row])).unwrap();
        let head = str::from_utf8(Csv.head()).unwrap();
        text.strip_prefix(head).unwrap().to_owned()
    }

    #[track_caller]
    fn check(software: Option<&str>, version: Option<&str>, expect: &str) {
        let line = line(row(software, version));
        let fields = line.strip_prefix("a.example,").unwrap();
        let (fields, _) = fields.split_once(",alive,1970-01-01T00:00:00Z,").unwrap();
        assert_eq!(fields, expect, "{line}");
    }

    #[test]
    fn registrations_are_a_word_or_nothing() {
        for (said, expect) in [(Some(true), "true"), (Some(false), "false"), (None, "")] {
            let mut row = row(Some("mastodon"), None);
            row.instance.open_registrations = said;
            assert_eq!(line(row).trim_end().split(',').nth(6), Some(expect));
        }
    }

    #[test]
    fn what_is_no_plain_text_is_quoted() {
        check(Some("mastodon"), Some("4.4.0"), "mastodon,4.4.0");
        check(
            Some("a,b"),
            Some("\"c\"\r\nd"),
            "\"a,b\",\"\"\"c\"\"\r\nd\"",
        );
        check(Some("a\rb"), Some("a\nb"), "\"a\rb\",\"a\nb\"");
        check(None, None, ",");
    }

    #[test]
    fn no_text_is_a_formula() {
        for text in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            " =1",
            "\u{feff}=1",
            "＝1",
            "\u{0}=1",
            "\tx",
        ] {
            check(Some(text), None, &format!("'{text},"));
        }
        check(Some("=\"x\""), None, "\"'=\"\"x\"\"\",");
        // The original text can still be recovered.
        check(Some("'=1"), Some("'"), "''=1,''");
        check(Some("\t=1"), Some("\t'x"), "'\t'=1,'\t''x");
        check(Some(""), Some(" "), "', ");
        check(Some("a=1"), Some(" 4.0"), "a=1, 4.0");
    }

    #[test]
    fn no_cell_that_other_separators_make_is_a_formula() {
        check(Some("1;=A1"), Some("1\t+1"), "1;'=A1,1\t'+1");
        check(Some("1; @A1"), Some("1;\t-1"), "1;' @A1,1;\t'-1");
        check(
            Some("1\n=A1"),
            Some("1\r\n=A1"),
            "\"1\n'=A1\",\"1\r\n'=A1\"",
        );
        check(
            Some("1;\"=A1\""),
            Some("1;＝A1"),
            "\"1;'\"\"=A1\"\"\",1;'＝A1",
        );
        check(Some(";=A1"), Some(";;=1"), ";'=A1,;;'=1");
        check(Some("1;'=A1"), Some("1;'"), "1;''=A1,1;''");
        // Text that is not a formula stays unchanged.
        check(Some("a;b"), Some("1;2\t3;"), "a;b,1;2\t3;");
    }
}
