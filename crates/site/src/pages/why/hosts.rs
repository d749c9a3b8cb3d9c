//! "My hosts": a list of names that the reader's browser keeps, and what the census knows about
//! them.

use maud::html;

use super::{Page, glossary_of_findings, promise};
use crate::facts::Facts;

pub(crate) fn hosts(facts: &Facts) -> String {
    let content = html! {
        p.lead { "Keep a list of instances, and see which of them changed since your last check." }
        (promise())
        div.scripted {
            form.ask id="hosts-add" {
                div {
                    label for="hosts-typed" { "Domains, URLs or accounts, one or several" }
                    textarea id="hosts-typed" rows="2" maxlength="65536" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="instance.example" aria-describedby="hosts-problem" {}
                }
                button type="submit" { "Add" }
            }
            p.problem id="hosts-problem" role="alert" {}
            p.notice.ill id="hosts-lost" hidden { "This browser keeps nothing for this site, so the list ends with this page." }
            div id="hosts-list" hidden {
                table.names {
                    thead { tr { th scope="col" { "Host" } th scope="col" { "State" } th scope="col" { "Remove" } } }
                    tbody id="hosts-rows" {}
                }
                p { button.primary id="hosts-check" type="button" { "Check" } }
                p { button id="hosts-forget" type="button" { "Forget all" } }
            }
            progress id="hosts-progress" max="1" value="0" aria-label="Progress of the check" hidden {}
            p.status id="hosts-status" role="status" {}
        }
        (glossary_of_findings())
    };
    Page {
        path: "/my-hosts.html",
        title: "My hosts",
        about: "Keep a list of instances of the Fediverse in your browser, and see which are up, failing, gone or moved.",
        scripts: &["/hosts.js"],
    }
    .around(facts, &content)
}
