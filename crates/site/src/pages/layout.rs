//! What all pages have in common: head, navigation, foot.

use dump::Moment;
use maud::{DOCTYPE, Markup, html};

use super::assets::CONTENT_SECURITY_POLICY;
use crate::facts::Facts;

/// Pages that the navigation leads to.
const NAVIGATION: [(&str, &str); 5] = [
    ("/", "The list"),
    ("/why.html", "Is my instance listed?"),
    ("/software.html", "Software"),
    ("/owners.html", "For owners"),
    ("/data.html", "Data"),
];

/// Where the source is.
const SOURCE: &str = env!("CARGO_PKG_REPOSITORY");

/// A page around its content.
pub(crate) struct Page<'a> {
    /// Where it is, as the navigation has it; anything else is no place of the navigation.
    pub(crate) path: &'a str,
    /// Its heading and the window's title.
    pub(crate) title: &'a str,
    /// The script that it loads.
    pub(crate) script: Option<&'a str>,
}

impl Page<'_> {
    /// The whole document.
    pub(crate) fn around(&self, facts: &Facts, content: &Markup) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    // Where the files are served by others, who don't send it. A meta element can't forbid frames.
                    meta http-equiv="Content-Security-Policy" content=(CONTENT_SECURITY_POLICY.replace(" frame-ancestors 'none';", ""));
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="referrer" content="no-referrer";
                    title { (self.title) " · Fedicensus" }
                    link rel="icon" href="/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/style.css";
                    @if let Some(script) = self.script {
                        script type="module" src=(script) {}
                    }
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    header {
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
                "As of " (moment(facts.made))
                @if facts.rows_read != facts.made { ", the list as of " (moment(facts.rows_read)) }
                ". Made anew about every six hours."
            }
            p { "Contact: " (contact(facts)) ". Made by " a href=(SOURCE) { "Fedicensus" } ", which is free software." }
        }
    }
}

fn moment(at: Moment) -> Markup {
    let at = at.to_string();
    html! { time datetime=(at) { (at) } }
}

/// The contact, as a link where it is one.
pub(crate) fn contact(facts: &Facts) -> Markup {
    html! {
        @if let Some(link) = facts.contact_link() {
            a href=(link) { (facts.contact) }
        } @else {
            (facts.contact)
        }
    }
}

/// What stands beside examples that don't know where the site is read.
pub(crate) fn fill_in(facts: &Facts) -> Markup {
    html! {
        @if facts.address.is_none() {
            p { "Put the address of this site in the place of " code { (facts.address()) } "." }
        }
    }
}

/// A text of strangers, set apart so that its direction of writing does not turn what stands beside it.
pub(crate) fn strangers(text: &str) -> Markup {
    html! { bdi { (text) } }
}
