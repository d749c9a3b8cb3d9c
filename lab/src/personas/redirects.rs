//! Redirects: moves, detours, loops and invalid targets.

use protocol::DeadReason::{BadRedirect, RedirectLoop, RedirectToSelf, TemporaryRedirect};
use serde_json::Value;

use super::shapes::{
    DOCUMENT, PEERS_PATH, WELL_KNOWN, document, flat, living, pointer, set, with_document,
};
use super::table::{Persona, Table};
use crate::expectation::Expectation;
use crate::play::{Answer, Play, Story};

pub(super) fn add(table: &mut Table) {
    moves(table);
    dead_ends(table);
    detours(table);
    within(table);
    to_self(table);
    loops(table);
    garbage(table);
    bad_locations(table);
    stories(table);
}

impl Persona {
    /// Its well-known NodeInfo redirects there.
    fn redirected(&mut self, status: u16, location: &str) -> &mut Self {
        self.route(WELL_KNOWN, Answer::redirect(status, location))
    }

    /// It has moved to a name that becomes a candidate because of it.
    fn moved(&mut self, to: &str) -> &mut Self {
        self.expecting(Expectation::moved(to).learning(&[to]))
    }
}

fn well_known(host: &str) -> String {
    format!("https://{host}{WELL_KNOWN}")
}

fn moves(table: &mut Table) {
    for status in [301, 308] {
        let host = format!("moved-{status}.lab.test");
        let target = format!("home-{status}.lab-moved.test");
        table
            .add(&host, "Has moved for good", &[13])
            .moved(&target)
            .redirected(status, &well_known(&target));
        table.add_witness(&target, &host);
    }
    let target = "home-document.lab-moved.test";
    let host = "moved-document.lab.test";
    let away = Answer::redirect(301, &format!("https://{target}{DOCUMENT}"));
    table
        .add(host, "Redirects its document for good", &[13])
        .moved(target)
        .route(DOCUMENT, away);
    table.add_witness(target, host);
    let target = "www.moved-www.lab.test";
    let host = "moved-www.lab.test";
    table
        .add(host, "Has moved below itself", &[12])
        .moved(target)
        .redirected(301, &well_known(target));
    table.add_witness(target, host);
    let target = "home-slashes.lab-moved.test";
    let host = "moved-slashes.lab.test";
    table
        .add(host, "Has moved, and leaves the scheme out", &[24])
        .moved(target)
        .redirected(301, &format!("//{target}/"));
    table.add_witness(target, host);
}

fn dead_ends(table: &mut Table) {
    let note = "A name, but none that is admitted.";
    let plays = "Has moved to where nobody may follow";
    table
        .add("moved-onion", plays, &[13, 17])
        .expecting(Expectation::moved("hidden.onion").noting(note))
        .redirected(301, "http://hidden.onion/");
    let target = "moved-to.invalid";
    let plays = "Has moved to a name that is never admitted";
    table
        .add("moved-invalid", plays, &[13])
        .expecting(Expectation::moved(target).noting(note))
        .redirected(301, &well_known(target));
    let plays = "Is redirected to, and its name is none to be admitted";
    table.add_untouchable(target, plays, &[13]);
    let (one, two) = ("ring-one.lab.test", "ring-two.lab.test");
    for (host, target) in [(one, two), (two, one)] {
        table
            .add(host, "Has moved to one that has moved back", &[13, 24])
            .moved(target)
            .redirected(301, &well_known(target));
    }
}

fn detours(table: &mut Table) {
    for status in [302, 303, 307] {
        let host = format!("detour-{status}.lab.test");
        let target = format!("there-{status}.lab-detour.test");
        table
            .add(&host, "Is elsewhere for now", &[13])
            .dead(&[TemporaryRedirect])
            .learning(&[&target])
            .redirected(status, &well_known(&target));
        table.add_witness(&target, &host);
    }
    let (apex, social) = ("lab-split.test", "social.lab-split.test");
    let away = Answer::redirect(302, &well_known(social));
    table
        .add(apex, "Is the apex of a split domain", &[12])
        .dead(&[TemporaryRedirect])
        .learning(&[social])
        .noting("The apex is an alias, and not listed.")
        .acting(Play::default().route(WELL_KNOWN, away));
    table.add_witness(social, apex);
}

fn within(table: &mut Table) {
    let file = "/api/nodeinfo.json";
    let whole = "https://redirect-whole.lab.test";
    let http = "http://redirect-http.lab.test";
    let port = "https://redirect-443.lab.test:443";
    let capitals = "https://REDIRECT-CASE.lab.test.";
    for (name, plays, origin) in [
        ("relative", "Keeps its NodeInfo at a relative address", ""),
        ("dotted", "Keeps it at one relative to well-known", ".."),
        ("whole", "Keeps it at a whole address", whole),
        ("http", "Redirects to plain HTTP, which is raised", http),
        ("443", "Redirects to port 443, which is ours", port),
        ("case", "Redirects to itself in capitals", capitals),
    ] {
        table
            .add(&format!("redirect-{name}"), plays, &[24])
            .redirected(302, &format!("{origin}{file}"))
            .route(file, Answer::json(&pointer("2.0", DOCUMENT)));
    }
}

fn to_self(table: &mut Table) {
    let dot = "https://self-dot.lab.test.";
    let port = "https://self-port.lab.test:443";
    for (name, how, status, origin) in [
        ("same", "", 301, "https://self-same.lab.test"),
        ("relative", ", relatively", 302, ""),
        ("http", " over plain HTTP", 301, "http://self-http.lab.test"),
        ("case", " in capitals", 301, "https://SELF-CASE.Lab.Test"),
        ("dot", " with a last dot", 308, dot),
        ("port", " with its port", 301, port),
    ] {
        let location = format!("{origin}{WELL_KNOWN}");
        let plays = format!("Redirects to the same page{how}");
        let row = table.add(&format!("self-{name}"), &plays, &[24]);
        row.dead(&[RedirectToSelf]).redirected(status, &location);
    }
}

fn loops(table: &mut Table) {
    let chain = |host: &str, hops: usize| {
        let mut play =
            living(host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::redirect(302, "/hop/1"));
        for hop in 1..hops {
            let next = Answer::redirect(302, &format!("/hop/{}", hop + 1));
            play = play.route(&format!("/hop/{hop}"), next);
        }
        let pointer = pointer("2.0", DOCUMENT);
        play.route(&format!("/hop/{hops}"), Answer::json(&pointer))
    };
    let host = "hops-5.lab.test";
    table
        .add(host, "Takes five hops to its NodeInfo", &[24])
        .acting(chain(host, 5));
    for hops in [6, 30] {
        let host = format!("hops-{hops}.lab.test");
        table
            .add(&host, "Takes too many hops to its NodeInfo", &[24])
            .dead(&[RedirectLoop])
            .never_asking("/hop/6")
            .acting(chain(&host, hops));
    }
    table
        .add("loop", "Redirects in a circle", &[24])
        .dead(&[RedirectLoop])
        .redirected(302, "/a")
        .route("/a", Answer::redirect(302, "/b"))
        .route("/b", Answer::redirect(302, "/a"));
    let host = "endless-hops.lab.test";
    let play = living(host, "mastodon", "4.5.2")
        .route(WELL_KNOWN, Answer::redirect(302, "/x"))
        .otherwise(Answer::make(|request| {
            match request.path.starts_with("/x") {
                true => Answer::redirect(302, &format!("{}x", request.path)),
                false => Answer::status(404),
            }
        }));
    table
        .add(host, "Redirects to ever new addresses", &[24])
        .dead(&[RedirectLoop])
        .acting(play);
}

fn garbage(table: &mut Table) {
    for (name, plays, location) in [
        (
            "location-script",
            "Redirects to a script",
            "javascript:alert(document.domain)",
        ),
        (
            "location-data",
            "Redirects to data",
            "data:application/json,{}",
        ),
        ("location-file", "Redirects to a file", "file:///etc/passwd"),
        (
            "location-address",
            "Redirects to an address",
            "https://10.0.0.1/.well-known/nodeinfo",
        ),
        (
            "location-metadata",
            "Redirects to a cloud's metadata service",
            "http://169.254.169.254/latest/meta-data/",
        ),
        (
            "location-v6",
            "Redirects to an IPv6 address",
            "https://[::1]/.well-known/nodeinfo",
        ),
        (
            "location-decimal",
            "Redirects to an address in disguise",
            "https://2130706433/",
        ),
        (
            "location-port",
            "Redirects to another port of its own",
            "https://location-port.lab.test:8443/.well-known/nodeinfo",
        ),
        (
            "location-local",
            "Redirects to localhost",
            "https://localhost/",
        ),
        (
            "location-garbage",
            "Redirects to what is no address",
            "https://[not an address",
        ),
        (
            "location-newline",
            "Redirects to an address with a line end in it",
            "https://evil.lab-evil.test%0d%0aX-Injected:%20y/",
        ),
    ] {
        let row = table.add(name, plays, &[24]);
        row.dead(&[BadRedirect]).redirected(301, location);
    }
}

fn bad_locations(table: &mut Table) {
    table
        .add("location-absent", "Redirects to nowhere", &[24])
        .dead(&[BadRedirect])
        .route(WELL_KNOWN, Answer::html(302, ""));
    table
        .add("location-empty", "Redirects to nothing", &[24])
        .dead(&[BadRedirect, RedirectToSelf])
        .redirected(302, "");
    let target = "evil.lab-evil.test";
    let host = "location-user.lab.test";
    table
        .add(host, "Redirects to another with a user part", &[24])
        .dead(&[TemporaryRedirect])
        .learning(&[target])
        .redirected(302, &format!("https://{host}@{target}/"));
    table.add_witness(target, host);
    let raw =
        b"HTTP/1.1 302 Found\r\nLocation: https://\xff\xfe.test/\xe9\r\nContent-Length: 0\r\n\r\n"
            .to_vec();
    let plays = "Redirects to bytes that are no text";
    table
        .add("location-bytes", plays, &[24])
        .dead(&[BadRedirect])
        .route(WELL_KNOWN, Answer::raw(raw));
}

fn stories(table: &mut Table) {
    let there = |host: &str| living(host, "mastodon", "4.5.2").route(PEERS_PATH, flat::<&str>(&[]));
    let away = || Box::new(Play::default());
    let host = "dying.lab.test";
    let plays = "Lives for two checks, then has no NodeInfo";
    table
        .add(host, plays, &[31])
        .expecting(Expectation::changing(&["dying", "dead"]))
        .acting(there(host).story(Story::After(2, away())));
    let host = "flapping.lab.test";
    let story = Story::Cycle {
        own: 2,
        other: 1,
        play: away(),
    };
    let plays = "Lives for two checks and fails the third, again and again";
    table
        .add(host, plays, &[31])
        .expecting(Expectation::changing(&["dying", "dead"]))
        .acting(there(host).story(story));
    let host = "moving.lab.test";
    let target = "home-moving.lab-moved.test";
    let away = Answer::redirect(301, &well_known(target));
    let other = Box::new(Play::default().route(WELL_KNOWN, away));
    let plays = "Lives for two checks, then has moved to a name that has no server";
    table
        .add(host, plays, &[13, 31])
        .expecting(Expectation::changing(&["moving", "moved"]))
        .noting("Listed as long as its target does not live; the target is no candidate before the third check.")
        .acting(there(host).story(Story::After(2, other)));
    let host = "registrations.lab.test";
    let saying = |said: Value| {
        let mut document = document("mastodon", "4.5.2");
        set(&mut document, "openRegistrations", said);
        with_document(host, &document).route(PEERS_PATH, flat::<&str>(&[]))
    };
    let silent = Box::new(saying(Value::Null));
    let open = Box::new(saying(true.into()).story(Story::After(4, silent)));
    let plays =
        "Is closed to registrations for two checks, open for two, then says nothing of them";
    table
        .add(host, plays, &[])
        .expecting(Expectation::alive().running("mastodon"))
        .acting(saying(false.into()).story(Story::After(2, open)));
    let host = "changing-its-mind.lab.test";
    let again = Story::After(3, Box::new(there(host)));
    let refusing = there(host).robots("User-agent: *\nDisallow: /\n");
    let plays = "Lives for two checks, asks us to stay away at the third, and lives again";
    table
        .add(host, plays, &[14])
        .expecting(Expectation::changing(&["opted_out"]))
        .acting(there(host).story(Story::After(2, Box::new(refusing.story(again)))));
}
