//! Accepts a bounded number of connections at once.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::bind::Listener;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. Further ones wait in the kernel's queue.
    pub connections_max: usize,
    /// Pause after a failed accept, so that used-up file descriptors don't cause a busy loop.
    pub accept_pause: Duration,
}

/// A source of connections: a [`Listener`], or the caller's own type.
pub trait Accept: fmt::Debug + Send {
    type Stream: Send + 'static;

    /// The next connection. Must be cancel safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Accept for Listener {
    type Stream = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        Self::accept(self).await
    }
}

/// Serves connections until `shutdown`, each in a separate task, and then drops the remaining ones.
/// A `handle` whose work must continue spawns it and waits for it.
pub async fn serve<A, H, F>(
    mut listener: A,
    limits: Limits,
    shutdown: &CancellationToken,
    handle: H,
) where
    A: Accept,
    H: Fn(A::Stream) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_ended) = connections.join_next() => (),
            accepted = listener.accept(), if connections.len() < limits.connections_max => match accepted {
                Ok(stream) => {
                    connections.spawn(handle(stream));
                }
                Err(error) => {
                    tracing::error!(?listener, %error, "a connection can't be accepted");
                    tokio::time::sleep(limits.accept_pause).await;
                }
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::{Notify, mpsc};

    use super::*;

    const LIMITS: Limits = Limits {
        connections_max: 2,
        accept_pause: Duration::from_secs(1),
    };

    /// Returns the connections that the test sends as numbers, and fails for zeros.
    #[derive(Debug)]
    struct Numbers(mpsc::Receiver<usize>);

    impl Accept for Numbers {
        type Stream = usize;

        async fn accept(&mut self) -> io::Result<usize> {
            match self.0.recv().await {
                Some(0) => Err(io::Error::other("as the test wants it")),
                Some(number) => Ok(number),
                None => std::future::pending().await,
            }
        }
    }

    #[derive(Default)]
    struct Served {
        begun: AtomicUsize,
        open: AtomicUsize,
        end: Notify,
    }

    struct Open(Arc<Served>);

    impl Drop for Open {
        fn drop(&mut self) {
            self.0.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    async fn hold(served: Arc<Served>) {
        served.begun.fetch_add(1, Ordering::Relaxed);
        served.open.fetch_add(1, Ordering::Relaxed);
        let open = Open(served);
        open.0.end.notified().await;
    }

    #[tokio::test(start_paused = true)]
    async fn connections_beyond_the_bound_wait_and_a_failure_costs_a_pause() {
        let (sender, receiver) = mpsc::channel(8);
        let (served, shutdown) = (Arc::new(Served::default()), CancellationToken::new());
        let serving = tokio::spawn({
            let (served, shutdown) = (Arc::clone(&served), shutdown.clone());
            async move {
                let handle = |_number| hold(Arc::clone(&served));
                serve(Numbers(receiver), LIMITS, &shutdown, handle).await;
            }
        });
        let seen = || {
            let [begun, open] =
                [&served.begun, &served.open].map(|seen| seen.load(Ordering::Relaxed));
            (begun, open)
        };
        let soon = || tokio::time::sleep(Duration::from_millis(10));
        for number in 1..=3 {
            sender.send(number).await.unwrap();
        }
        soon().await;
        assert_eq!(seen(), (2, 2), "the third waits");
        served.end.notify_one();
        soon().await;
        assert_eq!(seen(), (3, 2));
        served.end.notify_one();
        sender.send(0).await.unwrap();
        sender.send(4).await.unwrap();
        soon().await;
        assert_eq!(seen(), (3, 1), "a failure was a moment ago");
        tokio::time::sleep(LIMITS.accept_pause).await;
        assert_eq!(seen(), (4, 2));
        shutdown.cancel();
        serving.await.unwrap();
        assert_eq!(seen(), (4, 0), "the end drops those that are left");
    }
}
