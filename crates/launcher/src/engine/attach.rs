//! Parses a container's output, as the engines send it over an attached connection.
//!
//! A frame is one byte that names the stream, three zero bytes, four bytes of length (big-endian)
//! and the payload. The parser returns a chunk as soon as one byte of it is there. It rejects
//! streams other than stdout and stderr, and an end within a frame. It never buffers a whole frame,
//! so the length that a frame claims costs nothing (invariant I9).

use std::path::Path;

use bollard::ClientVersion;
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream;
use hyper::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::engine::transport::{ANSWER_BYTES_MAX, Allowance, Refusal, refusal, send};
use crate::engine::{Chunk, ContainerId, EngineError, Output};

/// Bytes per read: the most that Docker puts into a frame.
const READ_BYTES: usize = 32 * 1024;

/// Bytes of a frame before its payload.
const HEAD_BYTES: usize = 8;

/// Attaches to stdout and stderr of a container. Nothing is written to its stdin.
pub(crate) async fn attach(
    socket: &Path,
    version: ClientVersion,
    id: &ContainerId,
) -> Result<Output, Refusal> {
    let request = Request::post(format!(
        "/containers/{id}/attach?stream=true&stdin=false&stdout=true&stderr=true"
    ))
    .header(CONTENT_TYPE, "application/json")
    .header(CONNECTION, "Upgrade")
    .header(UPGRADE, "tcp")
    .body(String::new())
    .map_err(|error| Refusal::Client(error.into()))?;
    let allowance = Allowance::new(ANSWER_BYTES_MAX);
    let answer = send(socket, Some(version), request, allowance.clone())
        .await
        .map_err(Refusal::Client)?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(answer).await);
    }
    let upgraded = hyper::upgrade::on(answer)
        .await
        .map_err(|error| Refusal::Client(error.into()))?;
    allowance.lift();
    Ok(chunks(TokioIo::new(upgraded)))
}

/// The chunks in a stream of frames, up to its end or its first error.
fn chunks<R: AsyncRead + Send + Unpin + 'static>(reader: R) -> Output {
    let frames = Frames {
        reader,
        buffer: BytesMut::new(),
        open: None,
    };
    Box::pin(stream::try_unfold(frames, |mut frames| async move {
        Ok(frames.next().await?.map(|chunk| (chunk, frames)))
    }))
}

#[derive(Debug, Clone, Copy)]
enum Source {
    Stdout,
    Stderr,
}

#[derive(Debug)]
struct Frames<R> {
    reader: R,
    /// At most one read and a part of a frame's head.
    buffer: BytesMut,
    /// The current frame's stream, and the bytes of it that are still missing.
    open: Option<(Source, usize)>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// - `Ok(Some(chunk))` with the available part of a frame
    /// - `Ok(None)` at the end, which is valid only between two frames
    async fn next(&mut self) -> Result<Option<Chunk>, EngineError> {
        loop {
            if let Some(chunk) = self.piece() {
                return Ok(Some(chunk));
            }
            if self.open.is_none() && self.buffer.len() >= HEAD_BYTES {
                self.open = Some(self.head()?);
                continue;
            }
            self.buffer.reserve(READ_BYTES);
            let mut limited = (&mut self.reader).take(u64::try_from(READ_BYTES).unwrap_or(0));
            let read = limited.read_buf(&mut self.buffer).await;
            match read.map_err(|error| EngineError::Down {
                call: "attach",
                source: error.into(),
            })? {
                0 if self.open.is_none() && self.buffer.is_empty() => return Ok(None),
                0 => {
                    return Err(garbled(
                        "the output ended in the middle of a frame".to_owned(),
                    ));
                }
                _ => {}
            }
        }
    }

    /// The available part of the current frame.
    fn piece(&mut self) -> Option<Chunk> {
        let (source, left) = self
            .open
            .take_if(|(_, left)| *left == 0 || !self.buffer.is_empty())?;
        let bytes = self.buffer.split_to(left.min(self.buffer.len())).freeze();
        let left = left.saturating_sub(bytes.len());
        self.open = (left > 0).then_some((source, left));
        (!bytes.is_empty()).then(|| source.chunk(bytes))
    }

    fn head(&mut self) -> Result<(Source, usize), EngineError> {
        let source = match self.buffer.get_u8() {
            1 => Source::Stdout,
            2 => Source::Stderr,
            other => {
                return Err(garbled(format!(
                    "bytes of a stream {other}, which is neither stdout nor stderr"
                )));
            }
        };
        self.buffer.advance(3);
        let length = usize::try_from(self.buffer.get_u32()).unwrap_or(usize::MAX);
        Ok((source, length))
    }
}

impl Source {
    fn chunk(self, bytes: Bytes) -> Chunk {
        match self {
            Self::Stdout => Chunk::Stdout(bytes),
            Self::Stderr => Chunk::Stderr(bytes),
        }
    }
}

fn garbled(what: String) -> EngineError {
    EngineError::Garbled {
        call: "attach",
        source: what.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt as _;
    use tokio::io::AsyncWriteExt as _;

    async fn check(bytes: &[u8], expect: &[&[u8]], whole: bool) {
        let (mut near, far) = tokio::io::duplex(1024);
        near.write_all(bytes).await.unwrap();
        drop(near);
        let found: Vec<_> = chunks(far).collect().await;
        let good: Vec<_> = found
            .iter()
            .filter_map(|chunk| match chunk {
                Ok(Chunk::Stdout(bytes) | Chunk::Stderr(bytes)) => Some(&bytes[..]),
                Err(_) => None,
            })
            .collect();
        assert_eq!(good, expect, "{bytes:?}");
        assert_eq!(found.iter().all(Result::is_ok), whole, "{found:?}");
    }

    #[tokio::test]
    async fn frames_become_chunks_and_an_end_within_one_is_an_error() {
        check(b"", &[], true).await;
        check(
            b"\x01\0\0\0\0\0\0\x02hi\x02\0\0\0\0\0\0\x01x",
            &[b"hi", b"x"],
            true,
        )
        .await;
        check(b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x01x", &[b"x"], true).await;
        check(b"\x01\0\0\0\0\0\0\0", &[], true).await;
        check(b"\x01\0\0\0\0\0\0\x05hi", &[b"hi"], false).await;
        check(b"\x01\0\0\0\0\0\0\x05", &[], false).await;
        check(b"\x01\0\0\0\0", &[], false).await;
        check(b"\x01\0\0\0\xff\xff\xff\xffhi", &[b"hi"], false).await;
        for stream in [0, 3, b'{'] {
            check(&[stream, 0, 0, 0, 0, 0, 0, 1, b'x'], &[], false).await;
        }
    }

    #[tokio::test]
    async fn a_frame_is_passed_on_before_it_is_whole() {
        let (mut near, far) = tokio::io::duplex(1024);
        let mut chunks = chunks(far);
        for piece in [&b"\x02\0\0\0\xff\xff\xff\xfffirst"[..], b"second"] {
            near.write_all(piece).await.unwrap();
            let text = Bytes::copy_from_slice(
                piece
                    .strip_prefix(b"\x02\0\0\0\xff\xff\xff\xff")
                    .unwrap_or(piece),
            );
            assert_eq!(chunks.next().await.unwrap().unwrap(), Chunk::Stderr(text));
        }
    }
}
