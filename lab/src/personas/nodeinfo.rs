//! NodeInfo that is odd, on another host or missing.

use protocol::DeadReason::{self, NoNodeinfo, NodeinfoElsewhere, NotNodeinfo};
use serde_json::{Value, json};

use super::shapes::{DOCUMENT, PEERS_PATH, SCHEMA, WELL_KNOWN, document, pointer, pointing, set};
use super::table::{Persona, Table};
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

impl Persona {
    /// Its well-known NodeInfo is this.
    fn well_known(&mut self, value: &Value) -> &mut Self {
        self.route(WELL_KNOWN, Answer::json(value))
    }

    /// Its well-known NodeInfo points to this address.
    fn pointed(&mut self, href: &str) -> &mut Self {
        self.well_known(&pointer("2.0", href))
    }

    /// Its document is an ordinary one with this member.
    fn documented(&mut self, key: &str, value: Value) -> &mut Self {
        self.changed(&[(key, value)])
    }

    /// Its document is an ordinary one with these members.
    fn changed(&mut self, members: &[(&str, Value)]) -> &mut Self {
        let mut changed = document("mastodon", "4.5.2");
        for (key, value) in members {
            set(&mut changed, key, value.clone());
        }
        self.route(DOCUMENT, Answer::json(&changed))
    }
}

fn elsewhere(table: &mut Table) {
    let victim = "victim.lab-victim.test";
    let via = "elsewhere.lab.test";
    table
        .add(via, "Claims the NodeInfo of another", &[3])
        .dead(&[NodeinfoElsewhere])
        .learning(&[victim])
        .pointed(&format!("https://{victim}/claimed"));
    let row = table.add_witness(victim, via);
    row.plays = "Is claimed by elsewhere.lab.test: it is checked for itself, and the claimed address is never asked".to_owned();
    row.facts = vec![3, 26];
    row.never_asking("/claimed")
        .route("/claimed", Answer::json(&document("claimed", "1")));
    let untouched = "victim.invalid";
    let plays = "Is claimed by elsewhere-invalid.lab.test, and its name is none to be admitted";
    table.add_untouchable(untouched, plays, &[3]);
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
        let row = table.add(&format!("elsewhere-{name}"), plays, facts);
        row.dead(&[NodeinfoElsewhere]).pointed(href);
    }
}

fn addresses(table: &mut Table) {
    let port = "https://href-port.lab.test:443/nodeinfo/2.0";
    let case = "https://HREF-Case.LAB.test/nodeinfo/2.0";
    let dot = "https://href-dot.lab.test./nodeinfo/2.0";
    let http = "http://href-http.lab.test/nodeinfo/2.0";
    let dotted = "../nodeinfo/2.0";
    for (name, plays, fact, href) in [
        ("relative", "Has a relative NodeInfo address", 5, DOCUMENT),
        ("dotted", "Has one relative to well-known", 5, dotted),
        ("port", "Names port 443", 5, port),
        ("case", "Writes its name in capitals", 10, case),
        ("dot", "Writes its name with a last dot", 10, dot),
        ("http", "Has a NodeInfo address of plain HTTP", 4, http),
    ] {
        let row = table.add(&format!("href-{name}"), plays, &[fact]);
        row.pointed(href);
    }
}

fn odd_addresses(table: &mut Table) {
    let unicode = "xn--bcher-kva.lab.test";
    table
        .add(unicode, "Writes its name as a U-label", &[10, 17])
        .pointed("https://Bücher.lab.test/nodeinfo/2.0");
    let script = "javascript:alert(1)";
    for (name, plays, href) in [
        (
            "garbage",
            "Has a NodeInfo address that is none",
            "https://[::/",
        ),
        ("script", "Has a NodeInfo address that is a script", script),
    ] {
        table
            .add(&format!("href-{name}"), plays, &[5])
            .dead(&[NoNodeinfo, NodeinfoElsewhere, NotNodeinfo])
            .pointed(href);
    }
}

/// A link to a document of that version.
fn link(name: &str, version: &str) -> Value {
    json!({"rel": format!("{SCHEMA}{version}"), "href": format!("https://{name}.lab.test/nodeinfo/{version}")})
}

fn links(table: &mut Table) {
    let bare = link("links-object", "2.0");
    let plays = "Has one bare link instead of an array";
    table
        .add("links-object", plays, &[6])
        .well_known(&json!({"links": bare}));
    let good = link("links-numbered", "2.0");
    let plays = "Has numbered keys next to its links";
    table
        .add("links-numbered", plays, &[6])
        .well_known(&json!({"0": good, "links": [good]}));
    let good = link("links-junk", "2.0");
    let junk = json!({"links": [null, 7, [], {"rel": 3, "href": 4}, {"rel": format!("{SCHEMA}2.1")}, good]});
    table
        .add("links-junk", "Has one good link among bad ones", &[6])
        .well_known(&junk);
}

fn other_links(table: &mut Table) {
    let future = link("links-future", "9.9");
    for (name, plays, value) in [
        (
            "links-empty",
            "Has an empty list of links",
            json!({"links": []}),
        ),
        ("links-absent", "Has no links", json!({})),
        (
            "links-future",
            "Has a version from the future alone",
            json!({"links": [future]}),
        ),
    ] {
        let row = table.add(name, plays, &[6]);
        row.dead(&[NoNodeinfo, NotNodeinfo]).well_known(&value);
    }
    let many = ["1.0", "2.1", "1.1", "2.0"].map(|version| link("links-many", version));
    let document = Answer::json(&document("mastodon", "4.5.2"));
    let play = Play::default()
        .route(WELL_KNOWN, Answer::json(&json!({"links": many})))
        .route("/nodeinfo/2.1", document);
    let plays = "Has many versions, of which only the best is there";
    table
        .add("links-many", plays, &[6])
        .never_asking("/nodeinfo/1.0")
        .never_asking("/nodeinfo/2.0")
        .acting(play);
}

fn documents(table: &mut Table) {
    let alive = Expectation::alive;
    let odd = json!({"name": "MastoDON", "version": "4.5.2"});
    table
        .add("name-case", "Writes its software in odd case", &[10])
        .expecting(alive().running("mastodon"))
        .documented("software", odd);
    let usage = json!({"users": {"total": "1,200", "activeMonth": null}, "localPosts": "many"});
    let plays = "Writes numbers as text, and says yes to registrations";
    table
        .add("numbers-as-text", plays, &[10])
        .expecting(alive().saying(None))
        .changed(&[("usage", usage), ("openRegistrations", json!("yes"))]);
    let plays = "Has an array where an object belongs";
    table
        .add("services-array", plays, &[10])
        .changed(&["services", "metadata", "usage"].map(|key| (key, json!([]))));
    let usage = json!({"users": {"total": 99_999_999_999_999_999_999_999.0_f64, "activeMonth": -7, "activeHalfyear": 1e308}, "localPosts": u64::MAX});
    table
        .add("poisoned", "Has poisoned statistics", &[11])
        .documented("usage", usage);
}

fn odd_software(table: &mut Table) {
    let number = json!({"name": "mastodon", "version": 4});
    table
        .add("version-number", "Has a number as its version", &[10])
        .documented("software", number);
    let number = json!({"name": 7, "version": "1"});
    let unnamed = json!({"name": "", "version": "1"});
    for (name, plays, software) in [
        ("number", "Has a number as its software's name", number),
        ("absent", "Says nothing of its software", json!({})),
        ("empty", "Has software without a name", unnamed),
    ] {
        let row = table.add(&format!("name-{name}"), plays, &[10]);
        row.dead(&[NotNodeinfo]).documented("software", software);
    }
}

fn none(table: &mut Table) {
    let host = "pointer-404.lab.test";
    table
        .add(host, "Points to a document that isn't there", &[7])
        .dead(&[NoNodeinfo])
        .never_asking(PEERS_PATH)
        .acting(pointing(host));
    let links = ["2.0", "2.1"].map(|version| link("pointer-next", version));
    let plays = "Points to a document of 2.1 that isn't there, and to one of 2.0 that is";
    table
        .add("pointer-next", plays, &[7])
        .well_known(&json!({"links": links}));
    table
        .add("no-nodeinfo", "Has no NodeInfo", &[7])
        .dead(&[NoNodeinfo])
        .acting(Play::default());
    let page = "<!doctype html><title>Welcome</title><script>location='/'</script>\u{1b}[2J";
    let plays = "Answers everything with a page, as parked domains do";
    table
        .add("parked", plays, &[8])
        .dead(&[NotNodeinfo])
        .acting(Play::default().otherwise(Answer::html(200, page)));
    let plays = "Has a page where its document should be";
    table
        .add("page-document", plays, &[8])
        .dead(&[NotNodeinfo])
        .route(DOCUMENT, Answer::html(200, page));
    let error = Answer::json(&json!({"error": "This API is not available"}));
    let plays = "Has a JSON error with status 200 where its document should be";
    table
        .add("error-document", plays, &[9])
        .dead(&[NotNodeinfo])
        .route(DOCUMENT, error.clone());
    let plays = "Answers everything with a JSON error and status 200";
    table
        .add("error-all", plays, &[9])
        .dead(&[NoNodeinfo, NotNodeinfo])
        .acting(Play::default().otherwise(error));
}

fn statuses(table: &mut Table) {
    let well_known = |answer: Answer| Play::default().route(WELL_KNOWN, answer);
    for status in [401, 403, 451] {
        let name = format!("refuses-{status}");
        table
            .add(&name, "Won't show its NodeInfo", &[19])
            .expecting(Expectation::refused())
            .acting(well_known(Answer::status(status)));
    }
    let in_minutes = "Asks us to come back in two minutes";
    let until_date = "Is down for maintenance until a date";
    let date = "Sat, 21 Nov 2026 23:00:00 GMT";
    for (status, plays, later) in [(429, in_minutes, "120"), (503, until_date, date)] {
        let name = format!("refuses-{status}");
        let answer = Answer::status(status).with("Retry-After", later);
        table
            .add(&name, plays, &[18, 19])
            .expecting(Expectation::refused())
            .acting(well_known(answer));
    }
    let everywhere = |status| Play::default().otherwise(Answer::status(status));
    table
        .add("refuses-all", "Answers everything with 403", &[19])
        .expecting(Expectation::refused())
        .acting(everywhere(403));
    table
        .add("gone", "Answers everything with 410", &[32])
        .expecting(Expectation::gone())
        .acting(everywhere(410));
    for status in [400, 405, 418, 500, 502, 504] {
        let name = format!("status-{status}");
        table
            .add(&name, "Has a status instead of NodeInfo", &[9])
            .dead(&[DeadReason::Status])
            .acting(well_known(Answer::status(status)));
    }
    for status in [204, 206, 304] {
        let body = if status == 206 { r#"{"links":["# } else { "" };
        let answer = Answer::typed(status, "application/json", body);
        let name = format!("status-{status}");
        table
            .add(&name, "Has an answer without its body", &[30])
            .dead(&[DeadReason::Status, NotNodeinfo])
            .acting(well_known(answer));
    }
}

fn challenges(table: &mut Table) {
    let page =
        "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title></head></html>";
    let challenge = |status| {
        Answer::html(status, page)
            .with("Server", "cloudflare")
            .with("cf-mitigated", "challenge")
    };
    let before = "Has a bot challenge before its NodeInfo";
    let before_all = "Has a bot challenge of status 503 before everything";
    let work = r#"<!DOCTYPE html><title>Making sure you're not a bot!</title><script id="anubis_challenge" type="application/json">{}</script>"#;
    let well_known = |answer| Play::default().route(WELL_KNOWN, answer);
    let everywhere = |answer| Play::default().otherwise(answer);
    let plays_work = "Answers everything with a proof of work and status 200";
    for (name, plays, play) in [
        ("challenge-403", before, well_known(challenge(403))),
        ("challenge-503", before, well_known(challenge(503))),
        ("challenge-all", before_all, everywhere(challenge(503))),
        (
            "proof-of-work",
            plays_work,
            everywhere(Answer::html(200, work)),
        ),
    ] {
        let row = table.add(name, plays, &[19]);
        row.expecting(Expectation::refused()).acting(play);
    }
}
