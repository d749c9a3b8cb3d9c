//! The names and dropped elements of each format, for every cut of the body.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::{Event, Host};
use tokio::sync::mpsc;

use super::*;
use crate::emit::Emitter;
use crate::emit::tests::Kept;
use crate::peers::feed::Cut;

/// Names, how many elements were dropped, and whether it was a list.
type Read = (Vec<String>, u64, bool);

fn read_pieces(format: ListFormat, pieces: &[Piece]) -> Read {
    let (sender, queue) = mpsc::channel(pieces.len().max(1));
    for piece in pieces {
        sender.try_send(piece.clone()).unwrap();
    }
    drop(sender);
    let kept = Kept::default();
    let emitter = Emitter::new(Box::new(kept.clone()), 1 << 24);
    let mut sink = Sink::new(emitter, None, 1000);
    let is_list = read_names(format, queue, &mut sink).is_ok();
    let closed = sink.close().unwrap();
    let mut names = Vec::new();
    for event in kept.events() {
        let Event::Peers { hosts } = event else {
            panic!("{event:?}");
        };
        names.extend(hosts.iter().map(Host::to_string));
    }
    (names, closed.dropped, is_list)
}

fn cut_at(text: &[u8], cut: usize) -> [Piece; 2] {
    let (first, second) = text.split_at(cut.min(text.len()));
    [first, second].map(|part| Ok(Bytes::copy_from_slice(part)))
}

fn check(format: ListFormat, text: &str, names: &str, dropped: u64) {
    let names = names.split_whitespace().map(str::to_owned).collect();
    let expect = (names, dropped, true);
    for cut in 0..=text.len() {
        let read = read_pieces(format, &cut_at(text.as_bytes(), cut));
        assert_eq!(read, expect, "{text:?} cut at {cut}");
    }
}

#[test]
fn lines_hold_a_name_and_comments() {
    let list = "\u{feff}# all\n\na.example\r\n  B.example.  # big\n// c\nhttps://c.example/\td // x\nhttps://d.example/#x\n\
                e.example//x\nno name\nlocalhost\nx:\nb\u{fc}cher.example";
    let names = "a.example b.example d.example e.example xn--bcher-kva.example";
    check(ListFormat::Lines, list, names, 4);
    check(ListFormat::Lines, "", "", 0);
    check(ListFormat::Lines, "<html>\n<p>a.example</p>\n", "", 2);
}

#[test]
fn json_lists_are_taken_at_the_top_and_in_objects() {
    let check = |text, names, dropped| check(ListFormat::Json, text, names, dropped);
    let text = r#"["a.example",7,null,{"x":1},["b.example"],"https://c.example/"]"#;
    check(text, "a.example c.example", 4);
    let text = r#"{"total":2,"instances":[{"name":"a.example"},{"name":"b.example"}]}"#;
    check(text, "a.example b.example", 0);
    let text = r#"{"data":{"nodes":[{"domain":"a.example"}]},"blocked":["x.example"]}"#;
    check(text, "a.example", 0);
    // In pods.json, `name` is a title.
    let text = r#"{"pods":[{"id":7,"name":"x.example","host":"a.example"},{"host":"b.example","name":"My pod"}]}"#;
    check(text, "a.example b.example", 0);
    let text = r#"{"podcount":1,"pods":[{"domain":"a.example","host":null,"status":1}]}"#;
    check(text, "a.example", 0);
    check("[]", "", 0);
}

#[test]
fn what_holds_no_list_is_none() {
    for text in [
        r#"{"error":"x"}"#,
        r#""a.example""#,
        "<html>",
        "",
        r#"["a.example""#,
        r#"["a.example"] x"#,
        "null",
    ] {
        let (_, _, is_list) = read_pieces(ListFormat::Json, &cut_at(text.as_bytes(), 1));
        assert!(!is_list, "{text}");
    }
    let deep = format!("[\"a.example\",{}", "[".repeat(99));
    let (names, _, is_list) = read_pieces(ListFormat::Json, &cut_at(deep.as_bytes(), 50));
    assert!(!is_list && names == ["a.example"]);
}

#[test]
fn ndjson_holds_a_value_a_line() {
    let deep = "[".repeat(99);
    let list = format!(
        "\"a.example\"\n\n{{\"host\":\"b.example\",\"name\":\"B\"}}\r\n{{\"host\":\n[\"x.example\"]\n{deep}\n\"c.example\" 1\n{{\"domain\":\"d.example\"}}"
    );
    let names = "a.example b.example d.example";
    check(ListFormat::Ndjson, &list, names, 4);
    let mut broken = b"\"a.example\"\n\"\xff\"\n{\"x\":\"\xff\",\"host\":\"x.example\"}\n".to_vec();
    broken.extend_from_slice(&vec![b'1'; LINE_BYTES_MAX + 1]);
    broken.extend_from_slice(b"\n\"b.example\"\n");
    let read = read_pieces(ListFormat::Ndjson, &cut_at(&broken, 12));
    let names = ["a.example", "b.example"].map(str::to_owned).to_vec();
    assert_eq!(read, (names, 3, true));
}

#[test]
fn csv_is_read_by_its_header_or_from_its_first_column() {
    let check = |text, names, dropped| check(ListFormat::Csv, text, names, dropped);
    let text = "\u{feff}id,Host,\"users, all\"\n1,a.example,7\n2,\"b.example\",\"x\ny\"\r\n\n3\n";
    check(text, "a.example b.example", 1);
    let text = "name,domain\nMine,a.example\nYours,\"b.example\"";
    check(text, "a.example b.example", 0);
    check("#domain,#severity\na.example,x\n", "a.example", 0);
    check("a.example,1\nb.example,2\n", "a.example b.example", 0);
    check("url,n\nhttps://a.example/,1\n", "a.example", 1);
    check("domain\n\"a.example\nb.example\n", "", 1);
    check("", "", 0);
    // Only one byte order mark is skipped. A second one is no part of a header.
    check("\u{feff}\u{feff}domain\na.example\n", "a.example", 1);
    let field = "x".repeat(5000);
    let long = format!("n,domain\n{field},a.example\n1,{field}\n2,b.example\n");
    let read = read_pieces(ListFormat::Csv, &cut_at(long.as_bytes(), 4000));
    let names = ["a.example", "b.example"].map(str::to_owned).to_vec();
    assert_eq!(read, (names, 1, true));
}

/// `mastodon.so` is a valid name, but not the one that was cut.
#[test]
fn half_a_name_is_no_name_where_the_body_was_cut() {
    for (format, text) in [
        (ListFormat::Lines, "a.example\nb.exam"),
        (ListFormat::Csv, "domain\na.example\nb.exam"),
        (ListFormat::Ndjson, "\"a.example\"\n\"b.exam\""),
        (ListFormat::Json, "[\"a.example\",\"b.exam"),
    ] {
        let [first, second] = cut_at(text.as_bytes(), 10);
        let (names, _, _) = read_pieces(format, &[first, second, Err(Cut)]);
        assert_eq!(names, ["a.example"], "{format}");
    }
}

fn any_format() -> impl Strategy<Value = ListFormat> {
    use ListFormat::{Csv, Json, Lines, Ndjson};
    prop::sample::select(vec![Lines, Json, Ndjson, Csv])
}

proptest! {
    #[test]
    fn how_a_body_is_cut_changes_nothing(
        format in any_format(),
        text in "(a\\.example|b|domain|host|[\\[\\]{}\",:#/ \r\n\u{feff}\u{e9}]){0,40}",
        cut in 0_usize..200,
    ) {
        let whole = read_pieces(format, &cut_at(text.as_bytes(), 0));
        let cut = read_pieces(format, &cut_at(text.as_bytes(), cut));
        prop_assert_eq!(whole, cut);
    }
}
