//! Instances that do more: one publishes lists for others, one publishes its wish in a file, and
//! one is a push service.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::shapes::living;
use super::table::Table;
use crate::play::{Answer, Play};

pub const HOST: &str = "lists.lab.test";

/// Path of its list of instances, in the format of the-federation.info.
pub const PODS_PATH: &str = "/pods.json";

/// Path of its public suffix list, in which each name below [`SUFFIX`] has a separate owner.
pub const SUFFIXES_PATH: &str = "/public_suffix_list.dat";

/// A private suffix of its list.
pub const SUFFIX: &str = "lab-shapes.test";

/// The instances in its list: responding personas with empty peers lists.
pub const PODS: [&str; 10] = [
    "by-friendica.lab-shapes.test",
    "by-funkwhale.lab-shapes.test",
    "by-gotosocial-open.lab-shapes.test",
    "by-lemmy-017.lab-shapes.test",
    "by-lemmy-019.lab-shapes.test",
    "by-mbin.lab-shapes.test",
    "by-misskey.lab-shapes.test",
    "by-peertube.lab-shapes.test",
    "by-piefed.lab-shapes.test",
    "by-pixelfed.lab-shapes.test",
];

/// A host that proves its opt-out by a file.
pub const PROVING_HOST: &str = "says-so-itself.lab.test";

pub const PROOF_PATH: &str = "/.well-known/fedicensus";

pub const PROOF: [&str; 2] = ["# to whom it may concern", "fedicensus-proof=opt-out"];

pub const PUSH_HOST: &str = "push.lab.test";

/// Paths of its endpoints: it takes messages for the first, the second is gone, and for the third
/// it asks for a pause of [`PUSH_PAUSE_SECONDS`] before it takes them.
pub const PUSH_PATHS: [&str; 3] = ["/push/taken", "/push/gone", "/push/busy"];

/// The pause that it asks for once.
pub const PUSH_PAUSE_SECONDS: u32 = 2;

/// Rules of the two sections: at least as many as in a complete list.
const ICANN_RULES: u32 = 7000;
const PRIVATE_RULES: u32 = 2600;

pub(super) fn add(table: &mut Table) {
    let pods: Vec<_> = PODS.iter().map(|host| json!({ "host": host })).collect();
    let plays = "Publishes a list of instances and one of public suffixes";
    table
        .add(HOST, plays, &[])
        .route(PODS_PATH, Answer::json(&json!({ "pods": pods })))
        .route(SUFFIXES_PATH, Answer::text(suffixes()));
    let proof = format!("{}\r\n", PROOF.join("\r\n"));
    let plays =
        "Says in a file of its own that it wants to be left alone; nobody looks there uninvited";
    table
        .add(PROVING_HOST, plays, &[])
        .route(PROOF_PATH, Answer::text(proof));
    let plays =
        "Is a push service as well, which takes messages, ends subscriptions and asks for pauses";
    table.add(PUSH_HOST, plays, &[]).acting(push_service());
}

/// Answers endpoints as [`PUSH_PATHS`] says, and only posts.
fn push_service() -> Play {
    let [taken, gone, busy] = PUSH_PATHS;
    let posted = |answer: Answer| {
        Answer::make(move |request| match request.method.as_str() {
            "POST" => answer.clone(),
            _ => Answer::status(405),
        })
    };
    let has_paused = Arc::new(AtomicBool::new(false));
    let once_busy = Answer::make(move |_| match has_paused.swap(true, Ordering::Relaxed) {
        true => Answer::status(201),
        false => Answer::status(429).with("Retry-After", &PUSH_PAUSE_SECONDS.to_string()),
    });
    living(PUSH_HOST, "mastodon", "4.5.2")
        .route(taken, posted(Answer::status(201)))
        .route(gone, posted(Answer::status(410)))
        .route(busy, once_busy)
}

fn suffixes() -> String {
    let mut text = String::from("// ===BEGIN ICANN DOMAINS===\ntest\n");
    for number in 0..ICANN_RULES {
        // Writing to a String can't fail.
        writeln!(text, "icann{number}").ok();
    }
    write!(
        text,
        "// ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\n{SUFFIX}\n"
    )
    .ok();
    for number in 0..PRIVATE_RULES {
        writeln!(text, "private{number}.test").ok();
    }
    text.push_str("// ===END PRIVATE DOMAINS===\n");
    text
}
