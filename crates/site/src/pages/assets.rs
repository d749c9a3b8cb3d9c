//! The files that are the same in every census: style sheet, scripts, icon, preview picture. They
//! are compiled in.

/// The content security policy of all pages: only our own scripts, styles and files, and nothing
/// inline. nginx sends it with every answer.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub(crate) const STYLE: &str = include_str!("../../assets/style.css");

/// Paths below the public folder, and contents.
pub(crate) const ASSETS: [(&str, &str); 15] = [
    ("style.css", STYLE),
    ("noscript.css", include_str!("../../assets/noscript.css")),
    ("icon.svg", include_str!("../../assets/icon.svg")),
    ("sha256.js", include_str!("../../assets/sha256.js")),
    ("name.js", include_str!("../../assets/name.js")),
    ("why.js", include_str!("../../assets/why.js")),
    ("known.js", include_str!("../../assets/known/known.js")),
    ("hosts.js", include_str!("../../assets/known/hosts.js")),
    ("peers.js", include_str!("../../assets/known/peers.js")),
    ("rows.js", include_str!("../../assets/rows.js")),
    ("list.js", include_str!("../../assets/list.js")),
    ("plot.js", include_str!("../../assets/plot.js")),
    ("owners.js", include_str!("../../assets/owners.js")),
    ("copy.js", include_str!("../../assets/copy.js")),
    ("stale.js", include_str!("../../assets/stale.js")),
];

/// Files of a census with push. A service worker serves its own folder and the folders below.
pub(crate) const PUSH_ASSETS: [(&str, &str); 2] = [
    ("push.js", include_str!("../../assets/push.js")),
    ("notify.js", include_str!("../../assets/notify.js")),
];

/// The preview picture for links to the site (Open Graph). It is the same for each census, because
/// drawing a title needs a font, and a container without files has none.
pub(crate) const CARD: &[u8] = include_bytes!("../../assets/card.png");

/// The icon for programs that request it under its oldest name.
pub(crate) const FAVICON: &[u8] = include_bytes!("../../assets/favicon.ico");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_server_sends_the_policy_that_the_pages_are_made_for() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../deploy/nginx/headers.conf"
        );
        let headers = std::fs::read_to_string(path).unwrap();
        let sent =
            format!("add_header Content-Security-Policy \"{CONTENT_SECURITY_POLICY}\" always;");
        assert!(headers.lines().any(|line| line == sent), "{headers}");
    }

    #[test]
    fn scripts_build_elements_and_never_markup() {
        for (name, content) in ASSETS.into_iter().chain(PUSH_ASSETS) {
            for never in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "setAttribute(\"style",
                "http://",
            ] {
                let is_namespace = name.ends_with(".svg") && never == "http://";
                assert!(is_namespace || !content.contains(never), "{name}: {never}");
            }
        }
    }
}
