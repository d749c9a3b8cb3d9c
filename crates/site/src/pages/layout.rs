//! The common parts of all pages: head, navigation, foot.

use dump::Moment;
use maud::{DOCTYPE, Markup, html};

use super::assets::CONTENT_SECURITY_POLICY;
use crate::facts::Facts;

const NAVIGATION: [(&str, &str); 5] = [
    ("/", "Instances"),
    ("/why.html", "Is mine listed?"),
    ("/software.html", "Software"),
    ("/owners.html", "For owners"),
    ("/data.html", "Data"),
];

const SOURCE: &str = env!("CARGO_PKG_REPOSITORY");

/// A page around its content.
pub(crate) struct Page<'a> {
    /// The page's path in the navigation; any other path has no place there.
    pub(crate) path: &'a str,
    /// The heading and the window's title.
    pub(crate) title: &'a str,
    /// One sentence for search engines and link previews.
    pub(crate) about: &'a str,
    /// The scripts that the page loads.
    pub(crate) scripts: &'a [&'a str],
}

impl Page<'_> {
    pub(crate) fn around(&self, facts: &Facts, content: &Markup) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    // For copies on other servers, which don't send the header. A meta element
                    // can't forbid frames.
                    meta http-equiv="Content-Security-Policy" content=(CONTENT_SECURITY_POLICY.replace(" frame-ancestors 'none';", ""));
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="referrer" content="no-referrer";
                    title { (self.title) " · " (facts.title) }
                    meta name="description" content=(self.about);
                    meta property="og:title" content=(self.title);
                    meta property="og:description" content=(self.about);
                    meta property="og:type" content="website";
                    meta property="og:site_name" content=(facts.title);
                    @if let Some(address) = &facts.address {
                        @if !self.path.is_empty() { meta property="og:url" content=(format!("{address}{}", self.path)); }
                        meta property="og:image" content=(format!("{address}/card.png"));
                        meta property="og:image:alt" content="Fedicensus. A census of the Fediverse: the instances that respond.";
                        meta name="twitter:card" content="summary_large_image";
                    }
                    link rel="icon" href="/icon.svg" type="image/svg+xml";
                    link rel="alternate" type="application/atom+xml" href="/data/changes/feed.atom" title="New and gone instances (Atom)";
                    link rel="alternate" type="application/atom+xml" href="/data/changes/weekly.atom" title="New and gone instances by week (Atom)";
                    link rel="stylesheet" href="/style.css";
                    noscript { link rel="stylesheet" href="/noscript.css"; }
                    script type="module" src="/stale.js" {}
                    @for script in self.scripts {
                        script type="module" src=(script) {}
                    }
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    header {
                        a.brand href="/" { img src="/icon.svg" alt="" width="28" height="28"; (facts.title) }
                        nav aria-label="Pages" {
                            ul {
                                @for (path, name) in NAVIGATION {
                                    li { a href=(path) aria-current=[(path == self.path).then_some("page")] { (name) } }
                                }
                            }
                        }
                    }
                    main id="content" tabindex="-1" {
                        h1 { (self.title) }
                        p.notice.ill id="stale" data-read=(facts.rows_read) hidden {}
                        @if let Some(trouble) = &facts.trouble {
                            p.notice.ill { strong { "Something is wrong with this census." } " " (trouble) }
                        }
                        (content)
                    }
                    (foot(facts))
                }
            }
        }
        .into_string()
    }
}

fn foot(facts: &Facts) -> Markup {
    html! {
        footer {
            p {
                "Updated " (moment(facts.made))
                @if facts.rows_read != facts.made { ", the list as of " (moment(facts.rows_read)) }
                ". Contact: "
                @if let Some(operator) = &facts.operator { (operator) ", " }
                (contact(facts)) ". Licence of the data: " (licence(facts)) "."
            }
            p { "Made by " a href=(SOURCE) { "Fedicensus" } ", which is free software. This site sets no cookies and loads nothing from elsewhere." }
        }
    }
}

/// The licence of the data, as a link if it is a single SPDX identifier.
fn licence(facts: &Facts) -> Markup {
    let is_one = !facts.licence.contains([' ', '(', ')', '+']);
    html! {
        @if is_one {
            a rel="license" href=(format!("https://spdx.org/licenses/{}.html", facts.licence)) { (facts.licence) }
        } @else {
            (facts.licence)
        }
    }
}

/// A moment to the minute, for people.
pub(crate) fn moment(at: Moment) -> Markup {
    let exact = at.to_string();
    let minute = exact.get(..16).map(|minute| minute.replace('T', " "));
    html! { time datetime=(exact) { (minute.as_deref().unwrap_or(&exact)) " UTC" } }
}

/// The contact, as a link if it is one.
pub(crate) fn contact(facts: &Facts) -> Markup {
    html! {
        @if let Some(link) = facts.contact_link() {
            a href=(link) { (facts.contact) }
        } @else {
            (facts.contact)
        }
    }
}

/// A note for examples that lack the site's address.
pub(crate) fn fill_in(facts: &Facts) -> Markup {
    html! {
        @if facts.address.is_none() {
            p.fill-in { "Replace " code { (facts.address()) } " with the address of this site." }
        }
    }
}

/// A stranger's text, isolated so that its writing direction does not change the text around it.
pub(crate) fn strangers(text: &str) -> Markup {
    html! { bdi { (text) } }
}
