//! The orchestrator's client for the launcher's socket.
//!
//! A launch returns a [`Container`], whose frames the caller reads one after the other. The client
//! rejects frames that are too long, and any byte after the last frame.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use local_socket::{LineLimits, WireError};
use protocol::{CheckId, Host};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, BufReader};
use tokio::net::UnixStream;

use crate::wire::{
    Answer, End, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FrameKind, LaunchFault, Request, Status,
};

/// Longest time to connect and to write a request of 1 KiB to a launcher that works.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(5);

/// Limits of the answer to every request except a launch. The longest answer is that to `list`,
/// with a thousand ids. The launcher waits up to 10 s for its engine, and as long again for the
/// engine's answer.
const ANSWER_LIMITS: LineLimits = LineLimits {
    bytes_max: 64 * 1024,
    time_max: Duration::from_secs(25),
};

/// Limits of the status, which the launcher has ready. An operator soon learns that a part hangs.
const STATUS_LIMITS: LineLimits = LineLimits {
    time_max: Duration::from_secs(7),
    ..ANSWER_LIMITS
};

/// Bytes per read of the stream.
const READ_BYTES: usize = 16 * 1024;

/// Sends requests to a launcher. Clones are cheap. Each request opens its own connection.
#[derive(Clone)]
pub struct LauncherClient {
    transport: Transport,
}

#[derive(Clone)]
enum Transport {
    Socket(PathBuf),
    /// For tests in paused time, in which sockets do not work.
    #[cfg(test)]
    InMemory(std::sync::Arc<dyn Fn() -> tokio::io::DuplexStream + Send + Sync>),
}

/// A stream in both directions.
pub(crate) trait Carrier: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Carrier for T {}

/// The reader's side of a check's container. Dropping it ends the container.
pub struct Container {
    stream: Box<dyn Carrier>,
    buffer: BytesMut,
    over: bool,
}

/// One piece of a container's output, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Bytes of its stdout, at most [`FRAME_BYTES_MAX`].
    Stdout(Bytes),
    /// Bytes of its stderr, at most [`FRAME_BYTES_MAX`].
    Stderr(Bytes),
    /// The container ran and ended. Always the last frame.
    End(End),
    /// The container could not be run, or not until its end. Always the last frame.
    Fault(LaunchFault),
}

/// Why a request to the launcher failed.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("the launcher can't be reached: start it; its log says why it ended")]
    Connect(#[source] io::Error),
    /// The connection broke before the last frame or the answer: the launcher is gone.
    #[error(
        "the connection to the launcher broke: if it is not running, start it; its log says why it ended"
    )]
    Broken(#[source] io::Error),
    #[error("no answer from the launcher within {0:?}: if it hangs, restart it")]
    TimedOut(Duration),
    /// The bytes do not follow the wire format: launcher and orchestrator are of different
    /// versions.
    #[error("the launcher's answer was not understood: {0}")]
    Garbled(String),
    #[error("the container has ended, and its end was reported before")]
    Over,
    #[error("the launcher: {}", .0.message)]
    Fault(LaunchFault),
}

impl LauncherClient {
    /// A client for the launcher whose socket is at this path.
    pub fn socket(path: impl Into<PathBuf>) -> Self {
        Self {
            transport: Transport::Socket(path.into()),
        }
    }

    /// A client for a launcher in this process. The caller runs its [`crate::Launcher::keep`] in a
    /// separate task.
    #[cfg(test)]
    pub(crate) fn in_memory<E: crate::Engine>(launcher: &crate::Launcher<E>) -> Self {
        let launcher = launcher.clone();
        Self {
            transport: Transport::InMemory(std::sync::Arc::new(move || {
                let (near, far) = tokio::io::duplex(FRAME_BYTES_MAX);
                launcher.spawn_connection(far);
                near
            })),
        }
    }

    /// Requests a check's container. The frames report whether it runs, and if not, why.
    pub async fn launch(&self, check: &CheckId, host: &Host) -> Result<Container, ClientError> {
        let request = Request::Launch {
            check: check.clone(),
            host: host.clone(),
        };
        Ok(Container::new(self.request(&request).await?))
    }

    /// Ends a check's container. Returns whether there was one.
    pub async fn kill(&self, check: &CheckId) -> Result<bool, ClientError> {
        let request = Request::Kill {
            check: check.clone(),
        };
        match self.ask(&request).await? {
            Answer::Killed { found } => Ok(found),
            other @ (Answer::List { .. } | Answer::Status(_) | Answer::Fault(_)) => {
                Err(unexpected(other))
            }
        }
    }

    /// The checks that have a container now.
    ///
    /// # Errors
    /// Fails if the launcher can't be reached, or if the launcher or its engine does not answer.
    pub async fn list(&self) -> Result<Vec<CheckId>, ClientError> {
        match self.ask(&Request::List {}).await? {
            Answer::List { checks } => Ok(checks),
            other @ (Answer::Killed { .. } | Answer::Status(_) | Answer::Fault(_)) => {
                Err(unexpected(other))
            }
        }
    }

    pub async fn status(&self) -> Result<Status, ClientError> {
        match self.ask(&Request::Status {}).await? {
            Answer::Status(status) => Ok(status),
            other @ (Answer::Killed { .. } | Answer::List { .. } | Answer::Fault(_)) => {
                Err(unexpected(other))
            }
        }
    }

    async fn request(&self, request: &Request) -> Result<Box<dyn Carrier>, ClientError> {
        let line = serde_json::to_vec(request).map_err(WireError::from)?;
        let asked = async {
            let mut stream: Box<dyn Carrier> = match &self.transport {
                Transport::Socket(path) => Box::new(
                    UnixStream::connect(path)
                        .await
                        .map_err(ClientError::Connect)?,
                ),
                #[cfg(test)]
                Transport::InMemory(connect) => Box::new(connect()),
            };
            local_socket::write_line(&mut stream, line, REQUEST_WAIT_MAX).await?;
            Ok(stream)
        };
        // One deadline over connecting and writing.
        match tokio::time::timeout(REQUEST_WAIT_MAX, asked).await {
            Ok(asked) => asked,
            Err(_elapsed) => Err(ClientError::TimedOut(REQUEST_WAIT_MAX)),
        }
    }

    async fn ask(&self, request: &Request) -> Result<Answer, ClientError> {
        let mut stream = BufReader::new(self.request(request).await?);
        let limits = match request {
            Request::Status {} => STATUS_LIMITS,
            Request::Launch { .. } | Request::Kill { .. } | Request::List {} => ANSWER_LIMITS,
        };
        let line = local_socket::read_line(&mut stream, limits).await?;
        Ok(serde_json::from_slice(&line).map_err(WireError::from)?)
    }
}

impl From<WireError> for ClientError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Connect { error, .. } => Self::Connect(error),
            WireError::Io(error) => Self::Broken(error),
            WireError::Ended => Self::Broken(io::ErrorKind::UnexpectedEof.into()),
            WireError::TooLong(_) => Self::Garbled(error.to_string()),
            WireError::Late(limit) => Self::TimedOut(limit),
            WireError::NotUnderstood(error) => Self::Garbled(error.to_string()),
        }
    }
}

impl Container {
    pub(crate) fn new(stream: Box<dyn Carrier>) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            over: false,
        }
    }

    /// The next frame. The future may be dropped while it waits and requested again without losing
    /// a byte. It has no timeout: the caller sets a deadline, see [`crate::Settings::launch_max`].
    ///
    /// # Errors
    /// Fails if the launcher is gone, the bytes are not a frame, or the last frame was already
    /// read.
    pub async fn next(&mut self) -> Result<Frame, ClientError> {
        if self.over {
            return Err(ClientError::Over);
        }
        loop {
            if let Some((kind, payload)) = self.take_frame()? {
                return self.frame(kind, payload);
            }
            self.buffer.reserve(READ_BYTES);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) => return Err(ClientError::Broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => return Err(ClientError::Broken(error)),
            }
        }
    }

    /// Takes a complete frame from the buffer, if there is one. Less than one frame and one read
    /// stay in the buffer.
    fn take_frame(&mut self) -> Result<Option<(FrameKind, Bytes)>, ClientError> {
        let Some(&[kind, a, b, c, d]) = self.buffer.first_chunk::<FRAME_HEAD_BYTES>() else {
            return Ok(None);
        };
        let kind = FrameKind::from_byte(kind)
            .ok_or_else(|| ClientError::Garbled(format!("a frame of kind {kind}")))?;
        let length = u32::from_be_bytes([a, b, c, d]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(ClientError::Garbled(format!("a frame of {length} bytes")));
        }
        if self.buffer.len() < FRAME_HEAD_BYTES.saturating_add(length) {
            return Ok(None);
        }
        self.buffer.advance(FRAME_HEAD_BYTES);
        Ok(Some((kind, self.buffer.split_to(length).freeze())))
    }

    fn frame(&mut self, kind: FrameKind, payload: Bytes) -> Result<Frame, ClientError> {
        let garbled = |error: serde_json::Error| ClientError::Garbled(error.to_string());
        match kind {
            FrameKind::Stdout => Ok(Frame::Stdout(payload)),
            FrameKind::Stderr => Ok(Frame::Stderr(payload)),
            FrameKind::End => {
                self.over = true;
                let end = serde_json::from_slice(&payload).map_err(garbled)?;
                Ok(Frame::End(end))
            }
            FrameKind::Fault => {
                self.over = true;
                let fault = serde_json::from_slice(&payload).map_err(garbled)?;
                Ok(Frame::Fault(fault))
            }
        }
    }
}

impl fmt::Debug for LauncherClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.transport {
            Transport::Socket(path) => f.debug_tuple("LauncherClient").field(path).finish(),
            #[cfg(test)]
            Transport::InMemory(_) => f.write_str("LauncherClient(in memory)"),
        }
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container")
            .field("buffered", &self.buffer.len())
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

fn unexpected(answer: Answer) -> ClientError {
    match answer {
        Answer::Fault(fault) => ClientError::Fault(fault),
        other @ (Answer::Killed { .. } | Answer::List { .. } | Answer::Status(_)) => {
            ClientError::Garbled(format!("{other:?} to another question"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    async fn check(bytes: &[u8], expect: Result<Frame, &str>) {
        let (mut near, far) = tokio::io::duplex(1024);
        near.write_all(bytes).await.unwrap();
        drop(near);
        let mut container = Container::new(Box::new(far));
        match (container.next().await, expect) {
            (Ok(frame), Ok(expect)) => assert_eq!(frame, expect),
            (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{error}"),
            (found, expect) => panic!("{bytes:?}: {found:?}, not {expect:?}"),
        }
    }

    #[tokio::test]
    async fn frames_are_bounded_and_known() {
        check(b"\x01\0\0\0\x02hi", Ok(Frame::Stdout("hi".into()))).await;
        check(b"\x02\0\0\0\0", Ok(Frame::Stderr(Bytes::new()))).await;
        check(b"\x00\0\0\0\x01x", Err("kind 0")).await;
        check(b"{\"fault\"", Err("kind 123")).await;
        check(b"\x01\0\x01\0\x01", Err("65537 bytes")).await;
        check(b"\x03\0\0\0\x02{}", Err("missing field")).await;
    }

    #[tokio::test]
    async fn a_launcher_that_goes_is_no_end() {
        check(b"", Err("broke")).await;
        check(b"\x01\0\0\0\x02h", Err("broke")).await;
    }

    #[tokio::test]
    async fn nothing_comes_after_the_last_frame() {
        let (mut near, far) = tokio::io::duplex(1024);
        let fault = br#"{"kind":"full","message":"m"}"#;
        near.write_all(&[4, 0, 0, 0, 29]).await.unwrap();
        near.write_all(fault).await.unwrap();
        near.write_all(b"\x01\0\0\0\x02hi").await.unwrap();
        let mut container = Container::new(Box::new(far));
        assert!(matches!(container.next().await, Ok(Frame::Fault(_))));
        assert!(matches!(container.next().await, Err(ClientError::Over)));
    }
}
