//! Entry points for the fuzz targets, compiled only for them.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::Container;
use crate::engine::Chunk;
use crate::service::server::request_line;
use crate::wire::frames::FrameWriter;
use crate::wire::{FrameKind, LaunchFault, Request};

/// The request of a connection to the launcher, if it is valid.
pub async fn request<R: AsyncRead + Unpin>(reader: &mut R) -> Option<Request> {
    let line = request_line(reader).await.ok()?;
    protocol::parse_line(&line).ok()
}

/// A container whose frames come from `stream`.
pub fn container<S>(stream: S) -> Container
where
    S: AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static,
{
    Container::new(Box::new(stream))
}

/// The bytes that a launcher writes for a chunk of stdout and a last fault.
pub async fn frames(stdout: &[u8], fault: &LaunchFault) -> Vec<u8> {
    let mut written = Vec::new();
    let mut frames = FrameWriter::new(&mut written);
    frames.push(Chunk::Stdout(Bytes::copy_from_slice(stdout)));
    frames.push_last(FrameKind::Fault, fault);
    // Writing to a vector can't fail.
    let _taken = frames.flush().await;
    written
}
