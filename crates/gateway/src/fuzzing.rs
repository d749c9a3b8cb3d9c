//! Entry points for the fuzz targets, compiled only for them.

use std::time::Duration;

use protocol::Host;
use tokio::io::AsyncBufRead;

use crate::net::names_file::{Entry, Names};
use crate::wire::control::{Answer, Request};
use crate::wire::lines::{self, LineError};

/// The next request of a control connection.
pub async fn request<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Request, LineError> {
    lines::read_request(reader, Duration::MAX).await
}

/// The next answer, as the orchestrator reads it.
pub async fn answer<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Answer, LineError> {
    lines::read(reader, Duration::MAX).await
}

/// The entry for a host in a names file with these bytes.
pub fn look_up(file: &[u8], host: &Host) -> Option<Entry> {
    Names::parse(file).0.look_up(host)
}
