//! Every kind of software as a responding instance with its real peers endpoint, and instances that
//! ask to be left out of statistics.
//!
//! Each family's list names a witness that no other list names.

use serde_json::json;

use super::shapes::{
    PEERS_PATH, WELL_KNOWN, document, flat, funkwhale, gotosocial, lemmy_federated, lemmy_paged,
    lemmy_site, living, mbin, misskey_instances, open_registrations, peertube, pointer, set,
    siteinfo, statusnet_config, with_document,
};
use super::table::Table;
use crate::expectation::Expectation;
use crate::play::{Answer, Play};

/// Named among blocked instances, never as a peer.
const BLOCKED: &str = "blocked.lab-shapes.test";

const ELSEWHERE: &str = "next-page.lab-shapes.test";

/// Paths at which a software says whether it wants to be left out.
const CONFIG: &str = "/api/statusnet/config.json";
const SITE_INFO: &str = "/siteinfo.json";

pub(super) fn add(table: &mut Table) {
    microblogs(table);
    misskeys(table);
    gotosocials(table);
    lemmies(table);
    media(table);
    friendicas(table);
    without_list(table);
    unknown(table);
    private(table);
    let plays =
        "Is named only in lists of blocked instances, and a blocked instance is nobody's peer";
    table.add_untouchable(BLOCKED, plays, &[]);
    let plays = "Is named only as the address of a list's next page";
    table.add_untouchable(ELSEWHERE, plays, &[]);
}

/// A persona of a software and its witness: `NAME.lab.test` names `by-NAME.lab-shapes.test`.
fn family(
    table: &mut Table,
    name: &str,
    software: &str,
    version: &str,
    shape: impl FnOnce(Play, &str, &str) -> Play,
) {
    let host = format!("{name}.lab.test");
    let witness = format!("by-{name}.lab-shapes.test");
    let play = shape(living(&host, software, version), &host, &witness);
    let expectation = Expectation::alive()
        .running(software)
        .saying(open_registrations(software))
        .learning(&[&witness]);
    let plays = format!("{software} {version} with its peers");
    table
        .add(&host, &plays, &[])
        .expecting(expectation)
        .acting(play);
    table.add_witness(&witness, &host);
}

fn microblogs(table: &mut Table) {
    for (name, software, version) in [
        ("mastodon", "mastodon", "4.5.2"),
        ("hometown", "hometown", "4.2.17+hometown-1.1.2"),
        ("glitch", "mastodon", "4.6.0-alpha.1+glitch"),
        ("pleroma", "pleroma", "2.9.1"),
        ("akkoma", "akkoma", "3.17.0-0-gabcdef"),
        ("rebased", "rebased", "2.6.0"),
        ("smithereen", "smithereen", "0.9"),
        ("wildebeest", "wildebeest", "0.1.0"),
        ("takahe", "takahe", "0.11.0"),
        ("mitra", "mitra", "4.12.0"),
    ] {
        family(table, name, software, version, |play, _, witness| {
            play.route(PEERS_PATH, flat(&[witness]))
        });
    }
    snacs(table);
    // Its NodeInfo address is `http://`, but port 80 must not be contacted.
    let host = "bookwyrm.lab.test";
    let witness = "by-bookwyrm.lab-shapes.test";
    let pointer = pointer("2.0", &format!("http://{host}/nodeinfo/2.0"));
    let play = living(host, "bookwyrm", "0.8.1")
        .route(WELL_KNOWN, Answer::json(&pointer))
        .route(PEERS_PATH, flat(&[witness]));
    let plays = "bookwyrm, whose NodeInfo address is http";
    table
        .add(host, plays, &[4])
        .expecting(Expectation::alive().running("bookwyrm"))
        .learning(&[witness])
        .acting(play);
    table.add_witness(witness, host);
}

/// snac2 ships a robots.txt that refuses all clients; an owner may allow us.
fn snacs(table: &mut Table) {
    let deny = "User-agent: *\nDisallow: /\n";
    let host = "snac.lab.test";
    let play = living(host, "snac", "2.84")
        .robots(deny)
        .route(PEERS_PATH, flat(&[BLOCKED]));
    let plays = "snac as it comes, whose robots.txt refuses everybody";
    table
        .add(host, plays, &[14])
        .expecting(Expectation::opted_out(&["/robots.txt"]))
        .acting(play);
    family(table, "snac-open", "snac", "2.84", |play, _, peer| {
        play.robots(&format!("{deny}\nUser-agent: Fedicensus\nAllow: /\n"))
            .route(PEERS_PATH, flat(&[peer]))
    });
}

fn misskeys(table: &mut Table) {
    family(table, "misskey", "misskey", "2025.11.0", |play, _, peer| {
        play.route(PEERS_PATH, flat(&[peer]))
    });
    for name in ["sharkey", "firefish"] {
        // 230 names in three pages, the last of which is the witness; the others have a suffix that
        // is not admitted.
        family(table, name, name, "2025.4.3", |play, _, peer| {
            let mut peers: Vec<String> = (0..229).map(|n| format!("p{n}.pages.invalid")).collect();
            peers.push(peer.to_owned());
            play.route("/api/federation/instances", misskey_instances(&peers))
        });
    }
}

fn gotosocials(table: &mut Table) {
    let (name, version) = ("gotosocial-open", "0.20.2");
    family(table, name, "gotosocial", version, |play, _, peer| {
        play.route(PEERS_PATH, gotosocial(&[peer]))
    });
    let host = "gotosocial.lab.test";
    let robots = "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nCrawl-delay: 500\nDisallow: /api/\nDisallow: /auth/\n";
    let play = living(host, "gotosocial", "0.20.2")
        .robots(robots)
        .route(PEERS_PATH, flat(&[BLOCKED]));
    let plays = "gotosocial as it comes, whose robots.txt keeps us from its API";
    table
        .add(host, plays, &[14, 18])
        .expecting(Expectation::alive().running("gotosocial"))
        .never_asking(PEERS_PATH)
        .acting(play);
    let (name, version) = ("gotosocial-objects", "0.21.0-rc1");
    family(table, name, "gotosocial", version, |play, _, peer| {
        let list = json!([{"domain": peer}, {"domain": "o*g.*u**"}, {"domain": "x.invalid", "suspended_at": "2024-02-29T00:00:00Z"}]);
        play.route(PEERS_PATH, Answer::json(&list))
    });
}

fn lemmies(table: &mut Table) {
    let v3 = "/api/v3/federated_instances";
    let v4 = "/api/v4/federated_instances";
    family(table, "lemmy-017", "lemmy", "0.17.4", |play, _, peer| {
        play.route("/api/v3/site", lemmy_site(&[peer], &[BLOCKED]))
    });
    family(table, "lemmy-019", "lemmy", "0.19.13", |play, _, peer| {
        play.route(v3, lemmy_federated(&[peer], &[BLOCKED]))
    });
    for (name, key) in [
        ("lemmy-beta-views", "federated_instances"),
        ("lemmy-beta-items", "items"),
    ] {
        family(table, name, "lemmy", "1.0.0-beta.2", |play, _, peer| {
            let list = lemmy_paged(key, &[&["p1.pages.invalid"], &[peer]]);
            play.route(v3, list.clone()).route(v4, list)
        });
    }
    family(table, "piefed", "piefed", "1.3.0", |play, _, peer| {
        let list = lemmy_federated(&[peer], &[BLOCKED]);
        play.route("/api/alpha/federated_instances", list)
    });
    family(table, "mbin", "mbin", "1.8.2", |play, _, peer| {
        play.route("/api/federated", mbin(&[peer]))
            .route("/api/defederated", mbin(&[BLOCKED]))
    });
    let host = "lemmy-alone.lab.test";
    let plays = "lemmy with federation switched off: the object is absent";
    table
        .add(host, plays, &[])
        .expecting(Expectation::alive().running("lemmy"))
        .acting(living(host, "lemmy", "0.19.13").route(v3, Answer::json(&json!({}))));
}

fn media(table: &mut Table) {
    family(table, "owncast", "owncast", "0.3.0", |play, _, peer| {
        let servers = json!({"servers": [{"iri": format!("https://{peer}/federation/user/a")}]});
        play.route("/api/federation/servers", Answer::json(&servers))
    });
    family(table, "hubzilla", "hubzilla", "9.4", |play, _, peer| {
        let sites = json!({"entries": [{"url": format!("https://{peer}")}]});
        play.route(SITE_INFO, siteinfo(json!(0)))
            .route("/sitelist", Answer::json(&sites))
    });
    let by_followers = "by-followers.lab-shapes.test";
    family(table, "peertube", "peertube", "7.3.0", |play, own, peer| {
        let first = (0..119).map(|n| format!("p{n}.pages.invalid"));
        let following: Vec<String> = first.chain([peer.to_owned()]).collect();
        let following = peertube("following", own, &following);
        let followers = peertube("follower", own, &[by_followers.to_owned()]);
        play.route("/api/v1/server/following", following)
            .route("/api/v1/server/followers", followers)
    });
    table.add_witness(by_followers, "peertube.lab.test");
    let mut rows = table.rows.iter_mut();
    if let Some(row) = rows.find(|row| row.host.as_str() == "peertube.lab.test") {
        row.learning(&[by_followers]);
    }
    family(table, "pixelfed", "pixelfed", "0.12.6", |play, _, peer| {
        play.route(PEERS_PATH, flat(&[peer]))
    });
    family(table, "funkwhale", "funkwhale", "1.4.0", |play, _, peer| {
        let list = funkwhale(ELSEWHERE, &[&["p1.pages.invalid"], &[peer]]);
        play.route("/api/v1/federation/domains", list.clone())
            .route("/api/v1/federation/domains/", list)
    });
}

fn friendicas(table: &mut Table) {
    let (name, version) = ("friendica", "2025.07");
    family(table, name, name, version, |play, _, peer| {
        play.route(PEERS_PATH, flat(&[peer]))
            .route(CONFIG, statusnet_config(json!(false)))
    });
}

fn without_list(table: &mut Table) {
    for (software, version) in [
        ("gnusocial", "2.0.1-beta0"),
        ("diaspora", "0.9.0.0"),
        ("writefreely", "0.16.0"),
        ("wordpress", "6.8.3"),
        ("mobilizon", "5.1.5"),
        ("nodebb", "4.6.0"),
        ("discourse", "3.6.0"),
        ("synapse", "1.142.0"),
    ] {
        let host = format!("{software}.lab.test");
        let play = living(&host, software, version)
            .route(CONFIG, statusnet_config(json!(false)))
            .route(SITE_INFO, siteinfo(json!(0)));
        let plays = format!("{software} {version}, which has no peers list");
        let expectation = Expectation::alive()
            .running(software)
            .saying(open_registrations(software));
        table
            .add(&host, &plays, &[])
            .expecting(expectation)
            .acting(play);
    }
}

fn unknown(table: &mut Table) {
    family(table, "relay", "activityrelay", "0.3.4", |_, host, peer| {
        let mut relay = document("activityrelay", "0.3.4");
        set(&mut relay, "metadata", json!({"peers": [peer]}));
        with_document(host, &relay).route(PEERS_PATH, flat(&[BLOCKED]))
    });
    let (name, version) = ("unheard-of", "0.0.1");
    family(table, name, name, version, |play, _, peer| {
        play.route(PEERS_PATH, flat(&[peer]))
    });
    let host = "unheard-of-zot.lab.test";
    let mut zot = document("unheard-of-zot", "0.0.1");
    set(&mut zot, "protocols", json!(["zot"]));
    let plays = "Unknown software that doesn't speak ActivityPub: its peers are not asked for";
    table
        .add(host, plays, &[])
        .never_asking(PEERS_PATH)
        .acting(with_document(host, &zot).route(PEERS_PATH, flat(&[BLOCKED])));
}

fn private(table: &mut Table) {
    for (name, software, wish) in [
        ("pleroma-private", "pleroma", true),
        ("funkwhale-private", "funkwhale", true),
        ("pleroma-public", "pleroma", false),
    ] {
        let host = format!("{name}.lab.test");
        let mut private = document(software, "2.9.1");
        set(&mut private, "metadata", json!({"private": wish}));
        let (plays, expectation) = match wish {
            true => ("asks in its NodeInfo to be left out", Expectation::hidden()),
            false => (
                "says in its NodeInfo that it is not private",
                Expectation::alive(),
            ),
        };
        table
            .add(&host, &format!("{software} that {plays}"), &[])
            .expecting(expectation)
            .acting(with_document(&host, &private));
    }
    let denied = || statusnet_config(json!(true));
    let broken = Answer::html(200, "<html>");
    for (name, software, path, answer) in [
        (
            "hubzilla-true",
            "hubzilla",
            SITE_INFO,
            siteinfo(json!(true)),
        ),
        ("hubzilla-one", "hubzilla", SITE_INFO, siteinfo(json!(1))),
        ("hubzilla-text", "hubzilla", SITE_INFO, siteinfo(json!("1"))),
        ("red-one", "red", SITE_INFO, siteinfo(json!(1))),
        ("gnusocial-private", "gnusocial", CONFIG, denied()),
        ("friendica-private", "friendica", CONFIG, denied()),
        ("hubzilla-broken", "hubzilla", SITE_INFO, broken),
    ] {
        let host = format!("{name}.lab.test");
        let plays = format!("{software} that asks to be left out, or whose wish can't be learned");
        table
            .add(&host, &plays, &[])
            .expecting(Expectation::hidden())
            .acting(living(&host, software, "9.4").route(path, answer));
    }
    let host = "hubzilla-denied.lab.test";
    let play = living(host, "hubzilla", "9.4")
        .robots("User-agent: *\nDisallow: /siteinfo.json\n")
        .route(SITE_INFO, siteinfo(json!(0)));
    let plays = "hubzilla whose robots.txt keeps us from its flag: never seen before, it is hidden";
    table
        .add(host, plays, &[14])
        .expecting(Expectation::hidden())
        .never_asking(SITE_INFO)
        .acting(play);
}
