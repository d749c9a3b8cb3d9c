//! One line, bounded in bytes and time before it is parsed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineLimits {
    /// Longest line in bytes, without its newline.
    pub bytes_max: usize,
    /// Longest wait for the whole line. [`Duration::MAX`] if the caller has a timeout.
    pub time_max: Duration,
}

/// Why a line was not sent, or none was received.
#[derive(Debug, Error)]
pub enum WireError {
    #[error("can't connect to {}: {error}", path.display())]
    Connect { path: PathBuf, error: io::Error },
    #[error("the connection broke")]
    Io(#[from] io::Error),
    #[error("the connection ended before the line did")]
    Ended,
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    #[error("no whole line within {0:?}")]
    Late(Duration),
    /// The line is of another wire or version. The source quotes it, so the logs of parts that
    /// distrust the other end leave the source out.
    #[error("the line was not understood")]
    NotUnderstood(#[from] serde_json::Error),
}

/// One deadline over all of `work`.
pub(crate) async fn within<T>(
    time_max: Duration,
    work: impl Future<Output = Result<T, WireError>>,
) -> Result<T, WireError> {
    let done = timeout(time_max, work).await;
    done.unwrap_or(Err(WireError::Late(time_max)))
}

/// Reads a line and returns it without its newline. The bytes after it stay in `reader`.
///
/// Not cancel safe: a partly read line is lost.
/// See [`WireError`]. The connection can't be used after an error.
pub async fn read_line<R>(reader: &mut R, limits: LineLimits) -> Result<Vec<u8>, WireError>
where
    R: AsyncBufRead + Unpin,
{
    within(limits.time_max, whole_line(reader, limits.bytes_max)).await
}

async fn whole_line<R>(reader: &mut R, bytes_max: usize) -> Result<Vec<u8>, WireError>
where
    R: AsyncBufRead + Unpin,
{
    let mut line = Vec::new();
    loop {
        let bytes = reader.fill_buf().await?;
        if bytes.is_empty() {
            return Err(WireError::Ended);
        }
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let taken = end.unwrap_or(bytes.len());
        if line.len().saturating_add(taken) > bytes_max {
            return Err(WireError::TooLong(bytes_max));
        }
        line.extend(bytes.iter().take(taken));
        reader.consume(taken.saturating_add(usize::from(end.is_some())));
        if end.is_some() {
            return Ok(line);
        }
    }
}

/// Writes `line`, which must not contain a newline, and a newline.
pub async fn write_line<W>(
    writer: &mut W,
    mut line: Vec<u8>,
    time_max: Duration,
) -> Result<(), WireError>
where
    W: AsyncWrite + Unpin,
{
    line.push(b'\n');
    let written = async {
        writer.write_all(&line).await?;
        Ok(writer.flush().await?)
    };
    within(time_max, written).await
}

/// Resolves when the other end closes the connection, and never if it has sent something instead.
/// Cancel safe.
pub async fn gone<R: AsyncBufRead + Unpin>(reader: &mut R) {
    let sent = matches!(reader.fill_buf().await, Ok(bytes) if !bytes.is_empty());
    if sent {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;
    use tokio::time::Instant;

    use super::*;

    const LIMITS: LineLimits = LineLimits {
        bytes_max: 8,
        time_max: Duration::from_secs(5),
    };

    async fn check(bytes: &[u8], expect: Result<&str, &str>) {
        let mut reader = BufReader::with_capacity(3, bytes);
        let line = read_line(&mut reader, LIMITS).await;
        let line = line.map(|line| String::from_utf8(line).unwrap());
        let line = line.map_err(|error| error.to_string());
        assert_eq!(line.as_deref().map_err(String::as_str), expect, "{bytes:?}");
    }

    #[tokio::test]
    async fn a_line_is_bounded_and_whole() {
        let ended = "the connection ended before the line did";
        check(b"12345678\n", Ok("12345678")).await;
        check(b"123456789\n", Err("a line is longer than 8 bytes")).await;
        check(b"1234567812345678", Err("a line is longer than 8 bytes")).await;
        check(b"\nmore", Ok("")).await;
        check(b"1234", Err(ended)).await;
        check(b"", Err(ended)).await;
    }

    #[tokio::test]
    async fn what_follows_a_line_stays_for_the_next() {
        let mut reader = BufReader::new(&b"one\ntwo\n"[..]);
        assert_eq!(read_line(&mut reader, LIMITS).await.unwrap(), b"one");
        assert_eq!(read_line(&mut reader, LIMITS).await.unwrap(), b"two");
    }

    /// One deadline for the whole line, not one per byte.
    #[tokio::test(start_paused = true)]
    async fn a_line_that_trickles_ends_at_the_deadline() {
        let (mut near, far) = tokio::io::duplex(64);
        let trickle = tokio::spawn(async move {
            while near.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let began = Instant::now();
        let line = read_line(&mut BufReader::new(far), LIMITS).await;
        assert!(matches!(line, Err(WireError::Late(_))), "{line:?}");
        assert_eq!(began.elapsed(), LIMITS.time_max);
        trickle.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_that_nobody_takes_ends_at_the_deadline() {
        let (mut near, _far) = tokio::io::duplex(4);
        let began = Instant::now();
        let written = write_line(&mut near, b"12345678".to_vec(), LIMITS.time_max).await;
        assert!(matches!(written, Err(WireError::Late(_))), "{written:?}");
        assert_eq!(began.elapsed(), LIMITS.time_max);
    }
}
