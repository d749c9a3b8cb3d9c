//! NodeInfo documents: what they say about the host.
//!
//! Reads whole documents of at most 2 MiB: the links' addresses, then software, version and three
//! marks. Rejects what is no JSON object, has no supported link, or has no usable `software.name`.
//! Usage statistics are ignored, because nobody can check them.

mod variant;

use protocol::limits::SOFTWARE_BYTES_MAX;
use protocol::{Instance, Private};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use crate::documents::json::{
    JsonError, Members, Object, Scalar, Taken, members, other_scalars, parse_document,
    pass_over_array, read_members,
};
use variant::variant;

/// The path of the document that holds the links, the same on every host.
pub const WELL_KNOWN_PATH: &str = "/.well-known/nodeinfo";

/// What a link's `rel` is, after `http://` or `https://` and before the version. The standard has
/// `http`; Calckey and servers modelled on it write `https`.
const REL: &str = "nodeinfo.diaspora.software/ns/schema/";

const VERSIONS: [&str; 5] = ["1.0", "1.1", "2.0", "2.1", "2.2"];

/// Why a document can't be used.
#[derive(Debug, thiserror::Error)]
pub enum NodeinfoError {
    #[error("the document is not JSON")]
    Json(#[from] JsonError),
    #[error("the document is not NodeInfo")]
    NotNodeinfo,
    #[error("there is no supported link")]
    NoLink,
}

/// What a NodeInfo document says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// As `alive` reports it. `private` is `Yes` if `metadata.private` is `true`, and otherwise
    /// `Unknown`: other documents may hold the flag.
    pub instance: Instance,
    /// `protocols` holds `activitypub`.
    pub activitypub: bool,
    /// The document itself, in which relays name their peers.
    pub document: Vec<u8>,
}

impl About {
    /// `software.name`, in lower case.
    pub fn software(&self) -> &str {
        self.instance.software.as_deref().unwrap_or_default()
    }
}

/// The addresses of the well-known document's links as written there: one for each supported
/// version, the best first. There is at least one.
///
/// # Errors
/// When the document is not JSON, has no `links`, or none of them is supported.
pub fn links(document: &[u8]) -> Result<Vec<String>, NodeinfoError> {
    let pointer = parse_document::<Object<Pointer>>(document)?.0;
    let links = pointer
        .and_then(|pointer| pointer.links)
        .ok_or(NodeinfoError::NotNodeinfo)?;
    let links: Vec<String> = links.by_version.into_iter().rev().flatten().collect();
    match links.is_empty() {
        true => Err(NodeinfoError::NoLink),
        false => Ok(links),
    }
}

pub fn read(document: &[u8]) -> Result<About, NodeinfoError> {
    let root = parse_document::<Object<Root>>(document)?.0;
    let root = root.ok_or(NodeinfoError::NotNodeinfo)?;
    let software = root.software.0.unwrap_or_default();
    let name = software.name.into_text().unwrap_or_default();
    let name = name.trim().to_lowercase();
    if name.is_empty() || name.len() > SOFTWARE_BYTES_MAX || name.contains(char::is_control) {
        return Err(NodeinfoError::NotNodeinfo);
    }
    let version = software.version.into_text();
    let version = version.filter(|version| !version.contains(char::is_control));
    let repository = software.repository.into_text();
    let is_private = root.metadata.0.unwrap_or_default().private == Scalar::Truth(true);
    let instance = Instance {
        variant: variant(&name, version.as_deref(), repository.as_deref()),
        software: Some(name),
        version: version.map(|version| cut(version, SOFTWARE_BYTES_MAX)),
        private: if is_private {
            Private::Yes
        } else {
            Private::Unknown
        },
        open_registrations: root.open_registrations.into_truth(),
    };
    Ok(About {
        instance,
        activitypub: root.protocols.activitypub,
        document: document.to_owned(),
    })
}

fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

#[derive(Debug, Default)]
struct Pointer {
    links: Option<Links>,
}

impl Members for Pointer {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error> {
        if key != "links" {
            return Ok(Taken::No);
        }
        self.links = Some(map.next_value()?);
        Ok(Taken::Yes)
    }
}

/// The first address of each version, in the order of [`VERSIONS`].
#[derive(Debug, Default)]
struct Links {
    by_version: [Option<String>; VERSIONS.len()],
}

impl Links {
    fn consider(&mut self, link: Link) {
        let (Some(rel), Some(href)) = (link.rel.into_text(), link.href.into_text()) else {
            return;
        };
        let rel = rel
            .strip_prefix("http://")
            .or_else(|| rel.strip_prefix("https://"));
        let version = rel.and_then(|rel| rel.strip_prefix(REL));
        let rank = VERSIONS.iter().position(|known| Some(*known) == version);
        if let Some(slot) = rank.and_then(|rank| self.by_version.get_mut(rank)) {
            slot.get_or_insert(href);
        }
    }
}

impl<'de> Deserialize<'de> for Links {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LinksVisitor)
    }
}

/// `links` is an array or one bare object. Other types hold no link.
struct LinksVisitor;

impl<'de> Visitor<'de> for LinksVisitor {
    type Value = Links;

    other_scalars!(Links::default());
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Links, A::Error> {
        let mut links = Links::default();
        while let Some(Object(link)) = seq.next_element::<Object<Link>>()? {
            if let Some(link) = link {
                links.consider(link);
            }
        }
        Ok(links)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Links, A::Error> {
        let mut link = Link::default();
        read_members(&mut link, map)?;
        let mut links = Links::default();
        links.consider(link);
        Ok(links)
    }
}

#[derive(Debug, Default)]
struct Link {
    rel: Scalar,
    href: Scalar,
}

members!(Link { "rel" => rel, "href" => href });

#[derive(Debug, Default)]
struct Root {
    software: Object<Software>,
    metadata: Object<Metadata>,
    protocols: Protocols,
    open_registrations: Scalar,
}

members!(Root {
    "software" => software,
    "metadata" => metadata,
    "protocols" => protocols,
    "openRegistrations" => open_registrations,
});

#[derive(Debug, Default)]
struct Software {
    name: Scalar,
    version: Scalar,
    /// Since NodeInfo 2.1.
    repository: Scalar,
}

members!(Software {
    "name" => name,
    "version" => version,
    "repository" => repository,
});

#[derive(Debug, Default)]
struct Metadata {
    private: Scalar,
}

members!(Metadata { "private" => private });

/// `protocols`: an array of names since 2.0, before that an object of two such arrays.
#[derive(Debug, Default)]
struct Protocols {
    activitypub: bool,
}

impl Members for Protocols {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error> {
        if !matches!(key, "inbound" | "outbound") {
            return Ok(Taken::No);
        }
        self.activitypub |= map.next_value::<Self>()?.activitypub;
        Ok(Taken::Yes)
    }
}

impl<'de> Deserialize<'de> for Protocols {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ProtocolsVisitor)
    }
}

struct ProtocolsVisitor;

impl<'de> Visitor<'de> for ProtocolsVisitor {
    type Value = Protocols;

    other_scalars!(no text, Protocols::default());
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Protocols, A::Error> {
        while let Some(name) = seq.next_element::<Scalar>()? {
            let name = name.into_text().unwrap_or_default();
            if name.eq_ignore_ascii_case("activitypub") {
                pass_over_array(seq)?;
                return Ok(Protocols { activitypub: true });
            }
        }
        Ok(Protocols::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Protocols, A::Error> {
        let mut protocols = Protocols::default();
        read_members(&mut protocols, map)?;
        Ok(protocols)
    }
    fn visit_str<E>(self, name: &str) -> Result<Protocols, E> {
        Ok(Protocols {
            activitypub: name.eq_ignore_ascii_case("activitypub"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_links(document: &str, expect: Result<&[&str], &str>) {
        let found = links(document.as_bytes()).map_err(|error| error.to_string());
        let found = found.as_ref();
        assert_eq!(
            found
                .map(|links| links.iter().map(String::as_str).collect::<Vec<_>>())
                .map_err(|error| error.as_str()),
            expect.map(<[&str]>::to_vec),
            "{document}"
        );
    }

    const NO_LINK: Result<&[&str], &str> = Err("there is no supported link");
    const NOT_JSON: Result<&[&str], &str> = Err("the document is not JSON");
    const NOT_NODEINFO: Result<&[&str], &str> = Err("the document is not NodeInfo");

    fn link(version: &str, href: &str) -> String {
        format!(
            r#"{{"rel":"http://nodeinfo.diaspora.software/ns/schema/{version}","href":"{href}"}}"#
        )
    }

    #[test]
    fn the_highest_supported_version_comes_first() {
        let links = [link("2.0", "/a"), link("2.1", "/b"), link("1.0", "/c")].join(",");
        let pointer = format!(r#"{{"links":[{links}]}}"#);
        check_links(&pointer, Ok(&["/b", "/a", "/c"]));
        let links = [link("2.2", "/a"), link("3.0", "/b"), link("2.2", "/c")].join(",");
        check_links(&format!(r#"{{"links":[{links}]}}"#), Ok(&["/a"]));
    }

    #[test]
    fn links_may_be_odd() {
        let good = link("2.0", "/n");
        check_links(&format!(r#"{{"links":{good}}}"#), Ok(&["/n"]));
        let mixed = format!(r#"{{"links":[null,7,"x",[],{{"rel":1}},{good}]}}"#);
        check_links(&mixed, Ok(&["/n"]));
        check_links(&format!(r#"{{"0":{good},"links":[{good}]}}"#), Ok(&["/n"]));
        check_links(&format!(r#"{{"links":[],"links":[{good}]}}"#), Ok(&["/n"]));
        check_links(r#"{"links":[]}"#, NO_LINK);
        check_links(r#"{"links":{}}"#, NO_LINK);
        check_links(r#"{"links":null}"#, NO_LINK);
        check_links(&format!(r#"{{"links":[{}]}}"#, link("2.0/", "/n")), NO_LINK);
        let https = good.replace("http://nodeinfo", "https://nodeinfo");
        check_links(&format!(r#"{{"links":[{https}]}}"#), Ok(&["/n"]));
        let ftp = good.replace("http://", "ftp://");
        check_links(&format!(r#"{{"links":[{ftp}]}}"#), NO_LINK);
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        check_links(r#"{"error":"not found"}"#, NOT_NODEINFO);
        check_links("[]", NOT_NODEINFO);
        check_links("<!DOCTYPE html>", NOT_JSON);
        check_links(r#"{"links":[]} x"#, NOT_JSON);
        check_links("", NOT_JSON);
    }

    fn check(document: &str, expect: Option<(&str, Option<&str>, bool, bool)>) {
        let about = read(document.as_bytes()).ok();
        let found = about.as_ref().map(|about| {
            let (version, private) = (&about.instance.version, about.instance.private);
            let is_private = private == Private::Yes;
            (
                about.software(),
                version.as_deref(),
                is_private,
                about.activitypub,
            )
        });
        assert_eq!(found, expect, "{document}");
    }

    #[test]
    fn software_is_read_leniently_but_for_its_name() {
        let document = r#"{"version":"2.0","software":{"name":"Friendica","version":"2024.12"},"protocols":["diaspora","ActivityPub"],"services":[],"usage":{"users":"many"},"metadata":[]}"#;
        check(document, Some(("friendica", Some("2024.12"), false, true)));
        let document =
            r#"{"software":{"name":"pleroma","version":2.5},"metadata":{"private":true}}"#;
        check(document, Some(("pleroma", None, true, false)));
        let document = r#"{"software":{"name":"a"},"metadata":{"private":"true"},"protocols":{"inbound":["activitypub"],"outbound":[]}}"#;
        check(document, Some(("a", None, false, true)));
        let document = r#"{"software":{"name":"a"},"software":{"name":"b"}}"#;
        check(document, Some(("b", None, false, false)));
        for document in [
            r#"{"error":"x"}"#,
            r#"{"software":"mastodon"}"#,
            r#"{"software":{"name":7}}"#,
            r#"{"software":{"name":" "}}"#,
            r#"{"software":{"name":"a\u001b[2J"}}"#,
            "[]",
            "{}",
            r#"{"software":{"name":"a"}}}"#,
        ] {
            check(document, None);
        }
        let long = "x".repeat(129);
        check(&format!(r#"{{"software":{{"name":"{long}"}}}}"#), None);
    }

    #[test]
    fn the_repository_tells_a_fork_and_is_optional() {
        let fork = r#","repository":"https://github.com/somebody/misskey""#;
        for (repository, expect) in [
            (fork, Some("somebody")),
            (r#","repository":7"#, None),
            ("", None),
        ] {
            let document = format!(r#"{{"software":{{"name":"misskey"{repository}}}}}"#);
            let about = read(document.as_bytes()).unwrap();
            assert_eq!(about.instance.variant.as_deref(), expect, "{document}");
        }
    }

    #[test]
    fn a_long_version_is_cut_between_characters() {
        let version = format!("{}é", "x".repeat(127));
        let document = format!(r#"{{"software":{{"name":"a","version":"{version}"}}}}"#);
        let kept = "x".repeat(127);
        check(&document, Some(("a", Some(&kept), false, false)));
    }

    #[test]
    fn only_a_boolean_says_whether_registrations_are_open() {
        let check = |member: &str, expect| {
            let document = format!(r#"{{"software":{{"name":"a"}}{member}}}"#);
            let about = read(document.as_bytes()).unwrap();
            assert_eq!(about.instance.open_registrations, expect, "{document}");
        };
        check(r#","openRegistrations":true"#, Some(true));
        check(r#","openRegistrations":false"#, Some(false));
        check("", None);
        for other in ["null", "1", "0.5", r#""true""#, "[true]", r#"{"a":true}"#] {
            check(&format!(r#","openRegistrations":{other}"#), None);
        }
        // At another place or under another name, the member is ignored.
        check(r#","metadata":{"openRegistrations":true}"#, None);
        check(r#","open_registrations":true"#, None);
        // The last of two members counts, as everywhere.
        let twice = r#","openRegistrations":true,"openRegistrations":"no""#;
        check(twice, None);
    }
}
