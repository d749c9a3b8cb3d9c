//! The page for owners of instances: who sends the requests, how often, and how to opt out.

use maud::{Markup, html};

use super::layout::{Page, contact, fill_in};
use super::why::several_names;
use crate::facts::{Facts, Intake, Reading};
use crate::robots::EXAMPLES;

pub(crate) fn owners(facts: &Facts) -> String {
    let content = html! {
        p.lead {
            "This census checks every known host of the Fediverse about once a day: does an instance respond there, and which software does it run? "
            @match facts.reading {
                Reading::Instances => { "Nothing is read about users or posts. " }
                Reading::Conversations => { "Some hosts' public posts are read for the names of other servers; " a href="#conversations" { "what is read, and how to refuse" } ". " }
            }
            "Only host names, states, software names and versions, whether sign-up is open, times and reasons are kept."
        }
        @match facts.intake {
            Intake::Open => (buttons(facts)),
            Intake::Closed => {
                h2 id="submit" { "How to be listed" }
                p { "An instance that federates is found automatically, through the peers lists of others. To have it checked soon, write to " (contact(facts)) "." }
            }
        }
        (opt_out(facts))
        h2 { "Who checks" }
        p { "Every request carries this user agent:" }
        pre tabindex="0" { code { (facts.user_agent) } }
        p { "The operator reads " (contact(facts)) ". To see what is known of your host, " a href="/why.html" { "look it up" } ". " (several_names()) }
        h2 { "What is requested" }
        ol {
            li { code { "/robots.txt" } ", always first. Every other request obeys it." }
            li { code { "/.well-known/nodeinfo" } " and the NodeInfo document on the same host that it links to." }
            li { "For some software, the setting by which an instance asks to be left out of statistics." }
            li { "About every third day the list of peers, if the software publishes it." }
        }
        p { "A check makes at most 40 requests, four per second, and ends after 60 seconds. It runs about every 29 hours; after a week of failures weekly, later less often. Only port 443 is used, over TLS with a valid certificate." }
        @if facts.reading == Reading::Conversations { (conversations()) }
        (robots())
    };
    Page {
        path: "/owners.html",
        title: "For owners of instances",
        about: "Who checks your instance, how often and for what, and how to be left out or listed.",
        scripts: if facts.intake == Intake::Open { &["/owners.js", "/copy.js"] } else { &["/copy.js"] },
    }
    .around(facts, &content)
}

/// The form, the proof that it needs, and the same by hand.
fn buttons(facts: &Facts) -> Markup {
    let command = |path: &str| {
        format!(
            "curl -s -H 'Content-Type: application/json' -d '{{\"host\":\"instance.example\"}}' {}{path}\n",
            facts.address()
        )
    };
    html! {
        h2 id="submit" { "Submit your instance, or opt out" }
        p { "First show that the host is yours: add one TXT record to its DNS. Then press the button. An instance that federates is also found without this." }
        div.scroll {
            table {
                thead { tr { th scope="col" { "To" } th scope="col" { "TXT record" } th scope="col" { "By command" } } }
                tbody {
                    tr {
                        th scope="row" { "be checked soon" }
                        td { code { "_fedicensus.instance.example. IN TXT \"fedicensus-proof=submit\"" } }
                        td { a href="#by-command" { "submit" } }
                    }
                    tr {
                        th scope="row" { "be left out" }
                        td { code { "_fedicensus.instance.example. IN TXT \"fedicensus-proof=opt-out\"" } }
                        td { a href="#by-command" { "opt out" } }
                    }
                }
            }
        }
        form.ask.scripted id="owner" {
            div {
                label for="owner-host" { "Your domain" }
                input id="owner-host" name="host" type="text" inputmode="url" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="instance.example" aria-describedby="owner-status";
            }
            button.primary type="submit" value="submit" { "Submit" }
            button type="submit" value="opt-out" { "Opt out" }
        }
        p.status id="owner-status" role="status" {}
        div.notice id="owner-proof" hidden {
            p { "This record has to be in your DNS first. A resolver may remember for up to an hour that there was none." }
            pre tabindex="0" { code {} }
        }
        p { "Without access to DNS, serve the line " code { "fedicensus-proof=submit" } " or " code { "fedicensus-proof=opt-out" } " as plain text at " code { "https://instance.example/.well-known/fedicensus" } " instead. It is requested after robots.txt, at most once a minute for each registered domain. An opt-out takes effect at once and is taken back only with a signed token or by the operator." }
        h3 id="by-command" { "By command" }
        pre tabindex="0" { code { (command("/submit")) (command("/opt-out")) } }
        (fill_in(facts))
    }
}

fn opt_out(facts: &Facts) -> Markup {
    html! {
        h2 id="opt-out" { "How to opt out" }
        p { "Any of these is enough. Within a quarter of an hour after we have noticed, no file names the host, unless something is broken here. The next check is at most a day and a half away." }
        dl {
            dt { "robots.txt" }
            dd { "Noticed at the next check. From then on only robots.txt is requested, weekly, to see whether it still asks us to stay away. Examples are below." }
            dt { "Your software's own setting" }
            dd { code { "metadata.private" } " in NodeInfo, " code { "site.private" } " with GNU Social and Friendica, " code { "hide_in_statistics" } " with Hubzilla: never listed while it is set. Noticed at the next check." }
            dt { "410 Gone" }
            dd { "For " code { "/.well-known/nodeinfo" } ": noticed at the next check, and off the list until an instance answers there again. It is checked again after about a day; from the second time in a row once in four weeks." }
            @if facts.intake == Intake::Open {
                dt { a href="#submit" { "The button above" } }
                dd { "Off the list within a quarter of an hour, and never checked again." }
            }
            dt { "A message to us" }
            dd { (contact(facts)) ": off the list within a quarter of an hour after we have entered it, and never checked again." }
        }
        p { "An opt-out lasts until the person who made it takes it back, even if your server is down or fails." }
    }
}

/// Walks through public conversations, if the operator enables them (docs/walks.md).
fn conversations() -> Markup {
    html! {
        h2 id="conversations" { "Public conversations" }
        p { "Some servers are in no peers list, but other servers show conversations with their people to anybody. So this census reads such conversations at most once a week per server: the newest public posts, some of their threads, who favourited them, and the newest posts of some local accounts; on Misskey and its forks the local timeline in the same way. That takes at most 40 requests, four per second, and ends after 55 seconds." }
        p { "Only the names of servers are kept. Posts, handles, texts and ids never leave the container that reads them, which ends after each server." }
        p { "People who do not want to be found are skipped with their posts: those who turned off discovery or indexing in their profile, or who write " code { "#nobot" } " or " code { "#noindex" } " into it. A server that shows its posts only to people with a login is not asked again for four weeks. To refuse for a whole server, without leaving the list, add to " code { "robots.txt" } ":" }
        pre.copy tabindex="0" { code { "User-agent: Fedicensus\nDisallow: /api/\n" } }
    }
}

fn robots() -> Markup {
    html! {
        h2 id="robots" { "Examples for robots.txt" }
        p { "Our name in it is " code { "Fedicensus" } ", in upper or lower case. A group for us takes precedence over the group for everybody. Each of these examples is tested with the program that reads them." }
        p { "Serve the file from this host. A file that redirects to another host can't be read and counts as missing, which allows everything. The text is read as UTF-8, or as UTF-16 with a byte order mark." }
        p { "snac2 ships a robots.txt that refuses everybody, so such an instance is missing until its owner changes that. GoToSocial's refuses its API only, so it is listed and its peers are not read." }
        @for example in EXAMPLES {
            h3 { (example.title) }
            p { (example.says) }
            pre.copy tabindex="0" { code { (example.text) } }
        }
    }
}
