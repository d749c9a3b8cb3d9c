//! Decides whether a character of an untrusted software name may be shown. The caller chooses a
//! replacement.

/// Whether a character ends lines, changes the direction of text, or is invisible: names with it
/// could look like others or disturb the text around them (Unicode's `Bidi_Control`,
/// `Default_Ignorable_Code_Point` where it occurs in names, line and paragraph separators). Feeds
/// and pages both use only this rule, so that a name looks the same in both.
pub fn steers(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_or_turns_text_steers_and_letters_do_not() {
        let steering = "\0\n\u{7f}\u{85}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{2028}\u{2029}\u{202e}\u{2060}\u{2065}\u{2066}\u{2069}\u{feff}";
        for letter in steering
            .chars()
            .chain(['\u{fff9}', '\u{e0001}', '\u{e0fff}'])
        {
            assert!(steers(letter), "{letter:?}");
        }
        for letter in "a.-+ éעא한😀\u{a0}\u{fffd}".chars() {
            assert!(!steers(letter), "{letter:?}");
        }
    }
}
