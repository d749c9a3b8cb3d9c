//! Whether an account wants to be found, according to its profile.

/// Hashtags in profiles that ask programs to leave the account alone. Case and the word's end are
/// ignored.
const MARKERS: [&str; 7] = [
    "#nobot",
    "#nobots",
    "#noindex",
    "#noarchive",
    "#nocrawl",
    "#nosearch",
    "#noscrape",
];

/// Whether a profile's text holds a marker. Servers write hashtags as links, so HTML tags are
/// skipped.
pub(super) fn refuses(text: &str) -> bool {
    let mut plain = String::new();
    let mut is_tag = false;
    for letter in text.chars() {
        match letter {
            '<' => is_tag = true,
            '>' => is_tag = false,
            _ if is_tag => {}
            _ => plain.extend(letter.to_lowercase()),
        }
    }
    // A lone `<` is no tag, and must not hide the text after it.
    let lower = text.to_lowercase();
    MARKERS
        .iter()
        .any(|marker| plain.contains(marker) || lower.contains(marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_found_however_it_is_written() {
        for text in [
            "#nobot",
            "Hello. #NoBots please",
            "<p>I paint. <a href=\"https://a.example/tags/nobot\" class=\"mention hashtag\">#<span>nobot</span></a></p>",
            "1 < 2 #noindex",
            "#nobot\u{e4}",
        ] {
            assert!(refuses(text), "{text}");
        }
        for text in [
            "",
            "I build bots",
            "nobot",
            "# nobot",
            "<p>#<b>robot</b></p>",
        ] {
            assert!(!refuses(text), "{text}");
        }
    }
}
