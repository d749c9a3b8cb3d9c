//! NodeInfo that is odd, on another host or missing.

use protocol::DeadReason;
use serde_json::{Value, json};

use super::shapes::{
    DOCUMENT, PEERS_PATH, SCHEMA, WELL_KNOWN, document, living, pointer, pointing, set,
};
use super::table::Table;
use crate::expectation::Expectation;
use crate::play::{Answer, Play};

pub(super) fn add(table: &mut Table) {
    elsewhere(table);
    addresses(table);
    odd_addresses(table);
    links(table);
    other_links(table);
    documents(table);
    odd_software(table);
    none(table);
    statuses(table);
    challenges(table);
}

fn pointed(
    table: &mut Table,
    name: &str,
    plays: &str,
    facts: &[u8],
    wanted: Expectation,
    well_known: &Value,
) {
    let host = format!("{name}.lab.test");
    let play = living(&host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::json(well_known));
    table.add(&host, plays, facts, wanted, play);
}

fn elsewhere(table: &mut Table) {
    let victim = "victim.lab-victim.test";
    let via = "elsewhere.lab.test";
    let wanted = Expectation::dead(&[DeadReason::NodeinfoElsewhere]).learning(&[victim]);
    pointed(
        table,
        "elsewhere",
        "Claims the NodeInfo of another",
        &[3],
        wanted,
        &pointer("2.0", &format!("https://{victim}/claimed")),
    );
    let row = table.add_witness(victim, via);
    row.plays = "Is claimed by elsewhere.lab.test: it is checked for itself, and the claimed address is never asked".to_owned();
    row.facts = vec![3, 26];
    row.expectation = Expectation::alive().never_asking("/claimed");
    row.play = row
        .play
        .clone()
        .route("/claimed", Answer::json(&document("claimed", "1")));
    let untouched = "victim.invalid";
    table.add_untouchable(
        untouched,
        "Is claimed by elsewhere-invalid.lab.test, and its name is none to be admitted",
        &[3],
    );
    let of_another = "Claims the NodeInfo of a name that nobody admits";
    let metadata = "http://169.254.169.254/latest/meta-data/";
    let port = "https://elsewhere-port.lab.test:8443/nodeinfo/2.0";
    for (name, plays, facts, href) in [
        (
            "invalid",
            of_another,
            &[3][..],
            &*format!("https://{untouched}/nodeinfo/2.0"),
        ),
        (
            "address",
            "Claims the NodeInfo of an address",
            &[3],
            "https://127.0.0.1/nodeinfo/2.0",
        ),
        (
            "metadata",
            "Points to a cloud's metadata service",
            &[3, 25],
            metadata,
        ),
        ("port", "Points to another port of its own", &[5], port),
    ] {
        let wanted = Expectation::dead(&[DeadReason::NodeinfoElsewhere]);
        let name = format!("elsewhere-{name}");
        pointed(table, &name, plays, facts, wanted, &pointer("2.0", href));
    }
}

fn addresses(table: &mut Table) {
    let port = "https://href-port.lab.test:443/nodeinfo/2.0";
    let case = "https://HREF-Case.LAB.test/nodeinfo/2.0";
    let dot = "https://href-dot.lab.test./nodeinfo/2.0";
    let http = "http://href-http.lab.test/nodeinfo/2.0";
    for (name, plays, fact, href) in [
        ("relative", "Has a relative NodeInfo address", 5, DOCUMENT),
        (
            "dotted",
            "Has one relative to well-known",
            5,
            "../nodeinfo/2.0",
        ),
        ("port", "Names port 443", 5, port),
        ("case", "Writes its name in capitals", 10, case),
        ("dot", "Writes its name with a last dot", 10, dot),
        ("http", "Has a NodeInfo address of plain HTTP", 4, http),
    ] {
        let name = format!("href-{name}");
        let pointer = pointer("2.0", href);
        pointed(table, &name, plays, &[fact], Expectation::alive(), &pointer);
    }
}

fn odd_addresses(table: &mut Table) {
    let unicode = "xn--bcher-kva.lab.test";
    let play = living(unicode, "mastodon", "4.5.2").route(
        WELL_KNOWN,
        Answer::json(&pointer("2.0", "https://Bücher.lab.test/nodeinfo/2.0")),
    );
    let wanted = Expectation::alive();
    table.add(
        unicode,
        "Writes its name as a U-label",
        &[10, 17],
        wanted,
        play,
    );
    let wanted = Expectation::dead(&[
        DeadReason::NoNodeinfo,
        DeadReason::NodeinfoElsewhere,
        DeadReason::NotNodeinfo,
    ]);
    for (name, plays, href) in [
        (
            "href-garbage",
            "Has a NodeInfo address that is none",
            "https://[::/",
        ),
        (
            "href-script",
            "Has a NodeInfo address that is a script",
            "javascript:alert(1)",
        ),
    ] {
        pointed(
            table,
            name,
            plays,
            &[5],
            wanted.clone(),
            &pointer("2.0", href),
        );
    }
}

fn links(table: &mut Table) {
    let link = |host: &str| json!({"rel": format!("{SCHEMA}2.0"), "href": format!("https://{host}/nodeinfo/2.0")});
    let alive = Expectation::alive;
    let host = "links-object.lab.test";
    pointed(
        table,
        "links-object",
        "Has one bare link instead of an array",
        &[6],
        alive(),
        &json!({"links": link(host)}),
    );
    let host = "links-numbered.lab.test";
    pointed(
        table,
        "links-numbered",
        "Has numbered keys next to its links",
        &[6],
        alive(),
        &json!({"0": link(host), "links": [link(host)]}),
    );
    let host = "links-junk.lab.test";
    let junk = json!({"links": [null, 7, [], {"rel": 3, "href": 4}, {"rel": format!("{SCHEMA}2.1")}, link(host)]});
    pointed(
        table,
        "links-junk",
        "Has one good link among bad ones",
        &[6],
        alive(),
        &junk,
    );
}

fn other_links(table: &mut Table) {
    let none = || Expectation::dead(&[DeadReason::NoNodeinfo, DeadReason::NotNodeinfo]);
    pointed(
        table,
        "links-empty",
        "Has an empty list of links",
        &[6],
        none(),
        &json!({"links": []}),
    );
    pointed(
        table,
        "links-absent",
        "Has no links",
        &[6],
        none(),
        &json!({}),
    );
    let host = "links-future.lab.test";
    let future = json!({"links": [{"rel": format!("{SCHEMA}9.9"), "href": format!("https://{host}/nodeinfo/2.0")}]});
    pointed(
        table,
        "links-future",
        "Has a version from the future alone",
        &[6],
        none(),
        &future,
    );
    let host = "links-many.lab.test";
    let many: Vec<Value> = ["1.0", "2.1", "1.1", "2.0"]
        .iter()
        .map(|version| json!({"rel": format!("{SCHEMA}{version}"), "href": format!("https://{host}/nodeinfo/{version}")}))
        .collect();
    let play = Play::default()
        .route(WELL_KNOWN, Answer::json(&json!({"links": many})))
        .route(
            "/nodeinfo/2.1",
            Answer::json(&document("mastodon", "4.5.2")),
        );
    let wanted = Expectation::alive()
        .never_asking("/nodeinfo/1.0")
        .never_asking("/nodeinfo/2.0");
    table.add(
        host,
        "Has many versions, of which only the best is there",
        &[6],
        wanted,
        play,
    );
}

fn documented(
    table: &mut Table,
    name: &str,
    plays: &str,
    facts: &[u8],
    wanted: Expectation,
    change: impl FnOnce(&mut Value),
) {
    let host = format!("{name}.lab.test");
    let mut value = document("mastodon", "4.5.2");
    change(&mut value);
    let play = pointing(&host).route(DOCUMENT, Answer::json(&value));
    table.add(&host, plays, facts, wanted, play);
}

fn documents(table: &mut Table) {
    let alive = Expectation::alive;
    documented(
        table,
        "name-case",
        "Writes its software in odd case",
        &[10],
        alive().running("mastodon"),
        |value| {
            set(
                value,
                "software",
                json!({"name": "MastoDON", "version": "4.5.2"}),
            );
        },
    );
    documented(
        table,
        "numbers-as-text",
        "Writes numbers as text, and says yes to registrations",
        &[10],
        alive().saying(None),
        |value| {
            set(
                value,
                "usage",
                json!({"users": {"total": "1,200", "activeMonth": null}, "localPosts": "many"}),
            );
            set(value, "openRegistrations", json!("yes"));
        },
    );
    documented(
        table,
        "services-array",
        "Has an array where an object belongs",
        &[10],
        alive(),
        |value| {
            set(value, "services", json!([]));
            set(value, "metadata", json!([]));
            set(value, "usage", json!([]));
        },
    );
    documented(
        table,
        "poisoned",
        "Has poisoned statistics",
        &[11],
        alive(),
        |value| {
            set(
                value,
                "usage",
                json!({"users": {"total": 99_999_999_999_999_999_999_999.0_f64, "activeMonth": -7, "activeHalfyear": 1e308}, "localPosts": u64::MAX}),
            );
        },
    );
}

fn odd_software(table: &mut Table) {
    let alive = Expectation::alive;
    let not = || Expectation::dead(&[DeadReason::NotNodeinfo]);
    let number = json!({"name": "mastodon", "version": 4});
    let unnamed = json!({"name": "", "version": "1"});
    for (name, plays, wanted, software) in [
        (
            "version-number",
            "Has a number as its version",
            alive(),
            number,
        ),
        (
            "name-number",
            "Has a number as its software's name",
            not(),
            json!({"name": 7, "version": "1"}),
        ),
        (
            "name-absent",
            "Says nothing of its software",
            not(),
            json!({}),
        ),
        ("name-empty", "Has software without a name", not(), unnamed),
    ] {
        documented(table, name, plays, &[10], wanted, |value| {
            set(value, "software", software);
        });
    }
}

fn none(table: &mut Table) {
    let host = "pointer-404.lab.test";
    let wanted = Expectation::dead(&[DeadReason::NoNodeinfo]).never_asking(PEERS_PATH);
    table.add(
        host,
        "Points to a document that isn't there",
        &[7],
        wanted,
        pointing(host),
    );
    let host = "pointer-next.lab.test";
    let links = ["2.0", "2.1"].map(|version| {
        json!({"rel": format!("{SCHEMA}{version}"), "href": format!("https://{host}/nodeinfo/{version}")})
    });
    table.add(
        host,
        "Points to a document of 2.1 that isn't there, and to one of 2.0 that is",
        &[7],
        Expectation::alive(),
        living(host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::json(&json!({"links": links}))),
    );
    let wanted = Expectation::dead(&[DeadReason::NoNodeinfo]);
    table.add(
        "no-nodeinfo.lab.test",
        "Has no NodeInfo",
        &[7],
        wanted,
        Play::default(),
    );
    let page = "<!doctype html><title>Welcome</title><script>location='/'</script>\u{1b}[2J";
    let wanted = Expectation::dead(&[DeadReason::NotNodeinfo]);
    table.add(
        "parked.lab.test",
        "Answers everything with a page, as parked domains do",
        &[8],
        wanted.clone(),
        Play::default().otherwise(Answer::html(200, page)),
    );
    let host = "page-document.lab.test";
    table.add(
        host,
        "Has a page where its document should be",
        &[8],
        wanted.clone(),
        pointing(host).route(DOCUMENT, Answer::html(200, page)),
    );
    let host = "error-document.lab.test";
    let error = Answer::json(&json!({"error": "This API is not available"}));
    table.add(
        host,
        "Has a JSON error with status 200 where its document should be",
        &[9],
        wanted,
        pointing(host).route(DOCUMENT, error.clone()),
    );
    let wanted = Expectation::dead(&[DeadReason::NoNodeinfo, DeadReason::NotNodeinfo]);
    table.add(
        "error-all.lab.test",
        "Answers everything with a JSON error and status 200",
        &[9],
        wanted,
        Play::default().otherwise(error),
    );
}

fn statuses(table: &mut Table) {
    let well_known = |answer: Answer| Play::default().route(WELL_KNOWN, answer);
    for status in [401, 403, 451] {
        let host = format!("refuses-{status}.lab.test");
        table.add(
            &host,
            "Won't show its NodeInfo",
            &[19],
            Expectation::refused(),
            well_known(Answer::status(status)),
        );
    }
    let later = Answer::status(429).with("Retry-After", "120");
    table.add(
        "refuses-429.lab.test",
        "Asks us to come back in two minutes",
        &[18, 19],
        Expectation::refused(),
        well_known(later),
    );
    let later = Answer::status(503).with("Retry-After", "Sat, 21 Nov 2026 23:00:00 GMT");
    table.add(
        "refuses-503.lab.test",
        "Is down for maintenance until a date",
        &[18, 19],
        Expectation::refused(),
        well_known(later),
    );
    table.add(
        "refuses-all.lab.test",
        "Answers everything with 403",
        &[19],
        Expectation::refused(),
        Play::default().otherwise(Answer::status(403)),
    );
    table.add(
        "gone.lab.test",
        "Answers everything with 410",
        &[32],
        Expectation::gone(),
        Play::default().otherwise(Answer::status(410)),
    );
    for status in [400, 405, 418, 500, 502, 504] {
        let host = format!("status-{status}.lab.test");
        let wanted = Expectation::dead(&[DeadReason::Status]);
        table.add(
            &host,
            "Has a status instead of NodeInfo",
            &[9],
            wanted,
            well_known(Answer::status(status)),
        );
    }
    for status in [204, 206, 304] {
        let host = format!("status-{status}.lab.test");
        let wanted = Expectation::dead(&[DeadReason::Status, DeadReason::NotNodeinfo]);
        let body = if status == 206 { r#"{"links":["# } else { "" };
        let answer = Answer::typed(status, "application/json", body);
        table.add(
            &host,
            "Has an answer without its body",
            &[30],
            wanted,
            well_known(answer),
        );
    }
}

fn challenges(table: &mut Table) {
    let page =
        "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title></head></html>";
    for status in [403, 503] {
        let challenge = Answer::html(status, page)
            .with("Server", "cloudflare")
            .with("cf-mitigated", "challenge");
        let host = format!("challenge-{status}.lab.test");
        let play = Play::default().route(WELL_KNOWN, challenge);
        table.add(
            &host,
            "Has a bot challenge before its NodeInfo",
            &[19],
            Expectation::refused(),
            play,
        );
    }
    let challenge = Answer::html(503, page)
        .with("Server", "cloudflare")
        .with("cf-mitigated", "challenge");
    let page = r#"<!DOCTYPE html><title>Making sure you're not a bot!</title><script id="anubis_challenge" type="application/json">{}</script>"#;
    for (host, about, wall) in [
        (
            "challenge-all.lab.test",
            "Has a bot challenge of status 503 before everything",
            challenge,
        ),
        (
            "proof-of-work.lab.test",
            "Answers everything with a proof of work and status 200",
            Answer::html(200, page),
        ),
    ] {
        let play = Play::default().otherwise(wall);
        table.add(host, about, &[19], Expectation::refused(), play);
    }
}
