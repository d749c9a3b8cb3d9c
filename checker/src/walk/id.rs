//! A server's own id of a post or an account.

/// An id that fits an address or JSON without escaping: 1 to [`Id::BYTES_MAX`] letters, digits, `-`
/// or `_`. Mastodon's are numbers, Pleroma's and Misskey's are letters and digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(String);

impl Id {
    /// The longest in use have 32.
    const BYTES_MAX: usize = 64;

    /// The id in this text, if it is one.
    pub(super) fn parse(text: String) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_id = !text.is_empty() && text.len() <= Self::BYTES_MAX && text.bytes().all(fits);
        is_id.then_some(Self(text))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
