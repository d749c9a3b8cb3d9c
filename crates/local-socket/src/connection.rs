//! The client's side of a socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::line::{LineError, LineLimits, read_line, write_line};

/// Both halves of a connection. The reading half is buffered.
#[derive(Debug)]
pub struct Connection {
    pub reader: BufReader<OwnedReadHalf>,
    /// Writes to the other end. Dropping it signals the end of the data.
    pub writer: OwnedWriteHalf,
}

impl From<UnixStream> for Connection {
    fn from(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self {
            reader: BufReader::new(reader),
            writer,
        }
    }
}

impl Connection {
    pub async fn open(path: &Path) -> io::Result<Self> {
        Ok(UnixStream::connect(path).await?.into())
    }
}

#[derive(Debug, Error)]
pub enum AskError {
    /// No process listens at the socket, or permission is missing.
    #[error("no process answers at the socket")]
    Connect(#[source] io::Error),
    /// The connection broke or delivered no line.
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("no answer within {0:?}")]
    Late(Duration),
}

/// Connects, writes a line and reads one, within one deadline: [`LineLimits::time_max`] of the
/// answer. The connection stays open.
pub async fn ask(
    path: &Path,
    request: Vec<u8>,
    answer: LineLimits,
) -> Result<(Connection, Vec<u8>), AskError> {
    let talk = async {
        let mut connection = Connection::open(path).await.map_err(AskError::Connect)?;
        // The timeout around the whole exchange applies.
        write_line(&mut connection.writer, request, Duration::MAX).await?;
        let limits = LineLimits {
            time_max: Duration::MAX,
            ..answer
        };
        let line = read_line(&mut connection.reader, limits).await?;
        Ok((connection, line))
    };
    timeout(answer.time_max, talk)
        .await
        .unwrap_or(Err(AskError::Late(answer.time_max)))
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    fn limits(time_max: Duration) -> LineLimits {
        LineLimits {
            bytes_max: 8,
            time_max,
        }
    }

    /// Longer than a busy machine takes.
    const PATIENT: Duration = Duration::from_secs(60);

    async fn asked(answer: Option<&'static [u8]>, time_max: Duration) -> Result<Vec<u8>, AskError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = Connection::from(stream);
            let request = read_line(&mut connection.reader, limits(PATIENT)).await;
            assert_eq!(request.unwrap(), b"hello");
            if let Some(answer) = answer {
                let sent = write_line(&mut connection.writer, answer.to_vec(), PATIENT);
                sent.await.unwrap();
            }
            std::future::pending::<()>().await;
        });
        let asked = ask(&path, b"hello".to_vec(), limits(time_max)).await;
        serving.abort();
        asked.map(|(_connection, line)| line)
    }

    #[tokio::test]
    async fn a_request_gets_its_line_or_the_reason_why_not() {
        assert_eq!(asked(Some(b"welcome"), PATIENT).await.unwrap(), b"welcome");
        let long = asked(Some(b"far too long"), PATIENT).await;
        assert!(
            matches!(long, Err(AskError::Line(LineError::TooLong(8)))),
            "{long:?}"
        );
        let silent = asked(None, Duration::from_millis(50)).await;
        assert!(matches!(silent, Err(AskError::Late(_))), "{silent:?}");
        let nobody = ask(
            Path::new("/nonexistent/a.sock"),
            Vec::new(),
            limits(PATIENT),
        )
        .await;
        assert!(matches!(nobody, Err(AskError::Connect(_))), "{nobody:?}");
    }
}
