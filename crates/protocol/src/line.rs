//! Parses a line of any of our wires: an object with one key, whose value is an object.
//!
//! Turns the bytes of a line into an enum. Beyond what serde rejects, it rejects an array instead
//! of the inner object. Serde would read the array's elements as the fields in order, so a line
//! without keys would be valid.

use serde::de::{DeserializeOwned, Error as _};

/// Parses a line of a wire whose values are enums with named fields.
pub fn parse_line<T: DeserializeOwned>(line: &[u8]) -> Result<T, serde_json::Error> {
    let value = serde_json::from_slice(line)?;
    if inner_is_object(line) {
        Ok(value)
    } else {
        Err(serde_json::Error::custom("fields without keys"))
    }
}

/// Whether the value at an object's only key is an object. The line is known to be JSON.
fn inner_is_object(line: &[u8]) -> bool {
    let key = line
        .trim_ascii_start()
        .strip_prefix(b"{")
        .and_then(|rest| rest.trim_ascii_start().strip_prefix(b"\""));
    let Some(key) = key else { return false };
    // Our keys hold no quote. A key with an escaped quote is skipped byte by byte.
    let Some(end) = key.iter().position(|&byte| byte == b'"') else {
        return false;
    };
    let value = key
        .get(end.saturating_add(1)..)
        .and_then(|rest| rest.trim_ascii_start().strip_prefix(b":"));
    value.is_some_and(|value| value.trim_ascii_start().starts_with(b"{"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;

    #[test] // S10
    fn fields_without_keys_are_no_event() {
        for line in [
            r#"{"refused":[403,null]}"#,
            r#"{"gone":[]}"#,
            r#" { "done" : [1,2,3] } "#,
            r#"["gone",{}]"#,
            r#""gone""#,
        ] {
            assert!(parse_line::<Event>(line.as_bytes()).is_err(), "{line}");
        }
        for line in [
            r#"{"gone":{}}"#,
            " {\t\"gone\" :\r\n{ } } ",
            r#"{"\u0067one":{}}"#,
        ] {
            assert_eq!(
                parse_line::<Event>(line.as_bytes()).ok(),
                Some(Event::Gone {}),
                "{line}"
            );
        }
    }
}
