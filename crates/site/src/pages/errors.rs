//! The error pages.

use maud::html;

use super::layout::Page;
use crate::facts::Facts;

/// The page for status 404.
pub(crate) fn missing(facts: &Facts) -> String {
    let content = html! {
        p.lead { "There is no such page. A software's page disappears when no listed instance runs it." }
        ul {
            li { a href="/" { "The list of instances" } }
            li { a href="/software.html" { "All software" } }
            li { a href="/data.html" { "Data" } }
        }
    };
    Page {
        path: "",
        title: "Page not found",
        about: "There is no such page.",
        scripts: &[],
    }
    .around(facts, &content)
}

/// The page for status 429.
pub(crate) fn too_often(facts: &Facts) -> String {
    let content = html! {
        p.lead { "Your address asks for more files than one address gets here. Wait for a minute and load the page again." }
        p { "Programs that want the whole list need one file of it: " a href="/data.html" { "Data for programs" } "." }
    };
    Page {
        path: "",
        title: "Too many requests",
        about: "This address asks for too many files.",
        scripts: &[],
    }
    .around(facts, &content)
}
