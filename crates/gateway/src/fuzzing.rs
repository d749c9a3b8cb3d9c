//! Ways in for the fuzz targets. Compiled for them alone.

use std::time::Duration;

use protocol::Host;
use tokio::io::AsyncBufRead;

use crate::net::names_file::{Entry, Names};
use crate::wire::control::{Answer, Request};
use crate::wire::lines::{self, LineError};

/// The next request of a control connection.
///
/// # Errors
/// Why there is none.
pub async fn request<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Request, LineError> {
    lines::read_request(reader, Duration::MAX).await
}

/// The next answer, as the orchestrator reads it.
///
/// # Errors
/// Why there is none.
pub async fn answer<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Answer, LineError> {
    lines::read(reader, Duration::MAX).await
}

/// What a names file of these bytes says of a host.
pub fn look_up(file: &[u8], host: &Host) -> Option<Entry> {
    Names::parse(file).0.look_up(host)
}
