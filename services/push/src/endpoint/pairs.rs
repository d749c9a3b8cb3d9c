//! Headers of the form `a=b;c=d, e=f`, and base64 in the forms that senders use.

use std::collections::BTreeMap;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};

/// The first section of a header whose sections are separated by commas, or `None` if an item in
/// any section is not a pair.
///
/// Keys are in lower case, quotation marks around values are removed. The first value of a repeated
/// key counts.
pub(super) fn pairs(header: &str) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for item in header
        .split([',', ';'])
        .filter(|item| !item.trim().is_empty())
    {
        let (key, value) = item.split_once('=')?;
        let value = value.trim().trim_matches('"').to_owned();
        found
            .entry(key.trim().to_ascii_lowercase())
            .or_insert(value);
    }
    Some(found)
}

/// Bytes in URL-safe or ordinary base64, with or without padding.
pub(super) fn base64_any(text: &str) -> Option<Vec<u8>> {
    let unpadded = text.trim_end_matches('=').as_bytes();
    BASE64URL_NOPAD
        .decode(unpadded)
        .or_else(|_| BASE64_NOPAD.decode(unpadded))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_from_all_sections() {
        let read = pairs(r#"keyid="p256dh"; Salt=stuff, keyid="other";dh="x=""#).unwrap();
        let expected = [("dh", "x="), ("keyid", "p256dh"), ("salt", "stuff")];
        assert_eq!(
            read,
            expected
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into()
        );
        assert_eq!(pairs("salt=a;junk"), None);
        assert_eq!(pairs(""), Some(BTreeMap::new()));
    }

    #[test]
    fn base64_comes_in_four_forms() {
        for text in ["-_8", "-_8=", "+/8", "+/8="] {
            assert_eq!(base64_any(text), Some(vec![0xfb, 0xff]), "{text}");
        }
        assert_eq!(base64_any("a b"), None);
    }
}
