//! For owners of instances: who asks, how often, and how to be left alone.

use maud::{Markup, html};

use super::layout::{Page, contact, fill_in};
use crate::facts::{Facts, Intake};
use crate::robots::EXAMPLES;

/// The page.
pub(crate) fn owners(facts: &Facts) -> String {
    let content = html! {
        p { "This census visits every host of the Fediverse that it knows about once a day, to see whether an instance lives there and what software it runs. It never asks for anything about users or posts, and keeps host names, states, software names and versions, times and reasons alone." }
        h2 { "Who asks" }
        p { "Every request carries this user agent:" }
        pre tabindex="0" { code { (facts.user_agent) } }
        p { "Whoever runs this census reads " (contact(facts)) ". To find out what we know of your host, " a href="/why.html" { "ask for its name" } "." }
        h2 { "What is asked for" }
        ol {
            li { code { "/robots.txt" } ", first and always; every other request keeps to it." }
            li { code { "/.well-known/nodeinfo" } " and the NodeInfo document on the same host that it names." }
            li { "With some software, the setting by which an instance asks to be left out of statistics." }
            li { "About every third day the list of peers, where the software tells it." }
        }
        p { "A check makes at most 40 requests, four a second, and ends after 60 seconds. It is made about once in 29 hours; after a week of failures once a week, then less. Only port 443 is asked, over TLS with a valid certificate." }
        (opt_out(facts))
        (robots())
        @match facts.intake {
            Intake::Open => (submit(facts)),
            Intake::Closed => {
                h2 { "How to be listed" }
                p { "An instance that federates is found by itself, through the peers lists of others. To be asked at once, write to " (contact(facts)) "." }
            }
        }
    };
    Page {
        path: "/owners.html",
        title: "For owners of instances",
        script: None,
    }
    .around(facts, &content)
}

fn opt_out(facts: &Facts) -> Markup {
    html! {
        h2 id="opt-out" { "How to opt out" }
        p { "Any of these is enough. From the first publication on after we have noticed, the host is named in no file; only who knows the name can ask for it. Publications are at most six and a quarter hours apart, unless something is amiss here." }
        dl {
            dt { "robots.txt" }
            dd { "Noticed at the next check, within about a day, and in force from the next publication on. From then on we ask weekly for robots.txt alone whether it still says so. Examples are below." }
            dt { "Your software's own setting" }
            dd { code { "metadata.private" } " in NodeInfo, " code { "site.private" } " with GNU Social and Friendica, " code { "hide_in_statistics" } " with Hubzilla: never listed while it is set. Noticed at the next check." }
            dt { "410 Gone" }
            dd { "Answered for " code { "/.well-known/nodeinfo" } ": noticed at the next check, and off the list until an instance answers there again. It is asked again after about a day; from the second time in a row on it counts as dead, and is asked once in four weeks." }
            @if facts.intake == Intake::Open {
                dt { "POST /opt-out" }
                dd { "Proven by a token, a TXT record at " code { "_fedicensus.HOST" } " or a file at " code { "https://HOST/.well-known/fedicensus" } ": in force at once, off the list from the next publication on, and never asked again. Anybody can have us look for that file, after robots.txt: at most once a minute for each registered domain." }
            }
            dt { "A word to us" }
            dd { (contact(facts)) ": never asked again, and off the list from the next publication on." }
        }
        p { "Silence takes none of these back, and no error of your server does; only whoever opted out does." }
    }
}

fn robots() -> Markup {
    html! {
        h2 { "Examples for robots.txt" }
        p { "Our name in it is " code { "Fedicensus" } ", in any case. A group for us counts before the one for everybody. Each of these is tried on the program that reads them." }
        p { "Serve the file from this host: one that redirects to another host can't be read, and counts as no file, which allows everything. The text is read as UTF-8, or as UTF-16 with a byte order mark." }
        p { "Some software ships a robots.txt that refuses everybody, and is missing from the list until its owner changes that: snac2 does. GoToSocial's refuses its API alone, so it is listed and its peers are not read." }
        @for example in EXAMPLES {
            h3 { (example.title) }
            p { (example.says) }
            pre tabindex="0" { code { (example.text) } }
        }
    }
}

fn submit(facts: &Facts) -> Markup {
    let commands = format!(
        "# at https://instance.example/.well-known/fedicensus, or as a TXT record at _fedicensus.instance.example\n\
         fedicensus-proof=submit\n\n\
         curl -s -H 'Content-Type: application/json' -d '{{\"host\":\"instance.example\"}}' {}/submit\n",
        facts.address()
    );
    html! {
        h2 { "How to be listed" }
        p { "An instance that federates is found by itself, through the peers lists of others. To be asked soon, show that the host is yours and submit it:" }
        pre tabindex="0" { code { (commands) } }
        (fill_in(facts))
        p { "To opt out in the same way, put " code { "fedicensus-proof=opt-out" } " in its place and send the same to " code { "/opt-out" } "." }
    }
}
