//! Streams one answer from the network to the parser: the async side reads, a thread parses, and a
//! short queue connects them.
//!
//! Takes requests and gives pages, after their names went to the sink. Rejects every status except
//! 200, and stops at the bound for all peers answers together.

use std::io::{self, BufReader, Read};

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;

use super::page::{Page, Shape, read_page};
use super::sink::Sink;
use crate::documents::json::{BYTE_ORDER_MARK, Guard, JsonError};
use crate::fetch::{Ask, Body, Failure, Fetcher};

/// Pieces between the network and the parser. A piece is at most one read of hyper's, so the queue
/// holds less than 2 MiB.
const PIECES_QUEUED_MAX: usize = 4;

/// The parser's own buffer, because the parser reads single bytes.
const READ_BUFFER_BYTES: usize = 8 * 1024;

/// Why a peers list ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// By robots.txt, by a status, or by a redirect to another host.
    Refused,
    Missing,
    Truncated,
    /// By the network, or by something that is no such list.
    Failed,
    Silent,
}

/// All requests for one host's peers.
#[derive(Debug)]
pub(super) struct Session<'a> {
    fetcher: &'a mut Fetcher,
    sink: Option<Sink>,
    bytes_left: u64,
}

impl<'a> Session<'a> {
    pub(super) fn new(fetcher: &'a mut Fetcher, sink: Sink) -> Self {
        Self {
            bytes_left: fetcher.limits().peers_bytes,
            fetcher,
            sink: Some(sink),
        }
    }

    /// The sink, unless its thread was lost.
    pub(super) fn into_sink(self) -> Option<Sink> {
        self.sink
    }

    /// Names and dropped elements so far.
    pub(super) fn taken(&self) -> u64 {
        self.sink.as_ref().map_or(0, Sink::taken)
    }

    pub(super) async fn get(&mut self, path: &str, shape: &'static Shape) -> Result<Page, Stop> {
        let ask = self.fetcher.ask_for(path);
        self.page(ask.map_err(|_no_url| Stop::Failed)?, shape).await
    }

    /// Requests `path` with a JSON body.
    pub(super) async fn post(
        &mut self,
        path: &str,
        json: String,
        shape: &'static Shape,
    ) -> Result<Page, Stop> {
        let ask = self.fetcher.ask_for(path);
        let mut ask = ask.map_err(|_no_url| Stop::Failed)?;
        ask.post = Some(json);
        self.page(ask, shape).await
    }

    /// Reads a whole document that was received and parsed once before.
    pub(super) fn read(&mut self, document: &[u8], shape: &'static Shape) -> Result<Page, Stop> {
        let document = document.strip_prefix(BYTE_ORDER_MARK).unwrap_or(document);
        let sink = self.sink.as_mut().ok_or(Stop::Failed)?;
        match read_page(document, shape, sink) {
            _ if sink.is_full() => Err(Stop::Truncated),
            Ok(page) => Ok(page),
            Err(_) => Err(Stop::Failed),
        }
    }

    async fn page(&mut self, ask: Ask, shape: &'static Shape) -> Result<Page, Stop> {
        let answer = self.fetcher.get(ask).await.map_err(Stop::from)?;
        match answer.status {
            200 => {}
            _ if answer.wall.is_some() => return Err(Stop::Refused),
            404 | 405 | 410 => return Err(Stop::Missing),
            400..=499 => return Err(Stop::Refused),
            _ => return Err(Stop::Failed),
        }
        let body = answer.body(self.bytes_left).map_err(Stop::from)?;
        let sink = self.sink.take().ok_or(Stop::Failed)?;
        let before = self.fetcher.bytes();
        let streamed = stream(body, sink, |queue, sink| {
            read_page(Pieces::guarded(queue), shape, sink)
        });
        let streamed = streamed.await;
        let bytes = self.fetcher.bytes().saturating_sub(before);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        let Streamed { sink, fed, read } = streamed.ok_or(Stop::Failed)?;
        let full = sink.is_full();
        self.sink = Some(sink);
        match (fed, read) {
            (Err(failure), _) => Err(failure.into()),
            (Ok(()), _) if full => Err(Stop::Truncated),
            (Ok(()), Ok(page)) if page.is_list => Ok(page),
            (Ok(()), Ok(_) | Err(_)) => Err(Stop::Failed),
        }
    }
}

/// The result of reading a body.
#[derive(Debug)]
pub(crate) struct Streamed<S, R> {
    /// The sink that the parser wrote to.
    pub(crate) sink: S,
    /// How the body ended, as far as the parser read it.
    pub(crate) fed: Result<(), Failure>,
    pub(crate) read: R,
}

/// Reads a body through `read` on a thread; `None` if the thread was lost.
pub(crate) async fn stream<S, R>(
    mut body: Body,
    mut sink: S,
    read: impl FnOnce(mpsc::Receiver<Piece>, &mut S) -> R + Send + 'static,
) -> Option<Streamed<S, R>>
where
    S: Send + 'static,
    R: Send + 'static,
{
    let (pieces, queue) = mpsc::channel(PIECES_QUEUED_MAX);
    let parser = tokio::task::spawn_blocking(move || {
        let read = read(queue, &mut sink);
        (sink, read)
    });
    let fed = loop {
        match body.next().await {
            Ok(Some(piece)) => {
                // The parser stopped reading.
                if pieces.send(Ok(piece)).await.is_err() {
                    break Ok(());
                }
            }
            Ok(None) => break Ok(()),
            Err(failure) => {
                // The result is the same if the parser is gone already.
                pieces.send(Err(Cut)).await.ok();
                break Err(failure);
            }
        }
    };
    drop(pieces);
    let (sink, read) = parser.await.ok()?;
    Some(Streamed { sink, fed, read })
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Disallowed
            | Failure::Moved(_)
            | Failure::Temporary(_)
            | Failure::BadRedirect(_)
            | Failure::RedirectToSelf
            | Failure::RedirectLoop => Self::Refused,
            Failure::Deadline | Failure::TooSlow | Failure::TooLarge | Failure::Requests => {
                Self::Truncated
            }
            Failure::Tls(_)
            | Failure::Http
            | Failure::BrokenOff
            | Failure::Timeout
            | Failure::Encoding => Self::Failed,
        }
    }
}

/// A piece of a body, or the sign that the body was cut: half a name can be another name.
pub(crate) type Piece = Result<Bytes, Cut>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body ended before its end")]
pub(crate) struct Cut;

/// The parser's end of the queue, as a reader.
pub(crate) struct Pieces {
    queue: mpsc::Receiver<Piece>,
    piece: Bytes,
    guard: Option<Guard>,
    /// The breach to return once the bytes before it are read.
    breach: Option<JsonError>,
    /// The rest of a byte order mark that may still come. Empty after any other byte.
    mark: &'static [u8],
}

impl Pieces {
    pub(crate) fn guarded(queue: mpsc::Receiver<Piece>) -> BufReader<Self> {
        Self::reader(queue, Some(Guard::default()))
    }

    /// A reader of what is no JSON.
    pub(crate) fn plain(queue: mpsc::Receiver<Piece>) -> BufReader<Self> {
        Self::reader(queue, None)
    }

    fn reader(queue: mpsc::Receiver<Piece>, guard: Option<Guard>) -> BufReader<Self> {
        let pieces = Self {
            queue,
            piece: Bytes::new(),
            guard,
            breach: None,
            mark: BYTE_ORDER_MARK,
        };
        BufReader::with_capacity(READ_BUFFER_BYTES, pieces)
    }
}

impl Pieces {
    /// Skips a byte order mark, which a server may cut anywhere. Half a mark belongs to the text.
    fn pass_over_mark(&mut self, piece: &mut Bytes) {
        while let (Some((wanted, rest)), Some(byte)) = (self.mark.split_first(), piece.first()) {
            if byte != wanted {
                let seen = BYTE_ORDER_MARK.len().saturating_sub(self.mark.len());
                let begun = BYTE_ORDER_MARK.get(..seen).unwrap_or_default();
                if !begun.is_empty() {
                    *piece = [begun, piece].concat().into();
                }
                self.mark = &[];
                return;
            }
            self.mark = rest;
            piece.advance(1);
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(breach) = self.breach.take() {
            return Err(io::Error::other(breach));
        }
        while self.piece.is_empty() {
            let Some(piece) = self.queue.blocking_recv() else {
                return Ok(0);
            };
            let mut piece = piece.map_err(io::Error::other)?;
            self.pass_over_mark(&mut piece);
            self.piece = piece;
        }
        let bytes = self.piece.len().min(buffer.len());
        let mut part = self.piece.split_to(bytes);
        // What comes before a breach is still parsed, however the answer was cut.
        let (bytes, guarded) = match &mut self.guard {
            Some(guard) => guard.feed(&part),
            None => (bytes, Ok(())),
        };
        match guarded {
            Err(breach) if bytes == 0 => return Err(io::Error::other(breach)),
            guarded => self.breach = guarded.err(),
        }
        part.truncate(bytes);
        let buffer = buffer.get_mut(..bytes);
        part.copy_to_slice(buffer.ok_or(io::ErrorKind::InvalidInput)?);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use protocol::limits::JSON_DEPTH_MAX;

    use super::*;

    fn read(pieces: &[&'static [u8]]) -> Option<Vec<u8>> {
        let (sender, queue) = mpsc::channel(8);
        for piece in pieces {
            sender.try_send(Ok(Bytes::from_static(piece))).unwrap();
        }
        drop(sender);
        let mut bytes = Vec::new();
        Pieces::guarded(queue).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_however_it_is_cut() {
        let list = Some(b"[]".to_vec());
        assert_eq!(read(&[b"\xef\xbb\xbf[]"]), list);
        assert_eq!(read(&[b"\xef", b"", b"\xbb\xbf", b"[", b"]"]), list);
        assert_eq!(read(&[b"\xef\xbb", b"\xbf[]"]), list);
        assert_eq!(read(&[b"[", b"]"]), list);
        // Only at the beginning, only once, and only a whole mark.
        assert_eq!(
            read(&[b"\xef", b"\xbc", b"\x81"]),
            Some("\u{ff01}".as_bytes().to_vec())
        );
        assert_eq!(
            read(&[b"[", b"\xef\xbb\xbf"]),
            Some(b"[\xef\xbb\xbf".to_vec())
        );
        assert_eq!(
            read(&[b"\xef\xbb\xbf", b"\xef\xbb\xbf"]),
            Some(BYTE_ORDER_MARK.to_vec())
        );
        assert_eq!(read(&[b"\xef", b"[]"]), Some(b"\xef[]".to_vec()));
    }

    #[test]
    fn what_stands_before_a_breach_is_read_however_it_is_cut() {
        let mut answer = b"[\"a.example\",".to_vec();
        let before = answer.len() + JSON_DEPTH_MAX - 1;
        answer.extend(b"[".repeat(JSON_DEPTH_MAX + 9));
        for cut in 0..answer.len() {
            let (first, second) = answer.split_at(cut);
            let (sender, queue) = mpsc::channel(2);
            sender.try_send(Ok(Bytes::copy_from_slice(first))).unwrap();
            sender.try_send(Ok(Bytes::copy_from_slice(second))).unwrap();
            drop(sender);
            let mut bytes = Vec::new();
            let read = Pieces::guarded(queue).read_to_end(&mut bytes);
            assert!(read.is_err(), "cut at {cut}");
            assert_eq!(bytes, answer[..before], "cut at {cut}");
        }
    }
}
