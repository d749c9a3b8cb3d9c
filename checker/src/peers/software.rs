//! How each software publishes its peers: rows for lists at fixed paths, and a module with a
//! function `collect` for the rest.

pub(super) mod lemmy;
pub(super) mod mastodon;
pub(super) mod misskey;
pub(super) mod nodeinfo;
pub(super) mod piefed;
pub(super) mod pixelfed;

use super::feed::{Session, Stop};
use super::page::Shape;
use crate::documents::nodeinfo::About;

/// Software that publishes its peers in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A flat list at Mastodon's path.
    Mastodon,
    /// Mastodon's list; where that is missing, pages by POST.
    Misskey,
    Lemmy,
    /// Lemmy's list under another path.
    PieFed,
    /// Mastodon's list, empty if hidden.
    Pixelfed,
    /// Lists at fixed paths.
    Rows,
    /// Unknown software that speaks `ActivityPub`: what its NodeInfo names, as a relay's does,
    /// otherwise one try at Mastodon's path.
    Unknown,
    /// Software without an endpoint: what its NodeInfo names, if anything.
    Silent,
}

impl Family {
    /// The family of a software; `Unknown` or `Silent` by its protocols if no other matches.
    pub fn of(about: &About) -> Self {
        match about.software() {
            "mastodon" | "hometown" | "glitchcafe" | "pleroma" | "akkoma" | "rebased"
            | "gotosocial" | "bookwyrm" | "smithereen" | "wildebeest" | "takahe" | "mitra"
            | "snac" | "snac2" | "friendica" | "iceshrimp.net" | "kmyblue" => Self::Mastodon,
            "misskey" | "calckey" | "firefish" | "sharkey" | "foundkey" | "cherrypick"
            | "iceshrimp" | "catodon" | "meisskey" | "nexkey" => Self::Misskey,
            "lemmy" => Self::Lemmy,
            "piefed" => Self::PieFed,
            "pixelfed" => Self::Pixelfed,
            other if endpoints(other).next().is_some() => Self::Rows,
            "gnusocial" | "gnu social" | "gnu-social" | "diaspora" | "writefreely"
            | "wordpress" | "mobilizon" | "nodebb" | "discourse" | "matrix" | "synapse"
            | "dendrite" | "conduit" => Self::Silent,
            _ if about.activitypub => Self::Unknown,
            _ => Self::Silent,
        }
    }
}

/// A list at a fixed path. A software with several has a row for each.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// The software that has it, as NodeInfo names it.
    software: &'static [&'static str],
    /// Its path and query, with `{}` where the page stands.
    path: &'static str,
    paging: Paging,
    pub(super) shape: Shape,
}

/// How a list is divided. The requests of a check bound the number of pages.
#[derive(Debug)]
enum Paging {
    Whole,
    /// By the elements before a page. One with fewer elements than this is the last.
    Start(u64),
    /// By a page's number, from 1. The last one names no next page, or is empty. The address of
    /// the next page is never followed, because it could lead anywhere.
    Number,
}

/// The rows. Lists of followers that are about people are never requested, nor are those of
/// defederated and dead instances.
pub(super) static ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        software: &["mbin", "kbin"],
        path: "/api/federated",
        paging: Paging::Whole,
        shape: Shape::of(&["instances"], &["domain"]),
    },
    // One of the two hosts of an element is the host itself, which the sink leaves out.
    Endpoint {
        software: &["peertube"],
        path: "/api/v1/server/following?start={}&count=100&state=accepted",
        paging: Paging::Start(100),
        shape: Shape {
            inside: &["following"],
            ..Shape::of(&["data"], &["host"])
        },
    },
    Endpoint {
        software: &["peertube"],
        path: "/api/v1/server/followers?start={}&count=100&state=accepted",
        paging: Paging::Start(100),
        shape: Shape {
            inside: &["follower"],
            ..Shape::of(&["data"], &["host"])
        },
    },
    Endpoint {
        software: &["funkwhale"],
        path: "/api/v1/federation/domains?page={}&page_size=100",
        paging: Paging::Number,
        shape: Shape {
            cursors: &["next"],
            ..Shape::of(&["results"], &["name"])
        },
    },
    // Since 0.3: the servers that it follows.
    Endpoint {
        software: &["owncast"],
        path: "/api/federation/servers",
        paging: Paging::Whole,
        shape: Shape::of(&["servers"], &["iri"]),
    },
    // The hubs whose channels it has met.
    Endpoint {
        software: &["hubzilla", "red", "redmatrix"],
        path: "/sitelist?start={}&limit=500&order=url",
        paging: Paging::Start(500),
        shape: Shape::of(&["entries"], &["url"]),
    },
];

pub(super) fn endpoints(software: &str) -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS
        .iter()
        .filter(move |endpoint| endpoint.software.contains(&software))
}

/// Requests the lists of this software, each of them even if one before is refused.
pub(super) async fn collect(session: &mut Session<'_>, software: &str) -> Result<(), Stop> {
    let mut ended = Ok(());
    for endpoint in endpoints(software) {
        let pages = pages(session, endpoint).await;
        if pages == Err(Stop::Truncated) {
            return pages;
        }
        ended = ended.and(pages);
    }
    ended
}

async fn pages(session: &mut Session<'_>, endpoint: &'static Endpoint) -> Result<(), Stop> {
    let (mut number, mut start) = (1_u64, 0_u64);
    loop {
        let place = match endpoint.paging {
            Paging::Whole | Paging::Number => number,
            Paging::Start(_) => start,
        };
        let path = endpoint.path.replace("{}", &place.to_string());
        let page = session.get(&path, &endpoint.shape).await?;
        let is_last = match endpoint.paging {
            Paging::Whole => true,
            Paging::Start(full) => page.items < full,
            Paging::Number => page.next.is_none() || page.items == 0,
        };
        if is_last {
            return Ok(());
        }
        number = number.saturating_add(1);
        start = start.saturating_add(page.items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(software: &str, activitypub: bool, expect: Family) {
        let about = About {
            instance: kit::software(software, "1.0"),
            activitypub,
            document: Vec::new(),
        };
        assert_eq!(Family::of(&about), expect, "{software}");
    }

    #[test]
    fn family_follows_software_and_protocols() {
        check("mastodon", true, Family::Mastodon);
        check("sharkey", true, Family::Misskey);
        check("kbin", true, Family::Rows);
        check("nodebb", true, Family::Silent);
        check("something new", true, Family::Unknown);
        check("something new", false, Family::Silent);
    }
}
