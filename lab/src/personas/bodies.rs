//! JSON and encodings that are meant to harm parsers.

mod bytes;

use std::io::Write as _;
use std::sync::LazyLock;

use ::bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use protocol::DeadReason::{Encoding, Http, NotNodeinfo, TooLarge};
use serde_json::json;

use super::shapes::{DOCUMENT, PEERS_PATH, WELL_KNOWN, document, flat, living, set};
use super::table::{Persona, Table};
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

impl Persona {
    /// Its document is this.
    fn answering(&mut self, answer: Answer) -> &mut Self {
        self.route(DOCUMENT, answer)
    }

    /// Its document is this text, sound or not.
    fn saying(&mut self, text: impl Into<Bytes>) -> &mut Self {
        self.answering(Answer::json_bytes(text))
    }
}

fn plain() -> String {
    document("mastodon", "4.5.2").to_string()
}

fn encodings(table: &mut Table) {
    let once = gzipped(plain().as_bytes());
    let twice = gzipped(&once);
    table
        .add("gzip", "Packs its answer, as it may", &[22])
        .answering(packed(once, "gzip"));
    let plays = "Says that its answer is not packed";
    table
        .add("gzip-identity", plays, &[22])
        .answering(packed(plain().into_bytes(), "identity"));
    table
        .add("gzip-twice", "Packs its answer twice", &[22])
        .dead(&[Encoding])
        .answering(packed(twice.clone(), "gzip, gzip"));
    let plays = "Packs its answer twice and says so in two headers";
    table
        .add("gzip-two-headers", plays, &[22])
        .dead(&[Encoding])
        .answering(packed(twice, "gzip").with("Content-Encoding", "gzip"));
    let plays = "Packs its answer in a way that we didn't offer";
    table
        .add("brotli", plays, &[22])
        .dead(&[Encoding])
        .answering(packed(vec![0x0b, 0x02, 0x80, b'{', b'}', 0x03], "br"));
}

fn encoding_lies(table: &mut Table) {
    let once = gzipped(plain().as_bytes());
    let half = once.get(..once.len() / 2).unwrap_or_default().to_vec();
    let lies = "Says that its answer is packed, and it isn't";
    for (name, plays, bytes) in [
        ("gzip-lie", lies, plain().into_bytes()),
        ("gzip-half", "Sends half of its packed answer", half),
    ] {
        let row = table.add(name, plays, &[22]);
        row.dead(&[Encoding, NotNodeinfo, Http])
            .answering(packed(bytes, "gzip"));
    }
}

fn bombs(table: &mut Table) {
    table
        .add("gzip-bomb", "Packs 32 MiB into its document", &[22])
        .dead(&[TooLarge, NotNodeinfo])
        .answering(bomb());
    let host = "gzip-bomb-pointer.lab.test";
    table
        .add(host, "Packs 32 MiB into well-known NodeInfo", &[22])
        .dead(&[TooLarge, NotNodeinfo])
        .acting(living(host, "x", "1").route(WELL_KNOWN, bomb()));
    let plays = "Packs 32 MiB into its robots.txt";
    table
        .add("gzip-bomb-robots", plays, &[22])
        .noting("At most 500 KiB of robots.txt are decoded.")
        .route("/robots.txt", bomb());
    let plays = "Packs 32 MiB into its peers list";
    table
        .add("gzip-bomb-peers", plays, &[22])
        .route(PEERS_PATH, bomb());
    let witness = "by-gzip.lab-shapes.test";
    let list = gzipped(format!(r#"["{witness}"]"#).as_bytes());
    table
        .add("gzip-peers", "Packs its peers list, as it may", &[22])
        .learning(&[witness])
        .route(PEERS_PATH, packed(list, "gzip"));
    table.add_witness(witness, "gzip-peers.lab.test");
}

fn texts(table: &mut Table) {
    let inside = |extra: &str| {
        format!(
            r#"{{"metadata":{extra},"software":{{"name":"mastodon","version":"1"}},"version":"2.0","protocols":["activitypub"]}}"#
        )
    };
    let nested = |depth| inside(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    table
        .add("deep", "Nests arrays 100 000 deep", &[23])
        .dead(&[NotNodeinfo])
        .saying(nested(100_000));
    table
        .add("deep-100", "Nests arrays 100 deep", &[23])
        .dead(&[NotNodeinfo])
        .saying(nested(100));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(5000), "}".repeat(5000));
    table
        .add("deep-objects", "Nests objects 5000 deep", &[23])
        .dead(&[NotNodeinfo])
        .saying(inside(&objects));
    let plays = "Nests arrays 40 deep, which is allowed";
    table.add("deep-40", plays, &[23]).saying(nested(40));
    let doubled = r#"{"software":{"name":"first","version":"1"},"version":"2.0","protocols":["activitypub"],"software":{"name":"mastodon","name":"mastodon","version":"2"}}"#;
    table
        .add("duplicate-keys", "Says everything twice", &[23])
        .saying(doubled);
    table
        .add("not-a-number", "Holds NaN, which is no JSON", &[23])
        .dead(&[NotNodeinfo])
        .saying(inside("{\"x\":NaN}"));
    let plays = "Holds a number of a million digits and an exponent of none";
    table
        .add("huge-number", plays, &[23])
        .dead(&[NotNodeinfo])
        .saying(inside(&format!("-{}e", "9".repeat(1_000_000))));
}

fn no_documents(table: &mut Table) {
    let plain = plain();
    let mut broken = plain.clone().into_bytes();
    broken.splice(2..2, [0xff, 0xfe, 0xc0, 0x80]);
    table
        .add("invalid-utf8", "Holds what is no UTF-8", &[23])
        .dead(&[NotNodeinfo])
        .saying(broken);
    let marked = [b"\xef\xbb\xbf", plain.as_bytes()].concat();
    let plays = "Begins with a byte order mark";
    table.add("byte-order-mark", plays, &[23]).saying(marked);
    let junk = format!("{plain}<!-- served by x -->");
    for (name, plays, text) in [
        ("trailing-junk", "Has junk after its document", junk),
        ("two-documents", "Has two documents in one", plain.repeat(2)),
        ("no-body", "Has an empty document", String::new()),
        ("null", "Has null as its document", "null".to_owned()),
        ("array", "Has an array as its document", "[]".to_owned()),
    ] {
        let row = table.add(name, plays, &[23]);
        row.dead(&[NotNodeinfo]).saying(text);
    }
    let wide: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
    table
        .add("utf16", "Writes its document in UTF-16", &[23])
        .dead(&[NotNodeinfo])
        .saying(wide);
}

fn sizes(table: &mut Table) {
    let with_metadata = |metadata| {
        let mut long = document("mastodon", "4.5.2");
        set(&mut long, "metadata", metadata);
        Answer::json(&long)
    };
    let blocked: Vec<String> = (0..60_000)
        .map(|n| format!("blocked{n}.x.invalid"))
        .collect();
    let blocked = json!({"federation": {"mrf_simple": {"reject": blocked}}});
    let plays = "Keeps a block list of 1.5 MB in its document";
    table
        .add("block-list", plays, &[23])
        .answering(with_metadata(blocked));
    let text = json!({"text": "x".repeat(3 * 1024 * 1024)});
    table
        .add("huge-text", "Has a text of 3 MiB in its document", &[23])
        .dead(&[TooLarge, NotNodeinfo])
        .answering(with_metadata(text));
    let witness = "by-huge-text.lab-shapes.test";
    let list = flat(&[witness, &"x".repeat(8 * 1024 * 1024)]);
    let plays = "Names a peer of 8 MiB after a good one";
    table
        .add("huge-text-peers", plays, &[23])
        .learning(&[witness])
        .route(PEERS_PATH, list);
    table.add_witness(witness, "huge-text-peers.lab.test");
}
