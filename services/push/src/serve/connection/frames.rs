//! A WebSocket that reads and writes at the same time, within bounds.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Error;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::{Sink as _, Stream as _};
use tokio::time::{Instant, timeout};

use crate::serve::listen::BytesRead;

/// How long the other side may take to read a close frame, and to answer it.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

/// Time in which [`WORK_MAX`] counts.
const WORK_TIME: Duration = Duration::from_secs(60);

/// What a client may have us read in [`WORK_TIME`], in bytes, and what each frame counts in
/// addition: acknowledgements of a hundred messages a second are less.
const WORK_MAX: u64 = 4 * 1024 * 1024;
const FRAME_WORK: u64 = 200;

/// Of a frame, the caller hears after this many bytes.
const PART_BYTES: u64 = 4096;

pub(super) struct Frames {
    /// `None` once the connection has ended.
    socket: Option<WebSocket>,
    read: BytesRead,
    /// Of the bytes read, those of messages that are handled.
    handled: u64,
    /// What was read when the caller heard of it last.
    told: u64,
    unsent: VecDeque<Message>,
    unsent_bytes: usize,
    /// The last time when a frame was begun, while sending is not finished.
    sending_since: Option<Instant>,
    work: Work,
}

/// What was read since a time.
struct Work {
    since: Instant,
    read: u64,
    frames: u64,
}

pub(super) enum Moved {
    Sent,
    Read(Message),
    /// Much of a frame was read.
    Part,
    /// Bytes that are no frame, or a frame that is too long; or the connection broke.
    Malformed,
    /// By the other side's close frame.
    Closed,
    Broken,
}

impl Frames {
    pub(super) fn new(socket: WebSocket, read: BytesRead) -> Self {
        let begun = read.get();
        Self {
            socket: Some(socket),
            read,
            handled: begun,
            told: begun,
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            sending_since: None,
            work: Work {
                since: Instant::now(),
                read: begun,
                frames: 0,
            },
        }
    }

    pub(super) fn send(&mut self, frame: Message) {
        self.unsent_bytes = self.unsent_bytes.saturating_add(bytes(&frame));
        self.unsent.push_back(frame);
        self.sending_since.get_or_insert_with(Instant::now);
    }

    /// Since when the frame takes that is being sent.
    pub(super) fn sending_since(&self) -> Option<Instant> {
        self.sending_since
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.read.get()
    }

    /// The message is handled until whose end this many bytes were read.
    pub(super) fn handled(&mut self, read: u64) {
        self.handled = read;
    }

    pub(super) fn unhandled_bytes(&self) -> usize {
        let bytes = self.read.get().saturating_sub(self.handled);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Whether the client sends more than any client has reason to.
    pub(super) fn are_too_many(&self) -> bool {
        let bytes = self.read.get().saturating_sub(self.work.read);
        bytes.saturating_add(self.work.frames.saturating_mul(FRAME_WORK)) > WORK_MAX
    }

    /// Reads a frame, and sends what waits meanwhile. Cancel safe.
    pub(super) async fn exchange(&mut self) -> Moved {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Moved> {
        if self.sending_since.is_some() {
            match self.poll_send(context) {
                Poll::Ready(Ok(())) => {
                    self.sending_since = None;
                    return Poll::Ready(Moved::Sent);
                }
                Poll::Ready(Err(_broken)) => return Poll::Ready(Moved::Broken),
                Poll::Pending => {}
            }
        }
        let Some(socket) = &mut self.socket else {
            return Poll::Ready(Moved::Broken);
        };
        let polled = Pin::new(socket).poll_next(context);
        let read = self.read.get();
        if polled.is_pending() && read.saturating_sub(self.told) < PART_BYTES {
            return Poll::Pending;
        }
        self.told = read;
        let Poll::Ready(frame) = polled else {
            return Poll::Ready(Moved::Part);
        };
        let now = Instant::now();
        if now.saturating_duration_since(self.work.since) >= WORK_TIME {
            self.work = Work {
                since: now,
                read: self.read.get(),
                frames: 0,
            };
        }
        self.work.frames = self.work.frames.saturating_add(1);
        Poll::Ready(match frame {
            Some(Ok(Message::Close(_))) => Moved::Closed,
            Some(Ok(frame)) => Moved::Read(frame),
            Some(Err(_)) => Moved::Malformed,
            None => Moved::Broken,
        })
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some(socket) = &mut self.socket else {
            return Poll::Ready(Ok(()));
        };
        let mut socket = Pin::new(socket);
        while !self.unsent.is_empty() {
            ready!(socket.as_mut().poll_ready(context))?;
            if let Some(next) = self.unsent.pop_front() {
                self.unsent_bytes = self.unsent_bytes.saturating_sub(bytes(&next));
                self.sending_since = Some(Instant::now());
                socket.as_mut().start_send(next)?;
            }
        }
        socket.poll_flush(context)
    }

    /// Ends the connection with this close frame, or after the other side's. Reads the rest of the
    /// input, so that the other side reads the close frame before the connection breaks.
    pub(super) async fn close(&mut self, frame: Option<CloseFrame>) {
        self.unsent = VecDeque::new();
        if let Some(frame) = frame {
            self.send(Message::Close(Some(frame)));
        }
        let ended = async {
            while let Moved::Sent | Moved::Read(_) | Moved::Part | Moved::Closed =
                self.exchange().await
            {}
        };
        timeout(CLOSE_TIME_MAX, ended).await.unwrap_or(());
        self.drop_socket();
    }

    /// Ends the connection without a word.
    pub(super) fn drop_socket(&mut self) {
        self.socket = None;
    }
}

fn bytes(frame: &Message) -> usize {
    match frame {
        Message::Text(text) => text.len(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Close(_) => 0,
    }
}
