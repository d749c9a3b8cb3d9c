//! Reads a list of names in any of its formats into the sink.
//!
//! Takes a body in pieces and passes names on as they arrive. Rejects malformed JSON and JSON
//! without a list. In the other formats, an element that is no name is counted and the next one is
//! read.

use protocol::ListFormat;
use serde::de::DeserializeSeed;
use tokio::sync::mpsc::Receiver;

use super::csv;
use super::not_a_list::NotAList;
use super::text::{Line, each_line};
use crate::documents::json::{Guard, TOKEN_BYTES_MAX};
use crate::peers::feed::{Piece, Pieces};
use crate::peers::page::{Element, Shape, WithoutList, read_page};
use crate::peers::sink::{Full, Sink};

/// Longest line: an NDJSON record with a description of the longest kind that JSON may have.
const LINE_BYTES_MAX: usize = TOKEN_BYTES_MAX;

/// Names of columns and members that hold a name, the best first. Next to `host` or `domain`,
/// `name` is often a title.
pub(super) const NAME_KEYS: &[&str] = &["domain", "host", "name"];

/// The objects and arrays of lists: `pods` in the-federation.info's and podupti.me's `pods.json`,
/// `data` and `nodes` in the answers of `GraphQL` servers.
pub(super) static SHAPE: Shape = Shape {
    lists: &[
        "data",
        "domains",
        "hosts",
        "instances",
        "items",
        "nodes",
        "pods",
        "results",
        "servers",
        "thefederation_node",
    ],
    names: NAME_KEYS,
    inside: &[],
    shunned: &[],
    cursors: &[],
    without_list: WithoutList::NoAnswer,
};

/// Reads a body to its end, or until the sink is full.
pub(super) fn read_names(
    format: ListFormat,
    queue: Receiver<Piece>,
    sink: &mut Sink,
) -> Result<(), NotAList> {
    match format {
        ListFormat::Lines => each_line(Pieces::plain(queue), LINE_BYTES_MAX, |line| {
            take_line(line, sink)
        }),
        ListFormat::Ndjson => each_line(Pieces::plain(queue), LINE_BYTES_MAX, |line| {
            take_record(line, sink)
        }),
        ListFormat::Csv => csv::read(Pieces::plain(queue), sink),
        ListFormat::Json => {
            let page = read_page(Pieces::guarded(queue), &SHAPE, sink);
            if !page.is_ok_and(|page| page.is_list) {
                return Err(NotAList);
            }
        }
        // These texts have a separate sink.
        ListFormat::Suffixes | ListFormat::Proof => return Err(NotAList),
    }
    Ok(())
}

/// A name, optionally with a comment after it.
fn take_line(line: Line<'_>, sink: &mut Sink) -> Result<(), Full> {
    let Line::Whole(line) = line else {
        sink.drop_one();
        return Ok(());
    };
    let Ok(line) = str::from_utf8(line) else {
        sink.drop_one();
        return Ok(());
    };
    match without_comment(line).trim() {
        "" => Ok(()),
        // Several words: picking one of them would be a guess.
        words if words.contains(char::is_whitespace) => {
            sink.drop_one();
            Ok(())
        }
        element => sink.offer(element),
    }
}

/// The line up to a `#` or `//` that begins a word. Within a word they belong to an address.
fn without_comment(line: &str) -> &str {
    let mut before = None;
    for (index, letter) in line.char_indices() {
        let begins_word = before.is_none_or(char::is_whitespace);
        let (head, rest) = line.split_at(index);
        if begins_word && (rest.starts_with('#') || rest.starts_with("//")) {
            return head;
        }
        before = Some(letter);
    }
    line
}

/// A JSON value: a name, or an object that holds one.
fn take_record(line: Line<'_>, sink: &mut Sink) -> Result<(), Full> {
    let Line::Whole(line) = line else {
        sink.drop_one();
        return Ok(());
    };
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    match name_in(line) {
        Some(name) => sink.offer(&name),
        None => {
            sink.drop_one();
            Ok(())
        }
    }
}

fn name_in(record: &[u8]) -> Option<String> {
    // Checked before parsing, because the parser doesn't validate the values that it skips.
    let record = str::from_utf8(record).ok()?;
    Guard::default().feed(record.as_bytes()).1.ok()?;
    let mut deserializer = serde_json::Deserializer::from_str(record);
    let found = Element(&SHAPE).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    found.name
}

#[cfg(test)]
mod tests;
