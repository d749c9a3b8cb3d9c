//! The client's side of the control socket.
//!
//! Sends a request and returns the daemon's lines one by one, or `None` if no daemon runs. A socket
//! that exists but does not work is an error.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use local_socket::{Connection, LineLimits, WireError};

use super::{Answer, Request};

/// The daemon accepts a request at once, unless all its connections are in use.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// Checks and publications take long; if the daemon ends, the wait ends too. The longest answer is
/// the loop's state, below 1 MiB.
const ANSWER_LIMITS: LineLimits = LineLimits {
    bytes_max: 16 * 1024 * 1024,
    time_max: Duration::MAX,
};

/// The client's side of one request. It stays open, because the daemon reads its end as "nobody
/// listens".
#[derive(Debug)]
pub struct Conversation(Connection);

/// Asks the daemon; `None` if none runs.
pub async fn ask(path: &Path, request: &Request) -> anyhow::Result<Option<Conversation>> {
    let mut connection = match Connection::open(path).await {
        Ok(connection) => connection,
        Err(WireError::Connect { error, .. })
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        other => other.context("cannot reach the daemon; run this as the daemon's user")?,
    };
    let line = serde_json::to_vec(request)?;
    local_socket::write_line(&mut connection.writer, line, TAKEN_WITHIN).await?;
    Ok(Some(Conversation(connection)))
}

impl Conversation {
    /// The next line of the answer.
    pub async fn next(&mut self) -> anyhow::Result<Answer> {
        let line = match local_socket::read_line(&mut self.0.reader, ANSWER_LIMITS).await {
            Err(WireError::Ended) => anyhow::bail!("the daemon closed the connection"),
            line => line?,
        };
        Ok(serde_json::from_slice(&line)?)
    }
}
