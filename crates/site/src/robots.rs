//! Files for robots: this site's `robots.txt` and `sitemap.xml`, and the examples of `robots.txt`
//! on the page for owners. A test runs the checker's own parser on the examples.

use std::fmt::Write as _;

use crate::facts::Facts;
use crate::software::Software;

/// Pages in the sitemap, in addition to those of software.
const PAGES: [&str; 7] = [
    "/",
    "/why.html",
    "/my-hosts.html",
    "/my-peers.html",
    "/software.html",
    "/owners.html",
    "/data.html",
];

/// This site's `robots.txt`: all robots may read everything.
pub(crate) fn robots_txt(facts: &Facts) -> String {
    let mut text = "User-agent: *\nAllow: /\n".to_owned();
    if let Some(address) = &facts.address {
        // Writing to a String can't fail.
        write!(text, "\nSitemap: {address}/sitemap.xml\n").ok();
    }
    text
}

/// The sitemap (sitemaps.org); `None` without an address, since it needs complete URLs.
pub(crate) fn sitemap(facts: &Facts, pages: &[Software]) -> Option<String> {
    let address = facts.address.as_deref()?;
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    let fixes = facts.versions.fixes.iter().map(|spread| spread.fix.path());
    let paths = PAGES.into_iter().map(str::to_owned).chain(fixes);
    // Addresses and slugs contain no character that XML escapes.
    for path in paths.chain(pages.iter().map(Software::path)) {
        writeln!(xml, "<url><loc>{address}{path}</loc></url>").ok();
    }
    xml.push_str("</urlset>\n");
    Some(xml)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// The effect, as a heading.
    pub title: &'static str,
    pub says: &'static str,
    pub text: &'static str,
    /// Paths that the checker does not request.
    pub refuses: &'static [&'static str],
    /// Paths that the checker still requests.
    pub allows: &'static [&'static str],
}

const WELL_KNOWN: &str = "/.well-known/nodeinfo";
const DOCUMENT: &str = "/nodeinfo/2.0";
const PEERS: &str = "/api/v1/instance/peers";

/// All examples, in the order of the page.
pub const EXAMPLES: &[Example] = &[
    Example {
        title: "Stay away, Fedicensus",
        says: "Off the list within a quarter of an hour of the next check, which is at most two days away. From then on only robots.txt is requested, weekly.",
        text: "User-agent: Fedicensus\nDisallow: /\n",
        refuses: &[WELL_KNOWN, DOCUMENT, PEERS, "/"],
        allows: &[],
    },
    Example {
        title: "Stay away, all of you",
        says: "The same for every crawler that obeys it.",
        text: "User-agent: *\nDisallow: /\n",
        refuses: &[WELL_KNOWN, DOCUMENT, PEERS, "/"],
        allows: &[],
    },
    Example {
        title: "Everybody may read NodeInfo, and Fedicensus may not",
        says: "Refusing one of the two NodeInfo addresses is enough to be left out.",
        text: "User-agent: Fedicensus\nDisallow: /.well-known/nodeinfo\n\nUser-agent: *\nAllow: /\n",
        refuses: &[WELL_KNOWN],
        allows: &["/"],
    },
    Example {
        title: "List me, and leave my peers list alone",
        says: "You stay listed, and your peers list is not requested.",
        text: "User-agent: Fedicensus\nDisallow: /api/\n",
        refuses: &[PEERS],
        allows: &[WELL_KNOWN, DOCUMENT],
    },
    Example {
        title: "Nobody but Fedicensus",
        says: "For those who keep all robots out and want to be listed.",
        text: "User-agent: *\nDisallow: /\n\nUser-agent: Fedicensus\nAllow: /.well-known/nodeinfo\nAllow: /nodeinfo/\nDisallow: /\n",
        refuses: &[PEERS, "/about"],
        allows: &[WELL_KNOWN, DOCUMENT],
    },
];

#[cfg(test)]
mod tests {
    use checker::robots::{Extent, Rules};
    use url::Url;

    use super::*;

    #[test]
    fn every_example_means_to_the_checker_what_the_page_says() {
        for example in EXAMPLES {
            let rules = Rules::parse(example.text.as_bytes(), Extent::Whole);
            let allows = |path: &str| {
                let origin = Url::parse("https://a.example").unwrap();
                rules.allow(&origin.join(path).unwrap())
            };
            for path in example.refuses {
                assert!(!allows(path), "{}: {path}", example.title);
            }
            for path in example.allows {
                assert!(allows(path), "{}: {path}", example.title);
            }
            assert!(
                example.text.contains(checker::robots::TOKEN) || example.text.contains("agent: *")
            );
        }
    }
}
