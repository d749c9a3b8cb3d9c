//! The client's side of the control socket.
//!
//! In: a request. Out: the daemon's lines, one after the other; nothing when none runs. Refused: a socket that is there and does not work.

use std::path::Path;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::{Answer, Request};

/// The client's side of one request.
#[derive(Debug)]
pub struct Conversation {
    lines: tokio::io::Lines<BufReader<tokio::net::unix::OwnedReadHalf>>,
    // Kept open: the daemon reads its end as "nobody listens".
    _write: tokio::net::unix::OwnedWriteHalf,
}

/// Asks the daemon; nothing when none runs.
///
/// # Errors
/// When the socket is there and does not work.
pub async fn ask(path: &Path, request: &Request) -> anyhow::Result<Option<Conversation>> {
    let stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) => {
            return Err(error).with_context(|| {
                format!(
                    "cannot reach the daemon at {}; run this as the user that it runs as",
                    path.display()
                )
            });
        }
    };
    let (read, mut write) = stream.into_split();
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    write.write_all(&line).await?;
    Ok(Some(Conversation {
        lines: BufReader::new(read).lines(),
        _write: write,
    }))
}

impl Conversation {
    /// The next line of the answer.
    ///
    /// # Errors
    /// When the daemon breaks off.
    pub async fn next(&mut self) -> anyhow::Result<Answer> {
        let line = self
            .lines
            .next_line()
            .await?
            .context("the daemon broke off")?;
        Ok(serde_json::from_str(&line)?)
    }
}
