//! What one answer of a walk says, the same for every software. It leaves out accounts that do not
//! want to be found.

use protocol::Host;
use url::Url;

use super::id::Id;

/// Most posts, and most accounts, that are read from one answer. A full thread has a hundred.
pub(super) const ELEMENTS_MAX: usize = 200;

/// Path segments that a post's address has at least. A shorter path is something else, such as a
/// server's front page.
const SEGMENTS_MIN: usize = 2;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) posts: Vec<Post>,
    /// Accounts that favoured or reacted to a post.
    pub(super) accounts: Vec<Account>,
}

/// A post as this server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Post {
    pub(super) id: Id,
    /// The host of its URI, which can differ from its author's.
    pub(super) origin: Option<Host>,
    pub(super) author: Account,
    /// Whether the post answers another or has answers.
    pub(super) has_thread: bool,
    /// Whether somebody favoured it or reacted to it.
    pub(super) is_favoured: bool,
    /// The post that this one boosts.
    pub(super) boosted: Option<Box<Self>>,
}

/// An account that may be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) id: Id,
    /// `None` if the account is local to the server.
    pub(super) host: Option<Host>,
}

/// The host that a post's URI names.
pub(super) fn origin(uri: &str) -> Option<Host> {
    let url = Url::parse(uri).ok()?;
    let segments = url.path_segments()?.filter(|segment| !segment.is_empty());
    if url.scheme() != "https" || url.port().is_some() || segments.count() < SEGMENTS_MIN {
        return None;
    }
    Host::parse(url.host_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posts_uri_names_its_host_and_nothing_else_does() {
        let check = |uri: &str, expect: Option<&str>| {
            let found = origin(uri);
            assert_eq!(found.as_ref().map(Host::as_str), expect, "{uri}");
        };
        check("https://a.example/users/x/statuses/7", Some("a.example"));
        check(
            "https://B\u{fc}cher.example/notes/9abc",
            Some("xn--bcher-kva.example"),
        );
        check("https://a.example/x", None);
        check("https://a.example//x/", None);
        check("http://a.example/users/x", None);
        check("https://a.example:8443/users/x", None);
        check("https://127.0.0.1/users/x", None);
        check("tag:a.example,2026:x/y", None);
        check("a.example/users/x", None);
    }
}
