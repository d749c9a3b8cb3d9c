//! NDJSON on the control connection: one value a line, within a bound.

use std::time::Duration;

use local_socket::LineLimits;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncBufRead, AsyncWrite};

use crate::wire::control::{CONTROL_LINE_BYTES_MAX, REQUEST_LINE_BYTES_MAX};

/// Why there is no next value.
#[derive(Debug, Error)]
pub enum LineError {
    /// No line could be read.
    #[error("control connection: {0}")]
    Line(#[from] local_socket::LineError),
    /// The line is no such value.
    #[error("a control line was not understood")]
    NotUnderstood(#[source] serde_json::Error),
}

impl LineError {
    /// Whether the other end is gone or silent rather than wrong.
    pub fn is_end(&self) -> bool {
        use local_socket::LineError as Line;
        match self {
            Self::Line(Line::Io(_) | Line::Ended | Line::Late(_)) => true,
            Self::Line(Line::TooLong(_)) | Self::NotUnderstood(_) => false,
        }
    }
}

/// The bounds on a control line.
pub(crate) fn limits(time_max: Duration) -> LineLimits {
    LineLimits {
        bytes_max: CONTROL_LINE_BYTES_MAX,
        time_max,
    }
}

/// Reads the next line as a value. Not cancel-safe: a partly read line is lost.
///
/// # Errors
/// Why there is no value. The connection can't be used any more.
pub(crate) async fn read<T, R>(reader: &mut R, time_max: Duration) -> Result<T, LineError>
where
    T: DeserializeOwned,
    R: AsyncBufRead + Unpin,
{
    parse(&local_socket::read_line(reader, limits(time_max)).await?)
}

/// Reads a connection's first line, which may hold an order, as a value.
///
/// # Errors
/// Why there is no value. The connection can't be used any more.
pub(crate) async fn read_request<T, R>(reader: &mut R, time_max: Duration) -> Result<T, LineError>
where
    T: DeserializeOwned,
    R: AsyncBufRead + Unpin,
{
    let limits = LineLimits {
        bytes_max: REQUEST_LINE_BYTES_MAX,
        time_max,
    };
    parse(&local_socket::read_line(reader, limits).await?)
}

pub(crate) fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    protocol::parse_line(line).map_err(LineError::NotUnderstood)
}

/// Writes a value as a line.
///
/// # Errors
/// When the connection broke, or the other end does not read.
pub(crate) async fn write<T, W>(
    writer: &mut W,
    value: &T,
    time_max: Duration,
) -> Result<(), LineError>
where
    T: Serialize + Sync,
    W: AsyncWrite + Unpin,
{
    let line = to_line(value)?;
    Ok(local_socket::write_line(writer, line, time_max).await?)
}

/// A value as a line, without its newline.
pub(crate) fn to_line<T: Serialize>(value: &T) -> Result<Vec<u8>, LineError> {
    serde_json::to_vec(value).map_err(LineError::NotUnderstood)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::control::Request;

    async fn first(bytes: &[u8]) -> Result<Request, LineError> {
        let mut reader = tokio::io::BufReader::with_capacity(16, bytes);
        read(&mut reader, Duration::MAX).await
    }

    #[tokio::test]
    async fn a_line_is_bounded_before_it_is_parsed() {
        let long = vec![b'x'; CONTROL_LINE_BYTES_MAX + 1];
        assert!(matches!(
            first(&long).await,
            Err(LineError::Line(local_socket::LineError::TooLong(
                CONTROL_LINE_BYTES_MAX
            )))
        ));
        let with_an_order = [long.clone(), b"\n".to_vec()].concat();
        let mut reader = &with_an_order[..];
        let read = read_request::<Request, _>(&mut reader, Duration::MAX).await;
        assert!(matches!(read, Err(LineError::NotUnderstood(_))), "{read:?}");
        let longer = vec![b'x'; REQUEST_LINE_BYTES_MAX + 1];
        let read = read_request::<Request, _>(&mut &longer[..], Duration::MAX).await;
        assert!(matches!(
            read,
            Err(LineError::Line(local_socket::LineError::TooLong(
                REQUEST_LINE_BYTES_MAX
            )))
        ));
        assert!(matches!(
            first(b"{}\n").await,
            Err(LineError::NotUnderstood(_))
        ));
        assert!(matches!(
            first(b"{\"status\":{}}").await,
            Err(LineError::Line(local_socket::LineError::Ended))
        ));
        assert!(matches!(
            first(b"{\"status\":{}}\nmore").await,
            Ok(Request::Status {})
        ));
    }
}
