//! Requests and answers: a line of JSON each, one of each per connection.

use std::error::Error as _;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::line::{LineLimits, WireError, read_line, within, write_line};

/// The requests of a wire, with what both of its ends must agree on.
pub trait Ask: Serialize + DeserializeOwned + Send + Sync {
    type Answer: Serialize + DeserializeOwned + Send + Sync;

    /// Longest line of a request in bytes.
    const BYTES_MAX: usize;

    /// Longest line of an answer in bytes.
    const ANSWER_BYTES_MAX: usize;

    /// Longest time from connecting to the end of the answer.
    fn answer_time_max(&self) -> Duration;

    /// Parses a line of either end.
    fn parse<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T>;

    /// The answer to a line that is no request, and instead of one that is too long.
    fn failed(why: String) -> Self::Answer;
}

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
    pub async fn open(path: &Path) -> Result<Self, WireError> {
        let stream = UnixStream::connect(path).await;
        let stream = stream.map_err(|error| WireError::Connect {
            path: path.to_owned(),
            error,
        })?;
        Ok(stream.into())
    }

    /// Writes a request and reads its answer, within one deadline.
    pub async fn ask<R: Ask>(&mut self, request: &R) -> Result<R::Answer, WireError> {
        let time_max = request.answer_time_max();
        let limits = LineLimits {
            bytes_max: R::ANSWER_BYTES_MAX,
            time_max,
        };
        within(time_max, async {
            write_line(&mut self.writer, serde_json::to_vec(request)?, time_max).await?;
            Ok(R::parse(&read_line(&mut self.reader, limits).await?)?)
        })
        .await
    }
}

/// Sends requests to a socket, each over its own connection.
#[derive(Debug, Clone)]
pub struct Client<Request> {
    path: PathBuf,
    wire: PhantomData<fn(Request)>,
}

impl<R: Ask> Client<R> {
    /// A client of the socket at `path`. It does not connect yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            wire: PhantomData,
        }
    }

    pub async fn ask(&self, request: &R) -> Result<R::Answer, WireError> {
        Ok(self.open(request).await?.1)
    }

    /// Like [`Self::ask`], but the connection stays open.
    pub async fn open(&self, request: &R) -> Result<(Connection, R::Answer), WireError> {
        within(request.answer_time_max(), async {
            let mut connection = Connection::open(&self.path).await?;
            let answer = connection.ask(request).await?;
            Ok((connection, answer))
        })
        .await
    }
}

/// Reads a connection's request and writes its answer. Each line may take `time_max`.
pub async fn answer_one<R: Ask, Answering>(
    stream: UnixStream,
    time_max: Duration,
    answer: impl FnOnce(R) -> Answering,
) -> Result<(), WireError>
where
    Answering: Future<Output = R::Answer>,
{
    let Connection {
        mut reader,
        mut writer,
    } = stream.into();
    let limits = LineLimits {
        bytes_max: R::BYTES_MAX,
        time_max,
    };
    let line = read_line(&mut reader, limits).await;
    let answer = match line.and_then(|line| Ok(R::parse(&line)?)) {
        Ok(request) => answer(request).await,
        // The client may know its own line.
        Err(error) => R::failed(match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        }),
    };
    let mut line = serde_json::to_vec(&answer)?;
    if line.len() > R::ANSWER_BYTES_MAX {
        let why = WireError::TooLong(R::ANSWER_BYTES_MAX).to_string();
        line = serde_json::to_vec(&R::failed(why))?;
    }
    write_line(&mut writer, line, time_max).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than a busy machine takes.
    const PATIENT: Duration = Duration::from_secs(60);

    impl Ask for String {
        type Answer = Self;
        const BYTES_MAX: usize = 8;
        const ANSWER_BYTES_MAX: usize = 40;

        fn answer_time_max(&self) -> Duration {
            match self.as_str() {
                "silent" => Duration::from_millis(50),
                _ => PATIENT,
            }
        }

        fn parse<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
            serde_json::from_slice(line)
        }

        fn failed(why: String) -> Self {
            why
        }
    }

    /// The answer to `request` of a server that has `answer`.
    async fn check(request: &str, answer: &str, expect: Result<&str, &str>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let mut listener = crate::bind(&path, 0o600).unwrap();
        let answer = answer.to_owned();
        let serving = async {
            let stream = listener.accept().await.unwrap();
            let answer = async |asked: String| match asked.as_str() {
                "silent" => std::future::pending().await,
                _ => answer,
            };
            answer_one(stream, PATIENT, answer).await.unwrap();
            std::future::pending().await
        };
        let (client, request) = (Client::new(path.clone()), request.to_owned());
        let asked = tokio::select! {
            asked = client.ask(&request) => asked,
            () = serving => unreachable!(),
        };
        let asked = asked.map_err(|error| error.to_string());
        assert_eq!(
            asked.as_deref().map_err(String::as_str),
            expect,
            "{request}"
        );
    }

    #[tokio::test]
    async fn a_request_gets_its_answer_or_the_reason_why_not() {
        check("hello", "welcome", Ok("welcome")).await;
        let long = &"x".repeat(39);
        check("hello", long, Ok("a line is longer than 40 bytes")).await;
        check("too long", "", Ok("a line is longer than 8 bytes")).await;
        check("silent", "", Err("no whole line within 50ms")).await;
        let nobody = Client::new("/nonexistent/a.sock".into());
        let error = nobody.ask(&String::new()).await.unwrap_err().to_string();
        let expect = "can't connect to /nonexistent/a.sock: No such file";
        assert!(error.starts_with(expect), "{error}");
    }
}
