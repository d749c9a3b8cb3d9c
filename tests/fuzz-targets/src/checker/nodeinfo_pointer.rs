//! The well-known document gives the best link and its target: this host in canonical form, another
//! host by name, or a rejection in printable text.

use crate::input::{OWN, is_canonical, is_printable};
use checker::fetch::{Target, resolve};
use checker::nodeinfo::{NodeinfoError, links};
use serde_json::Value;
use url::Url;

pub fn check(document: &[u8]) {
    let found = links(document);
    if !matches!(found, Err(NodeinfoError::Json(_))) {
        let text = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
        // Skipped parts may be invalid, such as a number out of range.
        if let Ok(value) = serde_json::from_slice::<Value>(text) {
            assert_eq!(found.as_deref().unwrap_or_default(), expected(&value));
        }
    }
    // Any text in a document or in `Location`.
    let best = found.ok().and_then(|links| links.into_iter().next());
    leads_somewhere(best.as_ref().map_or(document, |href| href.as_bytes()));
}

/// An independent implementation: the supported versions, the best first, the first of equals.
fn expected(document: &Value) -> Vec<&str> {
    let links = match document.get("links") {
        Some(Value::Array(links)) => links.iter().collect(),
        Some(link @ Value::Object(_)) => vec![link],
        _ => Vec::new(),
    };
    let with_version = |version: &str| {
        let rel = format!("http://nodeinfo.diaspora.software/ns/schema/{version}");
        links
            .iter()
            .filter(|link| link.is_object() && link["rel"] == rel.as_str())
            .find_map(|link| link["href"].as_str())
    };
    ["2.2", "2.1", "2.0", "1.1", "1.0"]
        .into_iter()
        .filter_map(with_version)
        .collect()
}

fn leads_somewhere(reference: &[u8]) {
    let base = Url::parse("https://own.example/.well-known/nodeinfo").expect("an address");
    match resolve(&OWN, &base, reference) {
        Target::Here(url) => {
            assert_eq!((url.scheme(), url.port()), ("https", None));
            assert_eq!(url.host_str(), Some("own.example"));
            assert!(url.username().is_empty() && url.password().is_none());
            assert!(url.fragment().is_none());
            assert_eq!(
                resolve(&OWN, &base, url.as_str().as_bytes()),
                Target::Here(url)
            );
        }
        Target::Elsewhere(host) => {
            is_canonical(&host);
            assert_ne!(host, *OWN);
        }
        Target::Nowhere(text) => {
            assert!(text.len() <= protocol::limits::TEXT_BYTES_MAX && is_printable(&text));
        }
    }
}
