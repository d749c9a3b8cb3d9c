//! Redirects: moves, detours, loops and invalid targets.

use protocol::DeadReason;
use serde_json::Value;

use super::shapes::{
    DOCUMENT, PEERS_PATH, WELL_KNOWN, document, flat, living, pointing, set, with_document,
};
use super::table::Table;
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

fn persona(
    table: &mut Table,
    name: &str,
    plays: &str,
    facts: &[u8],
    wanted: Expectation,
    status: u16,
    location: &str,
) {
    let host = format!("{name}.lab.test");
    let play =
        living(&host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::redirect(status, location));
    table.add(&host, plays, facts, wanted, play);
}

fn well_known(host: &str) -> String {
    format!("https://{host}{WELL_KNOWN}")
}

fn moves(table: &mut Table) {
    for status in [301, 308] {
        let (name, target) = (
            format!("moved-{status}"),
            format!("home-{status}.lab-moved.test"),
        );
        let wanted = Expectation::moved(&target).learning(&[&target]);
        persona(
            table,
            &name,
            "Has moved for good",
            &[13],
            wanted,
            status,
            &well_known(&target),
        );
        table.add_witness(&target, &format!("{name}.lab.test"));
    }
    let target = "home-document.lab-moved.test";
    let host = "moved-document.lab.test";
    let wanted = Expectation::moved(target).learning(&[target]);
    let play = pointing(host).route(
        DOCUMENT,
        Answer::redirect(301, &format!("https://{target}{DOCUMENT}")),
    );
    table.add(host, "Redirects its document for good", &[13], wanted, play);
    table.add_witness(target, host);
    let target = "www.moved-www.lab.test";
    let wanted = Expectation::moved(target).learning(&[target]);
    persona(
        table,
        "moved-www",
        "Has moved below itself",
        &[12],
        wanted,
        301,
        &well_known(target),
    );
    table.add_witness(target, "moved-www.lab.test");
    let target = "home-slashes.lab-moved.test";
    let wanted = Expectation::moved(target).learning(&[target]);
    persona(
        table,
        "moved-slashes",
        "Has moved, and leaves the scheme out",
        &[24],
        wanted,
        301,
        &format!("//{target}/"),
    );
    table.add_witness(target, "moved-slashes.lab.test");
}

fn dead_ends(table: &mut Table) {
    let wanted = Expectation::moved("hidden.onion").noting("A name, but none that is admitted.");
    persona(
        table,
        "moved-onion",
        "Has moved to where nobody may follow",
        &[13, 17],
        wanted,
        301,
        "http://hidden.onion/",
    );
    let wanted =
        Expectation::moved("moved-to.invalid").noting("A name, but none that is admitted.");
    persona(
        table,
        "moved-invalid",
        "Has moved to a name that is never admitted",
        &[13],
        wanted,
        301,
        &well_known("moved-to.invalid"),
    );
    table.add_untouchable(
        "moved-to.invalid",
        "Is redirected to, and its name is none to be admitted",
        &[13],
    );
    let (one, two) = ("ring-one.lab.test", "ring-two.lab.test");
    persona(
        table,
        "ring-one",
        "Has moved to one that has moved back",
        &[13, 24],
        Expectation::moved(two).learning(&[two]),
        301,
        &well_known(two),
    );
    persona(
        table,
        "ring-two",
        "Has moved to one that has moved back",
        &[13, 24],
        Expectation::moved(one).learning(&[one]),
        301,
        &well_known(one),
    );
}

fn detours(table: &mut Table) {
    for status in [302, 303, 307] {
        let (name, target) = (
            format!("detour-{status}"),
            format!("there-{status}.lab-detour.test"),
        );
        let wanted = Expectation::dead(&[DeadReason::TemporaryRedirect]).learning(&[&target]);
        persona(
            table,
            &name,
            "Is elsewhere for now",
            &[13],
            wanted,
            status,
            &well_known(&target),
        );
        table.add_witness(&target, &format!("{name}.lab.test"));
    }
    let (apex, social) = ("lab-split.test", "social.lab-split.test");
    let wanted = Expectation::dead(&[DeadReason::TemporaryRedirect])
        .learning(&[social])
        .noting("The apex is an alias, and not listed.");
    let play = Play::default().route(WELL_KNOWN, Answer::redirect(302, &well_known(social)));
    table.add(apex, "Is the apex of a split domain", &[12], wanted, play);
    table.add_witness(social, apex);
}

fn within(table: &mut Table) {
    let file = "/api/nodeinfo.json";
    for (name, plays, origin) in [
        ("relative", "Keeps its NodeInfo at a relative address", ""),
        ("dotted", "Keeps it at one relative to well-known", ".."),
        (
            "whole",
            "Keeps it at a whole address",
            "https://redirect-whole.lab.test",
        ),
        (
            "http",
            "Redirects to plain HTTP, which is raised",
            "http://redirect-http.lab.test",
        ),
        (
            "443",
            "Redirects to port 443, which is ours",
            "https://redirect-443.lab.test:443",
        ),
        (
            "case",
            "Redirects to itself in capitals",
            "https://REDIRECT-CASE.lab.test.",
        ),
    ] {
        let host = format!("redirect-{name}.lab.test");
        let pointer = super::shapes::pointer("2.0", DOCUMENT);
        let play = living(&host, "mastodon", "4.5.2")
            .route(
                WELL_KNOWN,
                Answer::redirect(302, &format!("{origin}{file}")),
            )
            .route(file, Answer::json(&pointer));
        table.add(&host, plays, &[24], Expectation::alive(), play);
    }
}

fn to_self(table: &mut Table) {
    for (name, how, status, location) in [
        ("same", "", 301, well_known("self-same.lab.test")),
        ("relative", ", relatively", 302, WELL_KNOWN.to_owned()),
        (
            "http",
            " over plain HTTP",
            301,
            format!("http://self-http.lab.test{WELL_KNOWN}"),
        ),
        (
            "case",
            " in capitals",
            301,
            well_known("SELF-CASE.Lab.Test"),
        ),
        (
            "dot",
            " with a last dot",
            308,
            well_known("self-dot.lab.test."),
        ),
        (
            "port",
            " with its port",
            301,
            well_known("self-port.lab.test:443"),
        ),
    ] {
        let (name, plays) = (
            format!("self-{name}"),
            format!("Redirects to the same page{how}"),
        );
        let wanted = Expectation::dead(&[DeadReason::RedirectToSelf]);
        persona(table, &name, &plays, &[24], wanted, status, &location);
    }
}

fn loops(table: &mut Table) {
    let chain = |host: &str, hops: usize| {
        let mut play =
            living(host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::redirect(302, "/hop/1"));
        for hop in 1..hops {
            play = play.route(
                &format!("/hop/{hop}"),
                Answer::redirect(302, &format!("/hop/{}", hop + 1)),
            );
        }
        let pointer = super::shapes::pointer("2.0", DOCUMENT);
        play.route(&format!("/hop/{hops}"), Answer::json(&pointer))
    };
    let host = "hops-5.lab.test";
    table.add(
        host,
        "Takes five hops to its NodeInfo",
        &[24],
        Expectation::alive(),
        chain(host, 5),
    );
    let dead = || Expectation::dead(&[DeadReason::RedirectLoop]);
    for hops in [6, 30] {
        let host = format!("hops-{hops}.lab.test");
        let wanted = dead().never_asking("/hop/6");
        table.add(
            &host,
            "Takes too many hops to its NodeInfo",
            &[24],
            wanted,
            chain(&host, hops),
        );
    }
    let host = "loop.lab.test";
    let play = living(host, "mastodon", "4.5.2")
        .route(WELL_KNOWN, Answer::redirect(302, "/a"))
        .route("/a", Answer::redirect(302, "/b"))
        .route("/b", Answer::redirect(302, "/a"));
    table.add(host, "Redirects in a circle", &[24], dead(), play);
    let host = "endless-hops.lab.test";
    let play = living(host, "mastodon", "4.5.2")
        .route(WELL_KNOWN, Answer::redirect(302, "/x"))
        .otherwise(Answer::make(|request| {
            if request.path.starts_with("/x") {
                Answer::redirect(302, &format!("{}x", request.path))
            } else {
                Answer::status(404)
            }
        }));
    table.add(host, "Redirects to ever new addresses", &[24], dead(), play);
}

fn garbage(table: &mut Table) {
    let bad = || Expectation::dead(&[DeadReason::BadRedirect]);
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
        persona(table, name, plays, &[24], bad(), 301, location);
    }
}

fn bad_locations(table: &mut Table) {
    let bad = || Expectation::dead(&[DeadReason::BadRedirect]);
    let host = "location-absent.lab.test";
    let play = living(host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::html(302, ""));
    table.add(host, "Redirects to nowhere", &[24], bad(), play);
    let host = "location-empty.lab.test";
    let wanted = Expectation::dead(&[DeadReason::BadRedirect, DeadReason::RedirectToSelf]);
    table.add(
        host,
        "Redirects to nothing",
        &[24],
        wanted,
        living(host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::redirect(302, "")),
    );
    let target = "evil.lab-evil.test";
    let wanted = Expectation::dead(&[DeadReason::TemporaryRedirect]).learning(&[target]);
    persona(
        table,
        "location-user",
        "Redirects to another with a user part",
        &[24],
        wanted,
        302,
        "https://location-user.lab.test@evil.lab-evil.test/",
    );
    table.add_witness(target, "location-user.lab.test");
    let host = "location-bytes.lab.test";
    let raw =
        b"HTTP/1.1 302 Found\r\nLocation: https://\xff\xfe.test/\xe9\r\nContent-Length: 0\r\n\r\n"
            .to_vec();
    table.add(
        host,
        "Redirects to bytes that are no text",
        &[24],
        bad(),
        living(host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::raw(raw)),
    );
}

fn stories(table: &mut Table) {
    let there = |host: &str| living(host, "mastodon", "4.5.2").route(PEERS_PATH, flat::<&str>(&[]));
    let away = || Box::new(Play::default());
    let host = "dying.lab.test";
    let story = Story::After(2, away());
    table.add(
        host,
        "Lives for two checks, then has no NodeInfo",
        &[31],
        Expectation::changing(&["dying", "dead"]),
        there(host).story(story),
    );
    let host = "flapping.lab.test";
    let story = Story::Cycle {
        own: 2,
        other: 1,
        play: away(),
    };
    table.add(
        host,
        "Lives for two checks and fails the third, again and again",
        &[31],
        Expectation::changing(&["dying", "dead"]),
        there(host).story(story),
    );
    let host = "moving.lab.test";
    let target = "home-moving.lab-moved.test";
    let other =
        Box::new(Play::default().route(WELL_KNOWN, Answer::redirect(301, &well_known(target))));
    let wanted = Expectation::changing(&["moving", "moved"]).noting("Listed as long as its target does not live; the target is no candidate before the third check.");
    table.add(
        host,
        "Lives for two checks, then has moved to a name that has no server",
        &[13, 31],
        wanted,
        there(host).story(Story::After(2, other)),
    );
    let host = "registrations.lab.test";
    let saying = |said: Value| {
        let mut document = document("mastodon", "4.5.2");
        set(&mut document, "openRegistrations", said);
        with_document(host, &document).route(PEERS_PATH, flat::<&str>(&[]))
    };
    let silent = Box::new(saying(Value::Null));
    let open = Box::new(saying(true.into()).story(Story::After(4, silent)));
    table.add(
        host,
        "Is closed to registrations for two checks, open for two, then says nothing of them",
        &[],
        Expectation::alive().running("mastodon"),
        saying(false.into()).story(Story::After(2, open)),
    );
    let host = "changing-its-mind.lab.test";
    let again = Story::After(3, Box::new(there(host)));
    let refusing = there(host).robots("User-agent: *\nDisallow: /\n");
    let other = Box::new(refusing.story(again));
    table.add(
        host,
        "Lives for two checks, asks us to stay away at the third, and lives again",
        &[14],
        Expectation::changing(&["opted_out"]),
        there(host).story(Story::After(2, other)),
    );
}
