//! Names of software as parts of addresses: of their pages, and of their files.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

/// Letters of a name in its page's address.
const SLUG_CHARS_MAX: usize = 40;

/// Hex digits of a name's hash in its page's address.
const SLUG_HASH_DIGITS: usize = 32;

/// The hash that [`Slugs`] uses. Tests replace it with one that maps all names to the same value.
pub type Hash = fn(&str) -> [u8; 32];

/// SHA-256.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[derive(Debug)]
pub struct Slugs {
    hash: Hash,
    used: HashSet<String>,
}

impl Slugs {
    pub fn new(hash: Hash) -> Self {
        Self {
            hash,
            used: HashSet::new(),
        }
    }

    /// A name as part of an address: lower-case letters, digits and hyphens. If that changes the
    /// name, it ends in `_` and a part of its hash. A slug that is already used gets `-2`, `-3` and
    /// so on.
    pub fn take(&mut self, name: &str) -> String {
        let first = self.slug(name);
        let mut slug = first.clone();
        let mut number = 1_u64;
        // At most as many rounds as there are slugs.
        while !self.used.insert(slug.clone()) {
            number = number.saturating_add(1);
            slug = format!("{first}-{number}");
        }
        slug
    }

    fn slug(&self, name: &str) -> String {
        let kept: String = name
            .chars()
            .filter(|letter| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || *letter == '-'
            })
            .take(SLUG_CHARS_MAX)
            .collect();
        if kept == name && !kept.is_empty() {
            return kept;
        }
        let hash = hex::encode((self.hash)(name));
        let hash: String = hash.chars().take(SLUG_HASH_DIGITS).collect();
        format!("{kept}_{hash}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slug(name: &str) -> String {
        Slugs::new(sha256).take(name)
    }

    #[test]
    fn names_that_share_a_slug_are_numbered() {
        let mut slugs = Slugs::new(|_name| [0xab; 32]);
        let hash = "ab".repeat(16);
        let expect = [
            ("A", format!("_{hash}")),
            ("B", format!("_{hash}-2")),
            ("C", format!("_{hash}-3")),
            ("x-2", "x-2".to_owned()),
            ("aB", format!("a_{hash}")),
        ];
        for (name, slug) in expect {
            assert_eq!(slugs.take(name), slug);
        }
    }

    #[test]
    fn ordinary_names_are_their_own_addresses() {
        assert_eq!(slug("mastodon"), "mastodon");
        assert_eq!(
            slug("../../etc"),
            format!("etc_{}", "74ccf3c5b4c19a8167f9a3d1dd63e0e4")
        );
        assert_ne!(slug("a b"), slug("a_b"));
        assert_ne!(slug("ab"), slug("aB"));
    }

    proptest! {
        #[test]
        fn an_address_is_safe_whatever_the_name(name in ".{0,80}") {
            let slug = slug(&name);
            prop_assert!(!slug.is_empty() && slug.len() <= SLUG_CHARS_MAX + 1 + SLUG_HASH_DIGITS);
            let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-' || letter == '_';
            prop_assert!(slug.chars().all(is_plain));
        }
    }
}
