//! Peers lists that are junk, huge, refused, or meant to break a reader of untrusted names.

use std::time::Duration;

use serde_json::json;

use super::shapes::{PEERS_PATH, flat, long_list};
use super::table::{Persona, Table};
use crate::play::{Act, Answer};

pub(super) fn add(table: &mut Table) {
    junk(table);
    injection(table);
    long(table);
    refused(table);
    broken(table);
    slow(table);
}

impl Persona {
    fn peers(&mut self, list: Answer) -> &mut Self {
        self.route(PEERS_PATH, list)
    }
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
    let plays = "Names whatever was ever seen in a peers list";
    table
        .add("junk", plays, &[17])
        .learning(&learned)
        .noting("The good names come through, in canonical form; the rest is dropped and counted.")
        .peers(Answer::json(&list));
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
    let plays = "Names what a shell, a database, a page or a wire would take for its own";
    table
        .add("injection", plays, &[29])
        .learning(&[witness])
        .peers(Answer::json(&list));
    table.add_witness(witness, "injection.lab.test");
}

fn long(table: &mut Table) {
    let list = long_list(250_000, |n| format!("h{n:06}.flood.invalid"));
    let plays = "Names 250 000 hosts whose suffix nobody admits";
    table.add("long-list", plays, &[2]).peers(list);
    let list = long_list(300_000, |n| {
        format!("h{n:06}.{}.flood.invalid", "z".repeat(40))
    });
    table
        .add("longer-list", "Names 300 000 hosts in 19 MiB", &[2])
        .noting("Its list is cut at a bound.")
        .peers(list);
    let list = long_list(500_000, |n| format!("{}", n % 10));
    table
        .add("long-junk", "Names half a million digits", &[2, 17])
        .peers(list);
    let names: Vec<String> = (0..200)
        .map(|n| format!("f{n:03}.lab-flood.test"))
        .collect();
    let learned: Vec<&str> = names.iter().map(String::as_str).collect();
    let plays = "Names 200 hosts of one domain that DNS doesn't know";
    table
        .add("flood", plays, &[1, 2])
        .learning(&learned)
        .peers(flat(&names));
    for name in learned {
        table.add_absent(name, "flood.lab.test");
    }
}

fn refused(table: &mut Table) {
    for status in [400, 401, 403, 404, 406, 410, 422, 500] {
        let name = format!("peers-{status}");
        table
            .add(&name, "Won't tell its peers", &[18])
            .peers(Answer::status(status));
    }
    for status in [429, 503] {
        let name = format!("peers-{status}");
        table
            .add(&name, "Will tell its peers in an hour", &[18])
            .peers(Answer::status(status).with("Retry-After", "3600"));
    }
    let away = "peers.lab-evil-peers.test";
    let plays = "Keeps its peers list at another host";
    table
        .add("peers-elsewhere", plays, &[24])
        .noting("A redirect of the peers list is no move.")
        .peers(Answer::redirect(
            301,
            &format!("https://{away}{PEERS_PATH}"),
        ));
    table.add_untouchable(away, "Is where a peers list redirects to", &[24]);
}

fn broken(table: &mut Table) {
    table
        .add("peers-page", "Has a page instead of peers", &[8])
        .peers(Answer::html(200, "<html>"));
    table
        .add("peers-object", "Has an object instead of peers", &[9])
        .peers(Answer::json(&json!({"error": "no"})));
    let deep = format!("{}\"x.invalid\"{}", "[".repeat(50_000), "]".repeat(50_000));
    table
        .add("peers-deep", "Nests its peers 50 000 deep", &[23])
        .peers(Answer::json_bytes(deep));
    let witness = "by-broken-list.lab-shapes.test";
    let list = format!("[\"{witness}\",\"x.invalid\",\"unfinished");
    let plays = "Breaks off in its peers list";
    table
        .add("peers-unfinished", plays, &[23, 30])
        .learning(&[witness])
        .peers(Answer::json_bytes(list));
    table.add_witness(witness, "peers-unfinished.lab.test");
}

fn slow(table: &mut Table) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[";
    let names = "\"x.invalid\",".repeat(1000);
    table
        .add("peers-endless", "Has a peers list without end", &[20])
        .peers(Answer::repeating(head, names, Duration::ZERO));
    let plays = "Sends a byte of its peers list each 9 s";
    table
        .add("peers-drip", plays, &[21])
        .noting("The finding stands; the list is cut, because it comes too slowly.")
        .peers(Answer::repeating(head, " ", Duration::from_secs(9)));
    table
        .add("peers-silent", "Never answers when asked for peers", &[21])
        .peers(Answer::Script(vec![Act::Hold]));
    let plays = "Resets the connection when asked for peers";
    table
        .add("peers-reset", plays, &[30])
        .peers(Answer::Script(vec![Act::Reset]));
}
