//! Writes frames of [`crate::wire`] to a reader that may stall.
//!
//! It queues the chunks of a container's output, and one last frame. A frame can be finished later:
//! the wait for the reader stops at a deadline, and the last frame must still begin at a frame
//! boundary.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::engine::Chunk;
use crate::wire::{FRAME_BYTES_MAX, FrameKind};

/// Writes frames. Holds those that the reader has not taken yet: at most one chunk's frames and the
/// last one.
#[derive(Debug)]
pub(crate) struct FrameWriter<W> {
    writer: W,
    pending: BytesMut,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReaderGone;

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer,
            pending: BytesMut::new(),
        }
    }

    /// Queues a chunk. The caller flushes before the next one, so that the engine's chunk bounds
    /// the pending bytes.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        let (kind, mut bytes) = match chunk {
            Chunk::Stdout(bytes) => (FrameKind::Stdout, bytes),
            Chunk::Stderr(bytes) => (FrameKind::Stderr, bytes),
        };
        while !bytes.is_empty() {
            let payload = bytes.split_to(bytes.len().min(FRAME_BYTES_MAX));
            self.put(kind, &payload);
        }
    }

    pub(crate) fn push_last<T: Serialize>(&mut self, kind: FrameKind, value: &T) {
        // Serialising our own numbers and bounded texts can't fail.
        let payload = serde_json::to_vec(value).unwrap_or_default();
        self.put(kind, &Bytes::from(payload));
    }

    /// Writes everything to the reader, with no timeout. The future may be dropped and called again
    /// without losing or repeating a byte.
    pub(crate) async fn flush(&mut self) -> Result<(), ReaderGone> {
        while self.pending.has_remaining() {
            match self.writer.write_buf(&mut self.pending).await {
                Ok(0) | Err(_) => return Err(ReaderGone),
                Ok(_) => {}
            }
        }
        // Sockets and pipes have no buffer to flush.
        self.writer.flush().await.map_err(|_gone| ReaderGone)
    }

    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
        self.writer
    }

    fn put(&mut self, kind: FrameKind, payload: &Bytes) {
        // Chunks are split, and last frames are short.
        let Ok(length) = u32::try_from(payload.len()) else {
            return;
        };
        self.pending.put_u8(kind.byte());
        self.pending.put_u32(length);
        self.pending.put_slice(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn a_chunk_over_the_bound_becomes_several_frames() {
        let mut writer = FrameWriter::new(Vec::new());
        writer.push(Chunk::Stdout(Bytes::from(vec![7; FRAME_BYTES_MAX + 1])));
        writer.flush().await.unwrap();
        let written = writer.into_inner();
        assert_eq!(written.len(), FRAME_BYTES_MAX + 1 + 2 * 5);
        assert_eq!(written[..5], [1, 0, 1, 0, 0]);
        assert_eq!(written[FRAME_BYTES_MAX + 5..], [1, 0, 0, 0, 1, 7]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_broken_off_is_finished_before_the_next() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut writer = FrameWriter::new(near);
        writer.push(Chunk::Stderr(Bytes::from_static(b"0123456789")));
        let stuck = tokio::time::timeout(std::time::Duration::from_secs(1), writer.flush()).await;
        assert!(stuck.is_err(), "nobody reads");
        writer.push_last(FrameKind::End, &0);
        let (flushed, read) = tokio::join!(writer.flush(), async {
            let mut read = vec![0; 15 + 6];
            far.read_exact(&mut read).await.unwrap();
            read
        });
        assert_eq!(flushed, Ok(()));
        assert_eq!(read, b"\x02\0\0\0\x0a0123456789\x03\0\0\0\x010");
    }
}
