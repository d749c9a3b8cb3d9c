//! "Check my peers": sorts the names that the reader's server knows by what the census knows about
//! them.

use maud::{Markup, html};

use super::{EXAMPLES, Page, fill_in, glossary_of_findings, promise};
use crate::facts::Facts;

/// Software, and the command that reads its list of peers.
const COMMANDS: [(&str, &str); 4] = [
    (
        "Mastodon, Pleroma, Akkoma, Misskey",
        "curl -fsS https://YOUR.HOST/api/v1/instance/peers > peers.json",
    ),
    (
        "GoToSocial, with a token or the setting instance-expose-peers",
        "curl -fsS -H 'Authorization: Bearer TOKEN' 'https://YOUR.HOST/api/v1/instance/peers?filter=open' > peers.json",
    ),
    (
        "Lemmy",
        "curl -fsS https://YOUR.HOST/api/v3/federated_instances > peers.json",
    ),
    (
        "Older Misskey, 100 names at a time",
        "curl -fsS -H 'Content-Type: application/json' -d '{\"limit\":100,\"offset\":0}' https://YOUR.HOST/api/federation/instances > peers.json",
    ),
];

pub(crate) fn peers(facts: &Facts) -> String {
    let content = html! {
        p.lead { "See which of the servers that your server knows are up, failing, gone or moved." }
        (promise())
        h2 { "Get the list of your peers" }
        @for (software, command) in COMMANDS {
            p { (software) ":" }
            pre.copy tabindex="0" { code { (command) } }
        }
        p { "Plain lines, or CSV with the names in its first column, work too." }
        form.scripted id="peers" {
            p {
                label for="peers-file" { "A file: choose it, or drop it here" }
                input id="peers-file" type="file";
            }
            p {
                label for="peers-text" { "Or paste the list" }
                textarea id="peers-text" rows="5" autocomplete="off" autocapitalize="none" spellcheck="false" {}
            }
            p { button.primary id="peers-check" type="submit" { "Check" } }
        }
        progress id="peers-progress" max="1" value="0" aria-label="Progress of the check" hidden {}
        p.status id="peers-status" role="status" {}
        p id="peers-unusable" {}
        div id="peers-groups" {}
        (purge())
        h2 { "The same by command" }
        p { a href=(EXAMPLES) { "check_peers.py" } " needs Python 3.9 or newer, and nothing else:" }
        pre.copy tabindex="0" { code { "python3 check_peers.py " (facts.address()) " peers.json\n" } }
        (fill_in(facts))
        (glossary_of_findings())
    };
    Page {
        path: "/my-peers.html",
        title: "Check my peers",
        about: "Which of the servers that your server knows are up, failing, gone or moved.",
        scripts: &["/peers.js", "/copy.js"],
    }
    .around(facts, &content)
}

/// The commands for Mastodon. Other software has none: Lemmy cannot purge a domain.
fn purge() -> Markup {
    html! {
        section id="peers-purge" hidden {
            h2 { "For tootctl" }
            p { "For Mastodon: " code { "purge" } " deletes all accounts of these domains from your own server, with their posts, media and custom emojis. These commands only count them. Read the names, then run the commands without " code { "--dry-run" } "." }
            pre.copy tabindex="0" { code id="peers-commands" {} }
            p { "The commands have only names without an instance for at least 90 days, which did not exist in DNS at the last check. They never have names that are withheld, unknown, failing, moved or not checked, or for which the last check found anything else." }
        }
    }
}
