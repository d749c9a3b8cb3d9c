//! Domain names in rules and requests.
//!
//! [`DomainName::parse`] accepts a name of one label or more. It rejects whatever is not a DNS
//! name, so that a rule that could never match is an error. A [`Host`] is something to connect to;
//! a domain, in contrast, may be a bare top-level domain: `domain social 100` is a valid rule.

use std::borrow::{Borrow, Cow};
use std::fmt;

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_normalizer::uts46::Uts46MapperBorrowed;
use protocol::host::TEXT_BYTES_MAX;
use protocol::{Host, HostError, canonical_name};
use thiserror::Error;

/// Longest label in bytes (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// A domain name in canonical form: A-labels, lower case, no trailing dot, at most 253 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainName(Box<str>);

/// Why a text is not a domain name. The text is a sentence about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DomainNameError {
    /// The text is not a host's name either, for a reason other than [`HostError::SingleLabel`].
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(
        "one of its labels is empty, has more than {LABEL_BYTES_MAX} bytes, or contains something other than letters, digits and hyphens between them (such as a space, an underscore or an asterisk)"
    )]
    Label,
    /// It contains a character that UTS 46 drops: two different texts that look alike would be one
    /// name.
    #[error("it contains U+{:04X}, an invisible character that no name may have; remove it", u32::from(*character))]
    Unseen { character: char },
}

impl DomainName {
    /// Parses a domain name: NFKC, then lower case, then A-labels (IDNA 2008 by UTS 46,
    /// non-transitional: `ß` stays). One trailing dot is removed.
    ///
    /// # Errors
    /// Fails if the text is empty, too long or an IP address; if it contains a space, a port, a
    /// path, an empty label, a label of over 63 bytes, or an A-label that differs from its
    /// U-label's; or if it contains a character that UTS 46 would drop and that neither NFKC nor
    /// lower case removes.
    pub fn parse(text: &str) -> Result<Self, DomainNameError> {
        // Normalising may make a text eighteen times as long.
        if text.len() > TEXT_BYTES_MAX {
            return Err(HostError::TooLong.into());
        }
        let text = compatible(text);
        if let Some(character) = text.chars().find(|&character| is_dropped(character)) {
            return Err(DomainNameError::Unseen { character });
        }
        match canonical_name(&text) {
            Ok(name) => Ok(Self(name.into_boxed_str())),
            Err(HostError::Idna) if has_wrong_label(&text) => Err(DomainNameError::Label),
            Err(why) => Err(why.into()),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name is `domain` or lies below it, at a label boundary. `domain` is in
    /// canonical form.
    pub fn is_within(&self, domain: &str) -> bool {
        tails(&self.0).any(|tail| tail == domain)
    }

    /// The name itself, then without its first label, and so on to its last label.
    pub fn tails(&self) -> impl Iterator<Item = &str> {
        tails(&self.0)
    }
}

/// `name`, then `name` without its first label, and so on to its last label.
pub(crate) fn tails(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |tail| {
        tail.split_once('.').map(|(_, parent)| parent)
    })
}

/// Applies NFKC. UTS 46 does so only in part: it rejects some characters that NFKC turns into dots
/// and letters. UTS 46 makes the text lower case.
fn compatible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let composed = ComposingNormalizerBorrowed::new_nfkc().normalize(text);
    // The only full stop of UTS 46 (§2.3) that NFKC keeps. At the end of a name it would count as
    // an empty label.
    Cow::Owned(composed.replace('。', "."))
}

/// Whether UTS 46 drops the character from names. It does not drop joiners: they are part of a
/// name, or make it invalid.
fn is_dropped(character: char) -> bool {
    !character.is_ascii()
        && Uts46MapperBorrowed::new()
            .map_normalize(std::iter::once(character))
            .next()
            .is_none()
}

/// Whether a label breaks the rules for every name (RFC 1123 §2.1, RFC 1035 §2.3.4), apart from
/// IDNA.
fn has_wrong_label(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    text.split('.').any(|label| {
        label.is_empty()
            || (label.is_ascii() && label.len() > LABEL_BYTES_MAX)
            || label.starts_with('-')
            || label.ends_with('-')
            || label
                .bytes()
                .any(|byte| byte.is_ascii() && byte != b'-' && !byte.is_ascii_alphanumeric())
    })
}

impl Borrow<str> for DomainName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for DomainName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&Host> for DomainName {
    fn from(host: &Host) -> Self {
        Self(host.as_str().into())
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
