//! Peers lists that are junk, huge, refused, or meant to break a reader of untrusted names.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::shapes::{PEERS_PATH, flat, living, long_list};
use super::table::Table;
use crate::expectation::Expectation;
use crate::play::{Act, Answer};

pub(super) fn add(table: &mut Table) {
    junk(table);
    injection(table);
    long(table);
    refused(table);
    broken(table);
    slow(table);
}

fn persona(
    table: &mut Table,
    name: &str,
    plays: &str,
    facts: &[u8],
    wanted: Expectation,
    list: Answer,
) {
    let host = format!("{name}.lab.test");
    let play = living(&host, "mastodon", "4.5.2").route(PEERS_PATH, list);
    table.add(&host, plays, facts, wanted, play);
}

fn junk(table: &mut Table) {
    let list = json!([
        "UPPER.Lab-Junk.TEST", "dot.lab-junk.test.", "https://scheme.lab-junk.test", "http://path.lab-junk.test/about",
        "user@at.lab-junk.test", "@handle.lab-junk.test", "bücher.lab-junk.test",
        "127.0.0.1", "10.0.0.1:8443", "[::1]", "::ffff:10.0.0.1", "2130706433", "0x7f.1", "o*g.*u**", "*.lab-junk.test",
        null, 7, -1.5, true, {}, {"domain": 3}, [], ["nested.lab-junk-nested.test"], "", " ", ".", "..", "localhost",
        "hidden.onion", "hidden.i2p", "printer.local", "router.home.arpa", "com", "co.uk", "-flag.lab-junk.test",
        "under_score.lab-junk.test", "a b.lab-junk.test", "a..lab-junk.test", "x".repeat(300), format!("{}.lab-junk.test", "y".repeat(64)),
        "junk.lab.test", "JUNK.LAB.TEST."
    ]);
    let learned = [
        "upper.lab-junk.test",
        "dot.lab-junk.test",
        "scheme.lab-junk.test",
        "path.lab-junk.test",
        "at.lab-junk.test",
        "handle.lab-junk.test",
        "xn--bcher-kva.lab-junk.test",
    ];
    let wanted = Expectation::alive()
        .learning(&learned)
        .noting("The good names come through, in canonical form; the rest is dropped and counted.");
    persona(
        table,
        "junk",
        "Names whatever was ever seen in a peers list",
        &[17],
        wanted,
        Answer::json(&list),
    );
    for name in learned {
        table.add_absent(name, "junk.lab.test");
    }
}

fn injection(table: &mut Table) {
    let witness = "by-injection.lab-shapes.test";
    let list = json!([
        "-flag",
        "--help",
        "\"; DROP TABLE hosts; --",
        "'; DROP TABLE hosts; --.lab-junk.test",
        "x\n{\"alive\":{\"software\":\"forged\",\"private\":\"no\"}}",
        "{\"opted_out\":{}}",
        "<script>alert(1)</script>",
        "../../../../etc/passwd",
        "$(reboot).lab-junk.test",
        "`id`.lab-junk.test",
        "%0d%0a.lab-junk.test",
        "\u{0}.lab-junk.test",
        "a\u{202e}b.lab-junk.test",
        "\u{1b}[2J.lab-junk.test",
        witness
    ]);
    let wanted = Expectation::alive().learning(&[witness]);
    persona(
        table,
        "injection",
        "Names what a shell, a database, a page or a wire would take for its own",
        &[29],
        wanted,
        Answer::json(&list),
    );
    table.add_witness(witness, "injection.lab.test");
}

fn long(table: &mut Table) {
    let alive = Expectation::alive;
    let list = long_list(250_000, |n| format!("h{n:06}.flood.invalid"));
    persona(
        table,
        "long-list",
        "Names 250 000 hosts whose suffix nobody admits",
        &[2],
        alive(),
        list,
    );
    let list = long_list(300_000, |n| {
        format!("h{n:06}.{}.flood.invalid", "z".repeat(40))
    });
    let wanted = alive().noting("Its list is cut at a bound.");
    persona(
        table,
        "longer-list",
        "Names 300 000 hosts in 19 MiB",
        &[2],
        wanted,
        list,
    );
    let list = long_list(500_000, |n| format!("{}", n % 10));
    persona(
        table,
        "long-junk",
        "Names half a million digits",
        &[2, 17],
        alive(),
        list,
    );
    let via = "flood.lab.test";
    let names: Vec<String> = (0..200)
        .map(|n| format!("f{n:03}.lab-flood.test"))
        .collect();
    let learned: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted = alive().learning(&learned);
    persona(
        table,
        "flood",
        "Names 200 hosts of one domain that DNS doesn't know",
        &[1, 2],
        wanted,
        flat(&names),
    );
    for name in learned {
        table.add_absent(name, via);
    }
}

fn refused(table: &mut Table) {
    for status in [400, 401, 403, 404, 406, 410, 422, 500] {
        let wanted = Expectation::alive();
        persona(
            table,
            &format!("peers-{status}"),
            "Won't tell its peers",
            &[18],
            wanted,
            Answer::status(status),
        );
    }
    for status in [429, 503] {
        let answer = Answer::status(status).with("Retry-After", "3600");
        let plays = "Will tell its peers in an hour";
        persona(
            table,
            &format!("peers-{status}"),
            plays,
            &[18],
            Expectation::alive(),
            answer,
        );
    }
    let away = Answer::redirect(
        301,
        "https://peers.lab-evil-peers.test/api/v1/instance/peers",
    );
    let wanted = Expectation::alive().noting("A redirect of the peers list is no move.");
    persona(
        table,
        "peers-elsewhere",
        "Keeps its peers list at another host",
        &[24],
        wanted,
        away,
    );
    table.add_untouchable(
        "peers.lab-evil-peers.test",
        "Is where a peers list redirects to",
        &[24],
    );
}

fn broken(table: &mut Table) {
    let alive = Expectation::alive;
    persona(
        table,
        "peers-page",
        "Has a page instead of peers",
        &[8],
        alive(),
        Answer::html(200, "<html>"),
    );
    persona(
        table,
        "peers-object",
        "Has an object instead of peers",
        &[9],
        alive(),
        Answer::json(&json!({"error": "no"})),
    );
    let deep = format!("{}\"x.invalid\"{}", "[".repeat(50_000), "]".repeat(50_000));
    persona(
        table,
        "peers-deep",
        "Nests its peers 50 000 deep",
        &[23],
        alive(),
        Answer::json_bytes(deep),
    );
    let witness = "by-broken-list.lab-shapes.test";
    let list = format!("[\"{witness}\",\"x.invalid\",\"unfinished");
    persona(
        table,
        "peers-unfinished",
        "Breaks off in its peers list",
        &[23, 30],
        alive().learning(&[witness]),
        Answer::json_bytes(list),
    );
    table.add_witness(witness, "peers-unfinished.lab.test");
}

fn slow(table: &mut Table) {
    let alive = Expectation::alive;
    let head = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[");
    let endless = vec![
        Act::Send(head.clone()),
        Act::Repeat(Bytes::from("\"x.invalid\",".repeat(1000)), Duration::ZERO),
    ];
    persona(
        table,
        "peers-endless",
        "Has a peers list without end",
        &[20],
        alive(),
        Answer::Script(endless),
    );
    let drip = vec![
        Act::Send(head),
        Act::Repeat(Bytes::from_static(b" "), Duration::from_secs(9)),
    ];
    let wanted =
        alive().noting("The finding stands; the list is cut, because it comes too slowly.");
    persona(
        table,
        "peers-drip",
        "Sends a byte of its peers list each 9 s",
        &[21],
        wanted,
        Answer::Script(drip),
    );
    persona(
        table,
        "peers-silent",
        "Never answers when asked for peers",
        &[21],
        alive(),
        Answer::Script(vec![Act::Hold]),
    );
    persona(
        table,
        "peers-reset",
        "Resets the connection when asked for peers",
        &[30],
        alive(),
        Answer::Script(vec![Act::Reset]),
    );
}
