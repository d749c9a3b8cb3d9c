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
            Intake::Open => (screen(facts)),
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

/// The owner's screen: a record, the answer for a proven owner, leave and come back.
fn screen(facts: &Facts) -> Markup {
    html! {
        h2 id="submit" { "Your instance: see, leave, come back" }
        p { "One TXT record shows that the host is yours. Then you see why it is listed or not, in full, and can submit it, take it off the list and bring it back. An instance that federates is also found without this." }
        form.ask.scripted id="owner" {
            div {
                label for="owner-host" { "Your domain" }
                input id="owner-host" name="host" type="text" inputmode="url" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="instance.example" aria-describedby="owner-status";
            }
            button.primary type="submit" { "Show my record" }
        }
        div.notice id="owner-record" hidden {
            p { "Add this TXT record to your DNS first. Its absence may be remembered for up to an hour." }
            h3 { "Name" }
            pre.copy.record tabindex="0" { code id="owner-name" {} }
            h3 { "Value" }
            pre.copy.record tabindex="0" { code id="owner-value" {} }
            p { "The value is a hash, and only this browser has its secret. It works for a day after we first saw the record, and never again; then remove the record." }
            p { button.primary type="button" id="owner-check" { "Check" } " " button type="button" id="owner-new" { "Make another record" } }
        }
        p.status id="owner-status" role="status" {}
        p id="owner-acts" hidden {
            a id="owner-answer" href="/why.html" { "What everybody sees" } " "
            button type="button" id="owner-leave" { "Leave the census" } " "
            button type="button" id="owner-join" { "Come back" }
        }
        div.notice id="owner-sure" role="group" aria-labelledby="owner-question" hidden {
            p id="owner-question" { strong { "Leave the census?" } " Within a quarter of an hour no file names your host, and nothing visits it until you come back." }
            p { button type="button" id="owner-yes" { "Leave" } " " button.primary type="button" id="owner-no" { "Stay" } }
        }
        (without_script(facts))
        (fill_in(facts))
    }
}

/// The same by command, and the records and files that need no secret.
fn without_script(facts: &Facts) -> Markup {
    let address = facts.address();
    let command = |path: &str, body: &str| {
        format!("curl -s -H 'Content-Type: application/json' -d {body} {address}{path}\n")
    };
    let plain = r#"'{"host":"instance.example"}'"#;
    let secret = format!(
        "HOST=instance.example SECRET=$(openssl rand -hex 32)\n\
         echo fedicensus-proof=$(printf 'fedicensus/v1/proof %s %s' $HOST $SECRET | sha256sum | cut -c1-64)\n\
         {}",
        command(
            "/proof",
            r#""{\"host\":\"$HOST\",\"secret\":\"$SECRET\",\"act\":\"look\"}""#
        )
    );
    html! {
        h3 id="by-command" { "By command, or by a file" }
        pre tabindex="0" { code { (command("/submit", plain)) (command("/opt-out", plain)) } }
        p { "The first command needs the TXT record " code { "fedicensus-proof=submit" } " at " code { "_fedicensus.instance.example" } ", the second one " code { "fedicensus-proof=opt-out" } ". Without access to DNS, serve that line as plain text at " code { "https://instance.example/.well-known/fedicensus" } " instead. It is requested after robots.txt, at most once a minute for each registered domain." }
        p.scripted {
            "With such a record or file for the domain above: "
            button type="button" id="owner-submit" { "Submit" } " "
            button type="button" id="owner-opt-out" { "Opt out" }
        }
        p { "The same as with the form: publish what the second line prints as a TXT record at " code { "_fedicensus.instance.example" } ", then send the last one with " code { "look" } ", " code { "leave" } " or " code { "join" } ", which submits and comes back. A file can't bring a host back." }
        pre tabindex="0" { code { (secret) } }
    }
}

fn opt_out(facts: &Facts) -> Markup {
    html! {
        h2 id="opt-out" { "How to opt out" }
        p { "Any of these is enough. Within a quarter of an hour after we have noticed, no file names the host, unless something is broken here. The next check is at most two days away." }
        dl {
            dt { "robots.txt" }
            dd { "Noticed at the next check. From then on only robots.txt is requested, weekly, to see whether it still asks us to stay away. Examples are below." }
            dt { "Your software's own setting" }
            dd { code { "metadata.private" } " in NodeInfo, " code { "site.private" } " with GNU Social and Friendica, " code { "hide_in_statistics" } " with Hubzilla: never listed while it is set. Noticed at the next check." }
            dt { "410 Gone" }
            dd { "For " code { "/.well-known/nodeinfo" } ": noticed at the next check, and off the list until an instance answers there again. It is checked again after about a day; from the second time in a row once in four weeks." }
            @if facts.intake == Intake::Open {
                dt { a href="#submit" { "The form above" } }
                dd { "Off the list within a quarter of an hour, and not checked again until you come back." }
            }
            dt { "A message to us" }
            dd { (contact(facts)) ": off the list within a quarter of an hour after we have entered it, and never checked again." }
        }
        p { "An opt-out lasts until the person who made it takes it back, even if your server is down or fails." }
        h2 id="come-back" { "How to come back" }
        p {
            "Undo what took the host out. We read a robots.txt that keeps us out about once a week, and notice your software's setting at the next check. "
            @match facts.intake {
                Intake::Open => { a href="#submit" { "The form above" } " takes back an opt-out that an owner made, and has robots.txt read at once. " }
                Intake::Closed => { "After a message to us, write again. " }
            }
            "What a moderator decided, only a moderator takes back."
        }
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
