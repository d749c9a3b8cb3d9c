//! NDJSON on the control connection, bounded before it is parsed.
//!
//! In: a byte stream. Out: values, one a line. Refused: a line over [`CONTROL_LINE_BYTES_MAX`], and what is no value of the wanted type.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use crate::wire::control::CONTROL_LINE_BYTES_MAX;

/// Why there is no next value.
#[derive(Debug, Error)]
pub enum LineError {
    /// The connection broke.
    #[error("the control connection broke")]
    Io(#[from] io::Error),
    /// It ended, between lines or within one.
    #[error("the control connection ended")]
    Ended,
    /// A line over the bound.
    #[error("a control line is longer than {CONTROL_LINE_BYTES_MAX} bytes")]
    TooLong,
    /// A line that is no such value.
    #[error("a control line was not understood")]
    NotUnderstood(#[source] serde_json::Error),
}

/// The next line as a value. Not to be cancelled midway: what was read of a line is lost then.
///
/// # Errors
/// Why there is none. The connection is of no more use then.
pub(crate) async fn read<T, R>(reader: &mut R) -> Result<T, LineError>
where
    T: DeserializeOwned,
    R: AsyncBufRead + Unpin,
{
    let mut line = Vec::new();
    loop {
        let bytes = reader.fill_buf().await?;
        if bytes.is_empty() {
            return Err(LineError::Ended);
        }
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let taken = end.unwrap_or(bytes.len());
        if line.len().saturating_add(taken) > CONTROL_LINE_BYTES_MAX {
            return Err(LineError::TooLong);
        }
        line.extend(bytes.iter().take(taken));
        reader.consume(taken.saturating_add(usize::from(end.is_some())));
        if end.is_some() {
            return protocol::parse_line(&line).map_err(LineError::NotUnderstood);
        }
    }
}

/// Writes a value as a line.
///
/// # Errors
/// When the connection broke.
pub(crate) async fn write<T, W>(writer: &mut W, value: &T) -> Result<(), LineError>
where
    T: Serialize + Sync,
    W: AsyncWrite + Unpin,
{
    let mut line = serde_json::to_vec(value).map_err(LineError::NotUnderstood)?;
    line.push(b'\n');
    writer.write_all(&line).await?;
    Ok(())
}

/// Resolves when the other end is gone; never when it has sent something instead. May be cancelled.
pub(crate) async fn gone<R: AsyncBufRead + Unpin>(reader: &mut R) {
    let sent = matches!(reader.fill_buf().await, Ok(bytes) if !bytes.is_empty());
    if sent {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::control::Request;

    async fn first(bytes: &[u8]) -> Result<Request, LineError> {
        read(&mut tokio::io::BufReader::with_capacity(16, bytes)).await
    }

    #[tokio::test]
    async fn a_line_is_bounded_before_it_is_parsed() {
        let long = vec![b'x'; CONTROL_LINE_BYTES_MAX + 1];
        assert!(matches!(first(&long).await, Err(LineError::TooLong)));
        assert!(matches!(
            first(b"{}\n").await,
            Err(LineError::NotUnderstood(_))
        ));
        assert!(matches!(
            first(b"{\"status\":{}}").await,
            Err(LineError::Ended)
        ));
        assert!(matches!(
            first(b"{\"status\":{}}\nmore").await,
            Ok(Request::Status {})
        ));
        assert!(matches!(first(b"").await, Err(LineError::Ended)));
    }
}
