//! A TCP stream whose writes can be slowed to one byte at a time, even during a TLS handshake.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

#[derive(Debug)]
pub(crate) struct Wire {
    tcp: TcpStream,
    pace: Option<Duration>,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        Self {
            tcp,
            pace: None,
            waiting: None,
        }
    }

    /// From now on sends one byte per `pace`.
    pub(crate) fn slow_down(&mut self, pace: Duration) {
        self.pace = Some(pace);
    }

    pub(crate) fn reset_at_end(&self) -> io::Result<()> {
        self.tcp.set_zero_linger()
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(pace) = self.pace else {
            return Pin::new(&mut self.tcp).poll_write(cx, bytes);
        };
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
        }
        let one = bytes.get(..1).unwrap_or_default();
        let written = ready!(Pin::new(&mut self.tcp).poll_write(cx, one))?;
        self.waiting = Some(Box::pin(sleep(pace)));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
