//! Common parts of the targets: inputs cut into pieces, readers that return one piece at a time,
//! and JSON parsed independently of the product.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use protocol::Host;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The host that every target checks.
pub(crate) static OWN: LazyLock<Host> =
    LazyLock::new(|| Host::parse("own.example").expect("a name"));

/// The input, with this version's `hello` in its first line if that is empty, so that no seed names
/// a version.
pub(crate) fn with_hello(data: &[u8]) -> Vec<u8> {
    let hello = match data.first() {
        Some(b'\n') => kit::HELLO,
        _ => "",
    };
    [hello.as_bytes(), data].concat()
}

/// Cuts the input into non-empty pieces. The cuts depend only on its content, so that findings are
/// reproducible and seeds stay plain text.
pub(crate) fn pieces(data: &[u8]) -> Vec<&[u8]> {
    // FNV-1a, then xorshift: random enough to cut everywhere, without a dependency.
    let mut chance = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }) | 1;
    let longest = [1, 2, 5, 64, 4096][(chance >> 40) as usize % 5];
    let mut pieces = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let length = 1 + (chance >> 33) as usize % longest;
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// A stream that returns one piece per read and accepts all writes.
#[derive(Debug)]
pub(crate) struct Trickle(VecDeque<Vec<u8>>);

impl Trickle {
    pub(crate) fn new(pieces: &[&[u8]]) -> Self {
        Self(
            pieces
                .iter()
                .filter(|piece| !piece.is_empty())
                .map(|piece| piece.to_vec())
                .collect(),
        )
    }
}

impl AsyncRead for Trickle {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(mut piece) = self.0.pop_front() {
            let rest = piece.split_off(piece.len().min(buffer.remaining()));
            buffer.put_slice(&piece);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Trickle {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

thread_local! {
    static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
}

pub(crate) fn run<F: Future>(future: F) -> F::Output {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// Accepted input has one form on the wire, which parses to the same value.
#[track_caller]
pub(crate) fn survives_the_way<T>(value: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let line = serde_json::to_vec(value).expect("it has a JSON form");
    assert!(
        !line.contains(&b'\n'),
        "a line's content holds a line's end"
    );
    let again: T = serde_json::from_slice(&line).expect("its own form is accepted");
    assert_eq!(again, *value);
}

/// Printable ASCII, except for a mark of a cut at the end.
pub(crate) fn is_printable(text: &str) -> bool {
    let text = text.strip_suffix('…').unwrap_or(text);
    text.bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// Asserts that a name is in canonical form.
#[track_caller]
pub(crate) fn is_canonical(host: &Host) {
    let name = host.as_str();
    assert_eq!(Host::parse(name).as_ref(), Ok(host));
    assert!(name.len() <= 253);
    assert!(name.split('.').count() >= 2);
    for label in name.split('.') {
        assert!((1..=63).contains(&label.len()), "{name}");
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        assert!(label.bytes().all(is_plain), "{name}");
        assert!(!label.starts_with('-') && !label.ends_with('-'), "{name}");
    }
}
