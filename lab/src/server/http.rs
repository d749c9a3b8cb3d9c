//! HTTP/1.1 by hand: a bounded reader of requests, and a writer that sends a persona's exact bytes.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use crate::play::{Act, Answer, Reply, Request};

/// Longest head of a request. A check's heads are below 1 KiB.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Longest body of a request: Misskey's is below 100 bytes.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// Total bytes of an endless answer. The census must have closed the connection at 16 MiB decoded,
/// or at 24 MiB on the wire.
const SCRIPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most chunks of one chunked answer.
const PIECES_MAX: u64 = 100_000;

/// Why a request could not be read.
#[derive(Debug, Error)]
pub(crate) enum RequestError {
    #[error("the connection broke")]
    Io(#[from] io::Error),
    #[error("no request, or one above the lab's bounds")]
    Malformed,
}

/// What happens to the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    Close,
    Reset,
}

/// Reads the next request.
///
/// - `Ok(Some(request))` if there is one
/// - `Ok(None)` if the client has closed the connection
/// - `Err(..)` if the connection broke, or if the bytes are not a request within the limits
pub(crate) async fn read_request(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    host: &str,
) -> Result<Option<Request>, RequestError> {
    let head_end = loop {
        if let Some(end) = find(buffer, b"\r\n\r\n") {
            break end;
        }
        if buffer.len() > HEAD_BYTES_MAX {
            return Err(RequestError::Malformed);
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let rest = buffer.split_off(head_end + 4);
    let head = std::mem::replace(buffer, rest);
    let head = String::from_utf8_lossy(&head);
    let (mut request, length) = parse_head(&head, host).ok_or(RequestError::Malformed)?;
    if length > BODY_BYTES_MAX {
        return Err(RequestError::Malformed);
    }
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let rest = buffer.split_off(length);
    request.body = Bytes::from(std::mem::replace(buffer, rest));
    Ok(Some(request))
}

fn parse_head(head: &str, host: &str) -> Option<(Request, usize)> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        host: host.to_owned(),
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        ..Request::default()
    };
    let mut length = 0;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "accept" => value.clone_into(&mut request.accept),
            "user-agent" => value.clone_into(&mut request.agent),
            "connection" => request.close = value.eq_ignore_ascii_case("close"),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    Some((request, length))
}

/// Sends an answer. `close` means that the client wants no further one.
pub(crate) async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    answer: Answer,
    close: bool,
) -> io::Result<Then> {
    match answer {
        Answer::Reply(reply) => {
            let mut bytes = head(&reply, close);
            // 1xx, 204 and 304 have no body, and so no length either.
            if !matches!(reply.status, 100..=199 | 204 | 304) {
                bytes.push_str(&format!("Content-Length: {}\r\n", reply.body.len()));
            }
            bytes.push_str("\r\n");
            stream.write_all(bytes.as_bytes()).await?;
            stream.write_all(&reply.body).await?;
            stream.flush().await?;
            Ok(if close { Then::Close } else { Then::Keep })
        }
        Answer::Chunked(reply, pieces) => {
            let mut bytes = head(&reply, close);
            bytes.push_str("Transfer-Encoding: chunked\r\n\r\n");
            stream.write_all(bytes.as_bytes()).await?;
            for number in 0..PIECES_MAX {
                let Some(piece) = pieces(number) else { break };
                let size = format!("{:x}\r\n", piece.len());
                stream.write_all(size.as_bytes()).await?;
                stream.write_all(&piece).await?;
                stream.write_all(b"\r\n").await?;
            }
            stream.write_all(b"0\r\n\r\n").await?;
            stream.flush().await?;
            Ok(if close { Then::Close } else { Then::Keep })
        }
        Answer::Script(acts) => act(stream, acts).await,
        // A maker's answer is final: one that returns another maker sends nothing.
        Answer::Make(_) => Ok(Then::Close),
    }
}

fn head(reply: &Reply, close: bool) -> String {
    let mut head = format!("HTTP/1.1 {} {}\r\n", reply.status, phrase(reply.status));
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if close {
        head.push_str("Connection: close\r\n");
    }
    head
}

fn phrase(status: u16) -> &'static str {
    match status {
        200..=299 => "OK",
        300..=399 => "Elsewhere",
        400..=499 => "No",
        _ => "Sorry",
    }
}

async fn act(stream: &mut (impl AsyncWrite + Unpin), acts: Vec<Act>) -> io::Result<Then> {
    for step in acts {
        match step {
            Act::Send(bytes) => {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
            }
            Act::Pause(duration) => sleep(duration).await,
            Act::Repeat(bytes, pause) => {
                let times = SCRIPT_BYTES_MAX / bytes.len().max(1);
                for _ in 0..times {
                    stream.write_all(&bytes).await?;
                    if pause != Duration::ZERO {
                        stream.flush().await?;
                        sleep(pause).await;
                    }
                }
            }
            Act::Reset => return Ok(Then::Reset),
            Act::Hold => std::future::pending().await,
        }
    }
    Ok(Then::Close)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(sent: &[u8], expect: Option<(&str, &str, &str)>) {
        let mut stream = sent;
        let found = read_request(&mut stream, &mut Vec::new(), "a.test")
            .await
            .ok()
            .flatten();
        let found = found.map(|request| {
            (
                request.path,
                request.query,
                String::from_utf8_lossy(&request.body).into_owned(),
            )
        });
        let expect = expect.map(|(path, query, body)| (path.into(), query.into(), body.into()));
        assert_eq!(found, expect);
    }

    #[tokio::test]
    async fn requests_are_read_with_their_bodies() {
        check(b"GET /a?b=c HTTP/1.1\r\n\r\n", Some(("/a", "b=c", ""))).await;
        check(
            b"POST /a HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}rest",
            Some(("/a", "", "{}")),
        )
        .await;
    }

    #[tokio::test]
    async fn what_is_no_request_within_the_bounds_is_refused() {
        check(b"GET /a HTTP/1.1\r\n", None).await;
        check(b"\r\n\r\n", None).await;
        check(b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", None).await;
        check(&[b'a'; 2 * HEAD_BYTES_MAX], None).await;
    }

    #[tokio::test]
    async fn lengths_and_chunks_are_told_truly() {
        let mut sent = Vec::new();
        let then = send(&mut sent, Answer::text("abc"), false).await.unwrap();
        assert_eq!(then, Then::Keep);
        assert!(sent.ends_with(b"Content-Length: 3\r\n\r\nabc"));
        let mut sent = Vec::new();
        let pieces: crate::play::Pieces =
            std::sync::Arc::new(|n| (n < 2).then(|| Bytes::from_static(b"xy")));
        let Answer::Reply(reply) = Answer::text("") else {
            panic!("a reply");
        };
        let answer = Answer::Chunked(reply, pieces);
        assert_eq!(send(&mut sent, answer, true).await.unwrap(), Then::Close);
        assert!(sent.ends_with(b"\r\n\r\n2\r\nxy\r\n2\r\nxy\r\n0\r\n\r\n"));
    }
}
