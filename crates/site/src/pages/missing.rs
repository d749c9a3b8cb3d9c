//! What is shown for an address that leads nowhere.

use maud::html;

use super::layout::Page;
use crate::facts::Facts;

/// The page for status 404.
pub(crate) fn missing(facts: &Facts) -> String {
    let content = html! {
        p { "There is no such page. The page of a software goes away when nothing listed runs on it any more." }
        ul {
            li { a href="/" { "The list" } }
            li { a href="/software.html" { "All software" } }
            li { a href="/data.html" { "Files for programs" } }
        }
    };
    Page {
        path: "",
        title: "Not found",
        script: None,
    }
    .around(facts, &content)
}
