//! Opt-out flags outside NodeInfo, by which an instance asks to be left out of statistics.
//!
//! A software's name selects the flag; its document gives yes, no or unknown. A document of another
//! kind gives unknown, which keeps the earlier answer.

use protocol::Private;

use crate::documents::json::{Object, Scalar, members, parse_document};

/// Where a software keeps its flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// GNU Social and Friendica: `site.private` of the `StatusNet` configuration.
    Statusnet,
    /// Hubzilla and Red: `hide_in_statistics`, a truth value, a number or a string.
    Siteinfo,
}

/// The flag of a software, if it has one.
pub fn flag_of(software: &str) -> Option<Flag> {
    match software {
        "gnusocial" | "gnu social" | "gnu-social" | "friendica" => Some(Flag::Statusnet),
        "hubzilla" | "red" | "redmatrix" => Some(Flag::Siteinfo),
        _ => None,
    }
}

impl Flag {
    pub fn path(self) -> &'static str {
        match self {
            Self::Statusnet => "/api/statusnet/config.json",
            Self::Siteinfo => "/siteinfo.json",
        }
    }

    /// What the document says. A well-formed document without the mark means no.
    pub fn read(self, document: &[u8]) -> Private {
        let found = match self {
            Self::Statusnet => parse_document::<Object<Statusnet>>(document)
                .ok()
                .and_then(|config| config.0?.site.0)
                .map(|site| site.private.is_yes()),
            Self::Siteinfo => parse_document::<Object<Siteinfo>>(document)
                .ok()
                .and_then(|info| info.0)
                .map(|info| info.hidden.is_yes()),
        };
        match found {
            Some(true) => Private::Yes,
            Some(false) => Private::No,
            None => Private::Unknown,
        }
    }
}

#[derive(Debug, Default)]
struct Statusnet {
    site: Object<Site>,
}

members!(Statusnet { "site" => site });

#[derive(Debug, Default)]
struct Site {
    private: Scalar,
}

members!(Site { "private" => private });

#[derive(Debug, Default)]
struct Siteinfo {
    hidden: Scalar,
}

members!(Siteinfo { "hide_in_statistics" => hidden });

#[cfg(test)]
mod tests {
    use super::*;

    fn check(software: &str, document: &str, expect: Private) {
        let flag = flag_of(software).unwrap();
        assert_eq!(flag.read(document.as_bytes()), expect, "{document}");
    }

    #[test]
    fn flags_are_read_in_all_their_types() {
        check("friendica", r#"{"site":{"private":true}}"#, Private::Yes);
        check("gnusocial", r#"{"site":{"private":"1"}}"#, Private::Yes);
        check("gnusocial", r#"{"site":{"private":false}}"#, Private::No);
        check("hubzilla", r#"{"hide_in_statistics":true}"#, Private::Yes);
        check("hubzilla", r#"{"hide_in_statistics":1}"#, Private::Yes);
        check("red", r#"{"hide_in_statistics":"1"}"#, Private::Yes);
        check("red", r#"{"hide_in_statistics":"0"}"#, Private::No);
        check("red", r#"{"hide_in_statistics":0}"#, Private::No);
        check("red", r#"{"name":"a hub"}"#, Private::No);
    }

    #[test]
    fn another_document_tells_nothing() {
        check("friendica", "<html>", Private::Unknown);
        check("friendica", r#"{"error":"no"}"#, Private::Unknown);
        check("hubzilla", "[]", Private::Unknown);
        assert_eq!(flag_of("mastodon"), None);
    }
}
