//! Every kind of software as a responding instance with its real peers endpoint, and instances that
//! ask to be left out of statistics.
//!
//! Each family's list names a witness that no other list names.

use serde_json::json;

use super::shapes::{
    PEERS_PATH, document, flat, funkwhale, gotosocial, lemmy_federated, lemmy_paged, lemmy_site,
    living, mbin, misskey_instances, open_registrations, peertube, pointer, set, siteinfo,
    statusnet_config, with_document,
};
use super::table::Table;
use crate::expectation::Expectation;
use crate::play::{Answer, Play};

/// Named among blocked instances, never as a peer.
const BLOCKED: &str = "blocked.lab-shapes.test";

const ELSEWHERE: &str = "next-page.lab-shapes.test";

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
    table.add_untouchable(
        BLOCKED,
        "Is named only in lists of blocked instances, and a blocked instance is nobody's peer",
        &[],
    );
    table.add_untouchable(
        ELSEWHERE,
        "Is named only as the address of a list's next page",
        &[],
    );
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
    table.add(&host, &plays, &[], expectation, play);
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
    let play = living(host, "bookwyrm", "0.8.1").route(
        super::shapes::WELL_KNOWN,
        Answer::json(&pointer("2.0", &format!("http://{host}/nodeinfo/2.0"))),
    );
    let witness = "by-bookwyrm.lab-shapes.test";
    let expectation = Expectation::alive()
        .running("bookwyrm")
        .learning(&[witness]);
    table.add(
        host,
        "bookwyrm, whose NodeInfo address is http",
        &[4],
        expectation,
        play.route(PEERS_PATH, flat(&[witness])),
    );
    table.add_witness(witness, host);
}

/// snac2 ships a robots.txt that refuses all clients; an owner may allow us.
fn snacs(table: &mut Table) {
    let deny = "User-agent: *\nDisallow: /\n";
    let host = "snac.lab.test";
    table.add(
        host,
        "snac as it comes, whose robots.txt refuses everybody",
        &[14],
        Expectation::opted_out(&["/robots.txt"]),
        living(host, "snac", "2.84")
            .robots(deny)
            .route(PEERS_PATH, flat(&[BLOCKED])),
    );
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
    family(
        table,
        "gotosocial-open",
        "gotosocial",
        "0.20.2",
        |play, _, peer| play.route(PEERS_PATH, gotosocial(&[peer])),
    );
    let host = "gotosocial.lab.test";
    let robots = "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nCrawl-delay: 500\nDisallow: /api/\nDisallow: /auth/\n";
    table.add(
        host,
        "gotosocial as it comes, whose robots.txt keeps us from its API",
        &[14, 18],
        Expectation::alive()
            .running("gotosocial")
            .never_asking(PEERS_PATH),
        living(host, "gotosocial", "0.20.2")
            .robots(robots)
            .route(PEERS_PATH, flat(&[BLOCKED])),
    );
    family(
        table,
        "gotosocial-objects",
        "gotosocial",
        "0.21.0-rc1",
        |play, _, peer| {
            let list = json!([{"domain": peer}, {"domain": "o*g.*u**"}, {"domain": "x.invalid", "suspended_at": "2024-02-29T00:00:00Z"}]);
            play.route(PEERS_PATH, Answer::json(&list))
        },
    );
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
        play.route(
            "/api/alpha/federated_instances",
            lemmy_federated(&[peer], &[BLOCKED]),
        )
    });
    family(table, "mbin", "mbin", "1.8.2", |play, _, peer| {
        play.route("/api/federated", mbin(&[peer]))
            .route("/api/defederated", mbin(&[BLOCKED]))
    });
    let host = "lemmy-alone.lab.test";
    table.add(
        host,
        "lemmy with federation switched off: the object is absent",
        &[],
        Expectation::alive().running("lemmy"),
        living(host, "lemmy", "0.19.13").route(v3, Answer::json(&json!({}))),
    );
}

fn media(table: &mut Table) {
    family(table, "owncast", "owncast", "0.3.0", |play, _, peer| {
        let servers = json!({"servers": [{"iri": format!("https://{peer}/federation/user/a")}]});
        play.route("/api/federation/servers", Answer::json(&servers))
    });
    family(table, "hubzilla", "hubzilla", "9.4", |play, _, peer| {
        let sites = json!({"entries": [{"url": format!("https://{peer}")}]});
        play.route("/siteinfo.json", siteinfo(json!(0)))
            .route("/sitelist", Answer::json(&sites))
    });
    family(
        table,
        "peertube",
        "peertube",
        "7.3.0",
        |play, host, peer| {
            let mut following: Vec<String> =
                (0..119).map(|n| format!("p{n}.pages.invalid")).collect();
            following.push(peer.to_owned());
            play.route(
                "/api/v1/server/following",
                peertube("following", host, &following),
            )
            .route(
                "/api/v1/server/followers",
                peertube(
                    "follower",
                    host,
                    &["by-followers.lab-shapes.test".to_owned()],
                ),
            )
        },
    );
    table.add_witness("by-followers.lab-shapes.test", "peertube.lab.test");
    if let Some(row) = table
        .rows
        .iter_mut()
        .find(|row| row.host.as_str() == "peertube.lab.test")
    {
        row.expectation = row
            .expectation
            .clone()
            .learning(&["by-followers.lab-shapes.test"]);
    }
    family(table, "pixelfed", "pixelfed", "0.12.6", |play, _, peer| {
        play.route(PEERS_PATH, flat(&[peer]))
    });
    family(table, "funkwhale", "funkwhale", "1.4.0", |play, _, peer| {
        play.route(
            "/api/v1/federation/domains",
            funkwhale(ELSEWHERE, &[&["p1.pages.invalid"], &[peer]]),
        )
        .route(
            "/api/v1/federation/domains/",
            funkwhale(ELSEWHERE, &[&["p1.pages.invalid"], &[peer]]),
        )
    });
}

fn friendicas(table: &mut Table) {
    family(
        table,
        "friendica",
        "friendica",
        "2025.07",
        |play, _, peer| {
            play.route(PEERS_PATH, flat(&[peer]))
                .route("/api/statusnet/config.json", statusnet_config(json!(false)))
        },
    );
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
            .route("/api/statusnet/config.json", statusnet_config(json!(false)))
            .route("/siteinfo.json", siteinfo(json!(0)));
        let plays = format!("{software} {version}, which has no peers list");
        let expectation = Expectation::alive()
            .running(software)
            .saying(open_registrations(software));
        table.add(&host, &plays, &[], expectation, play);
    }
}

fn unknown(table: &mut Table) {
    family(table, "relay", "activityrelay", "0.3.4", |_, host, peer| {
        let mut relay = document("activityrelay", "0.3.4");
        set(&mut relay, "metadata", json!({"peers": [peer]}));
        with_document(host, &relay).route(PEERS_PATH, flat(&[BLOCKED]))
    });
    family(
        table,
        "unheard-of",
        "unheard-of",
        "0.0.1",
        |play, _, peer| play.route(PEERS_PATH, flat(&[peer])),
    );
    let host = "unheard-of-zot.lab.test";
    let mut zot = document("unheard-of-zot", "0.0.1");
    set(&mut zot, "protocols", json!(["zot"]));
    table.add(
        host,
        "Unknown software that doesn't speak ActivityPub: its peers are not asked for",
        &[],
        Expectation::alive().never_asking(PEERS_PATH),
        with_document(host, &zot).route(PEERS_PATH, flat(&[BLOCKED])),
    );
}

fn private(table: &mut Table) {
    for (name, software, wish) in [
        ("pleroma-private", "pleroma", json!(true)),
        ("funkwhale-private", "funkwhale", json!(true)),
        ("pleroma-public", "pleroma", json!(false)),
    ] {
        let host = format!("{name}.lab.test");
        let mut private = document(software, "2.9.1");
        set(&mut private, "metadata", json!({"private": wish}));
        let (plays, expectation) = if wish == json!(true) {
            ("asks in its NodeInfo to be left out", Expectation::hidden())
        } else {
            (
                "says in its NodeInfo that it is not private",
                Expectation::alive(),
            )
        };
        let plays = format!("{software} that {plays}");
        table.add(
            &host,
            &plays,
            &[],
            expectation,
            with_document(&host, &private),
        );
    }
    let config = "/api/statusnet/config.json";
    let info = "/siteinfo.json";
    for (name, software, path, answer) in [
        ("hubzilla-true", "hubzilla", info, siteinfo(json!(true))),
        ("hubzilla-one", "hubzilla", info, siteinfo(json!(1))),
        ("hubzilla-text", "hubzilla", info, siteinfo(json!("1"))),
        ("red-one", "red", info, siteinfo(json!(1))),
        (
            "gnusocial-private",
            "gnusocial",
            config,
            statusnet_config(json!(true)),
        ),
        (
            "friendica-private",
            "friendica",
            config,
            statusnet_config(json!(true)),
        ),
        (
            "hubzilla-broken",
            "hubzilla",
            info,
            Answer::html(200, "<html>"),
        ),
    ] {
        let host = format!("{name}.lab.test");
        let plays = format!("{software} that asks to be left out, or whose wish can't be learned");
        let play = living(&host, software, "9.4").route(path, answer);
        table.add(&host, &plays, &[], Expectation::hidden(), play);
    }
    let host = "hubzilla-denied.lab.test";
    table.add(
        host,
        "hubzilla whose robots.txt keeps us from its flag: never seen before, it is hidden",
        &[14],
        Expectation::hidden().never_asking(info),
        living(host, "hubzilla", "9.4")
            .robots("User-agent: *\nDisallow: /siteinfo.json\n")
            .route(info, siteinfo(json!(0))),
    );
}
