//! Entry points for the fuzz targets, compiled only for them.

use std::time::Duration;

use local_socket::WireError;
use protocol::Host;
use tokio::io::AsyncBufRead;

use crate::net::names_file::{Entry, Names};
use crate::service::server::read;
use crate::wire::control::{REQUEST_LINE_BYTES_MAX, Request};

/// The next request of a control connection.
pub async fn request<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Request, WireError> {
    read(reader, REQUEST_LINE_BYTES_MAX, Duration::MAX).await
}

/// The entry for a host in a names file with these bytes.
pub fn look_up(file: &[u8], host: &Host) -> Option<Entry> {
    Names::parse(file).0.look_up(host)
}
