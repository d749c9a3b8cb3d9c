//! JSON and encodings that are meant to harm parsers.

mod bytes;

use std::io::Write as _;
use std::sync::LazyLock;

use ::bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use protocol::DeadReason;
use serde_json::json;

use super::shapes::{DOCUMENT, PEERS_PATH, WELL_KNOWN, document, flat, living, pointing, set};
use super::table::Table;
use crate::expectation::Expectation;
use crate::play::Answer;

/// Decompressed size of a bomb: 16 times the limit of a document, twice that of a peers list.
/// Compressed it has about 150 KB.
const BOMB_BYTES: usize = 32 * 1024 * 1024;

/// A gzip bomb that begins as a JSON array of texts.
static BOMB: LazyLock<Bytes> = LazyLock::new(|| {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    let block = vec![b'a'; 1024 * 1024];
    // Writing to memory can't fail.
    packer.write_all(b"[\"").ok();
    for _ in 0..BOMB_BYTES / block.len() {
        packer.write_all(&block).ok();
    }
    packer.finish().unwrap_or_default().into()
});

pub(super) fn add(table: &mut Table) {
    bytes::add(table);
    encodings(table);
    encoding_lies(table);
    bombs(table);
    texts(table);
    no_documents(table);
    sizes(table);
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).ok();
    packer.finish().unwrap_or_default()
}

fn packed(bytes: Vec<u8>, encoding: &str) -> Answer {
    Answer::json_bytes(bytes).with("Content-Encoding", encoding)
}

fn bomb() -> Answer {
    Answer::make(|_| Answer::json_bytes(BOMB.clone()).with("Content-Encoding", "gzip"))
}

fn persona(
    table: &mut Table,
    name: &str,
    plays: &str,
    facts: &[u8],
    wanted: Expectation,
    answer: Answer,
) {
    let host = format!("{name}.lab.test");
    table.add(
        &host,
        plays,
        facts,
        wanted,
        pointing(&host).route(DOCUMENT, answer),
    );
}

fn encodings(table: &mut Table) {
    let plain = document("mastodon", "4.5.2").to_string();
    let once = gzipped(plain.as_bytes());
    let twice = gzipped(&once);
    let dead = || Expectation::dead(&[DeadReason::Encoding]);
    persona(
        table,
        "gzip",
        "Packs its answer, as it may",
        &[22],
        Expectation::alive(),
        packed(once.clone(), "gzip"),
    );
    persona(
        table,
        "gzip-identity",
        "Says that its answer is not packed",
        &[22],
        Expectation::alive(),
        packed(plain.clone().into_bytes(), "identity"),
    );
    persona(
        table,
        "gzip-twice",
        "Packs its answer twice",
        &[22],
        dead(),
        packed(twice, "gzip, gzip"),
    );
    let doubled = packed(gzipped(&once), "gzip").with("Content-Encoding", "gzip");
    persona(
        table,
        "gzip-two-headers",
        "Packs its answer twice and says so in two headers",
        &[22],
        dead(),
        doubled,
    );
    persona(
        table,
        "brotli",
        "Packs its answer in a way that we didn't offer",
        &[22],
        dead(),
        packed(vec![0x0b, 0x02, 0x80, b'{', b'}', 0x03], "br"),
    );
}

fn encoding_lies(table: &mut Table) {
    let plain = document("mastodon", "4.5.2").to_string();
    let once = gzipped(plain.as_bytes());
    let wanted = Expectation::dead(&[
        DeadReason::Encoding,
        DeadReason::NotNodeinfo,
        DeadReason::Http,
    ]);
    persona(
        table,
        "gzip-lie",
        "Says that its answer is packed, and it isn't",
        &[22],
        wanted.clone(),
        packed(plain.clone().into_bytes(), "gzip"),
    );
    let half = once.get(..once.len() / 2).unwrap_or_default().to_vec();
    persona(
        table,
        "gzip-half",
        "Sends half of its packed answer",
        &[22],
        wanted,
        packed(half, "gzip"),
    );
}

fn bombs(table: &mut Table) {
    let wanted = Expectation::dead(&[DeadReason::TooLarge, DeadReason::NotNodeinfo]);
    persona(
        table,
        "gzip-bomb",
        "Packs 32 MiB into its document",
        &[22],
        wanted.clone(),
        bomb(),
    );
    let host = "gzip-bomb-pointer.lab.test";
    table.add(
        host,
        "Packs 32 MiB into well-known NodeInfo",
        &[22],
        wanted,
        living(host, "x", "1").route(WELL_KNOWN, bomb()),
    );
    let host = "gzip-bomb-robots.lab.test";
    let wanted = Expectation::alive().noting("At most 500 KiB of robots.txt are decoded.");
    table.add(
        host,
        "Packs 32 MiB into its robots.txt",
        &[22],
        wanted,
        living(host, "mastodon", "4.5.2").route("/robots.txt", bomb()),
    );
    let host = "gzip-bomb-peers.lab.test";
    table.add(
        host,
        "Packs 32 MiB into its peers list",
        &[22],
        Expectation::alive(),
        living(host, "mastodon", "4.5.2").route(PEERS_PATH, bomb()),
    );
    let host = "gzip-peers.lab.test";
    let witness = "by-gzip.lab-shapes.test";
    let list = gzipped(format!(r#"["{witness}"]"#).as_bytes());
    table.add(
        host,
        "Packs its peers list, as it may",
        &[22],
        Expectation::alive().learning(&[witness]),
        living(host, "mastodon", "4.5.2").route(PEERS_PATH, packed(list, "gzip")),
    );
    table.add_witness(witness, host);
}

fn texts(table: &mut Table) {
    let not = || Expectation::dead(&[DeadReason::NotNodeinfo]);
    let inside = |extra: &str| {
        format!(
            r#"{{"metadata":{extra},"software":{{"name":"mastodon","version":"1"}},"version":"2.0","protocols":["activitypub"]}}"#
        )
    };
    for (name, plays, depth) in [
        ("deep", "Nests arrays 100 000 deep", 100_000),
        ("deep-100", "Nests arrays 100 deep", 100),
    ] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        persona(
            table,
            name,
            plays,
            &[23],
            not(),
            Answer::json_bytes(inside(&nested)),
        );
    }
    let nested = format!("{}1{}", r#"{"a":"#.repeat(5000), "}".repeat(5000));
    persona(
        table,
        "deep-objects",
        "Nests objects 5000 deep",
        &[23],
        not(),
        Answer::json_bytes(inside(&nested)),
    );
    let nested = format!("{}{}", "[".repeat(40), "]".repeat(40));
    persona(
        table,
        "deep-40",
        "Nests arrays 40 deep, which is allowed",
        &[23],
        Expectation::alive(),
        Answer::json_bytes(inside(&nested)),
    );
    let doubled = r#"{"software":{"name":"first","version":"1"},"version":"2.0","protocols":["activitypub"],"software":{"name":"mastodon","name":"mastodon","version":"2"}}"#;
    persona(
        table,
        "duplicate-keys",
        "Says everything twice",
        &[23],
        Expectation::alive(),
        Answer::json_bytes(doubled),
    );
    persona(
        table,
        "not-a-number",
        "Holds NaN, which is no JSON",
        &[23],
        not(),
        Answer::json_bytes(inside("{\"x\":NaN}")),
    );
    persona(
        table,
        "huge-number",
        "Holds a number of a million digits and an exponent of none",
        &[23],
        not(),
        Answer::json_bytes(inside(&format!("-{}e", "9".repeat(1_000_000)))),
    );
}

fn no_documents(table: &mut Table) {
    let plain = document("mastodon", "4.5.2").to_string();
    let not = || Expectation::dead(&[DeadReason::NotNodeinfo]);
    let mut broken = plain.clone().into_bytes();
    broken.splice(2..2, [0xff, 0xfe, 0xc0, 0x80]);
    persona(
        table,
        "invalid-utf8",
        "Holds what is no UTF-8",
        &[23],
        not(),
        Answer::json_bytes(broken),
    );
    let marked = [b"\xef\xbb\xbf", plain.as_bytes()].concat();
    persona(
        table,
        "byte-order-mark",
        "Begins with a byte order mark",
        &[23],
        Expectation::alive(),
        Answer::json_bytes(marked),
    );
    persona(
        table,
        "trailing-junk",
        "Has junk after its document",
        &[23],
        not(),
        Answer::json_bytes(format!("{plain}<!-- served by x -->")),
    );
    persona(
        table,
        "two-documents",
        "Has two documents in one",
        &[23],
        not(),
        Answer::json_bytes(format!("{plain}{plain}")),
    );
    persona(
        table,
        "no-body",
        "Has an empty document",
        &[23],
        not(),
        Answer::json_bytes(""),
    );
    persona(
        table,
        "null",
        "Has null as its document",
        &[23],
        not(),
        Answer::json_bytes("null"),
    );
    persona(
        table,
        "array",
        "Has an array as its document",
        &[23],
        not(),
        Answer::json_bytes("[]"),
    );
    let wide: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
    persona(
        table,
        "utf16",
        "Writes its document in UTF-16",
        &[23],
        not(),
        Answer::json_bytes(wide),
    );
}

fn sizes(table: &mut Table) {
    let mut long = document("mastodon", "4.5.2");
    let blocked: Vec<String> = (0..60_000)
        .map(|n| format!("blocked{n}.x.invalid"))
        .collect();
    set(
        &mut long,
        "metadata",
        json!({"federation": {"mrf_simple": {"reject": blocked}}}),
    );
    persona(
        table,
        "block-list",
        "Keeps a block list of 1.5 MB in its document",
        &[23],
        Expectation::alive(),
        Answer::json(&long),
    );
    let mut huge = document("mastodon", "4.5.2");
    set(
        &mut huge,
        "metadata",
        json!({"text": "x".repeat(3 * 1024 * 1024)}),
    );
    let wanted = Expectation::dead(&[DeadReason::TooLarge, DeadReason::NotNodeinfo]);
    persona(
        table,
        "huge-text",
        "Has a text of 3 MiB in its document",
        &[23],
        wanted,
        Answer::json(&huge),
    );
    let host = "huge-text-peers.lab.test";
    let witness = "by-huge-text.lab-shapes.test";
    let list = flat(&[witness, &"x".repeat(8 * 1024 * 1024)]);
    table.add(
        host,
        "Names a peer of 8 MiB after a good one",
        &[23],
        Expectation::alive().learning(&[witness]),
        living(host, "mastodon", "4.5.2").route(PEERS_PATH, list),
    );
    table.add_witness(witness, host);
}
