//! The page for addresses that lead nowhere.

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
