//! NodeInfo is read within the protocol's bounds, with the same result as from a plain JSON reader.

use checker::nodeinfo::{NodeinfoError, read};
use checker::peers::Family;
use protocol::Private;
use serde_json::Value;

pub fn check(document: &[u8]) {
    let found = read(document);
    if let Ok(about) = &found {
        assert!(!about.software().contains(char::is_control));
        let version = about.instance.version.as_deref().unwrap_or_default();
        assert!(!version.contains(char::is_control));
        Family::of(about);
        assert!(about.instance.is_within_bounds());
    }
    if matches!(found, Err(NodeinfoError::Json(_))) {
        return;
    }
    let text = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return;
    };
    let name = value["software"]["name"].as_str().unwrap_or_default();
    match found {
        Ok(about) => {
            assert_eq!(about.software(), name.trim().to_lowercase());
            let is_private = about.instance.private == Private::Yes;
            assert_eq!(is_private, value["metadata"]["private"] == true);
            assert_eq!(
                about.instance.open_registrations,
                value["openRegistrations"].as_bool()
            );
            let version = value["software"]["version"].as_str().unwrap_or_default();
            assert!(version.starts_with(about.instance.version.as_deref().unwrap_or_default()));
            if let Some(protocols) = value["protocols"].as_array() {
                let is_it = |name: &Value| {
                    name.as_str()
                        .is_some_and(|name| name.eq_ignore_ascii_case("activitypub"))
                };
                assert_eq!(about.activitypub, protocols.iter().any(is_it));
            }
        }
        Err(_) => assert!(
            name.trim().is_empty() || name.len() > 40 || name.contains(char::is_control),
            "a good name was refused: {name:?}"
        ),
    }
}
