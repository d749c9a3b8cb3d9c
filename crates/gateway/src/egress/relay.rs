//! Relays bytes between a checker and its host, counted and bounded.
//!
//! It takes both ends of a connection and the check's [`Ledger`], and records the relayed bytes
//! there. The end of one direction is passed on, so half-closed connections work. Each connection
//! has two buffers of [`BUFFER_BYTES`].

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::settings::BudgetLimits;
use crate::wire::control::{Account, Budget, FailedSide};

/// One direction's buffer: the size of a TLS record.
const BUFFER_BYTES: usize = 16 * 1024;

/// What a check has used so far, shared by its connections.
#[derive(Debug)]
pub(crate) struct Ledger {
    limits: BudgetLimits,
    connections: AtomicU32,
    sni_refused: AtomicU32,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
    failed: OnceLock<FailedSide>,
    budget_hit: OnceLock<Budget>,
    was_down: AtomicBool,
}

/// Why a relay ended before both directions had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    By(FailedSide),
    /// The check's bytes are used up.
    OverBudget,
}

impl Ledger {
    pub(crate) fn new(limits: BudgetLimits) -> Self {
        Self {
            limits,
            connections: AtomicU32::new(0),
            sni_refused: AtomicU32::new(0),
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
            failed: OnceLock::new(),
            budget_hit: OnceLock::new(),
            was_down: AtomicBool::new(false),
        }
    }

    /// A connection reached the host.
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was dropped because of its ClientHello.
    pub(crate) fn refused_hello(&self) {
        self.sni_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// One side broke the connection. The first side is kept.
    pub(crate) fn failed(&self, side: FailedSide) {
        self.failed.get_or_init(|| side);
    }

    /// A limit was reached. The first one is kept.
    pub(crate) fn hit(&self, budget: Budget) {
        self.budget_hit.get_or_init(|| budget);
    }

    /// The pinned address had no route for a moment.
    pub(crate) fn was_down(&self) {
        self.was_down.store(true, Ordering::Relaxed);
    }

    pub(crate) fn account(&self) -> Account {
        Account {
            connections: self.connections.load(Ordering::Relaxed),
            bytes_up: self.bytes_up.load(Ordering::Relaxed),
            bytes_down: self.bytes_down.load(Ordering::Relaxed),
            sni_refused: self.sni_refused.load(Ordering::Relaxed),
            failed: self.failed.get().copied().unwrap_or(FailedSide::None),
            budget_hit: self.budget_hit.get().copied(),
            up: !self.was_down.load(Ordering::Relaxed),
        }
    }

    fn charge(&self, direction: Direction, bytes: usize) -> Result<(), Broken> {
        let (used, max) = match direction {
            Direction::Up => (&self.bytes_up, self.limits.bytes_up_max),
            Direction::Down => (&self.bytes_down, self.limits.bytes_down_max),
        };
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > max {
            // Bytes that are not passed on are not in the account either.
            used.fetch_sub(bytes, Ordering::Relaxed);
            self.hit(Budget::Bytes);
            return Err(Broken::OverBudget);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Up,
    Down,
}

/// Passes `hello` on, and then everything until both directions have ended or one has broken.
///
/// # Errors
/// Returns the side that broke the connection, or that the budget is used up. The ledger has it
/// too.
pub(crate) async fn relay<C, H>(
    checker: &mut C,
    host: &mut H,
    hello: &[u8],
    ledger: &Ledger,
) -> Result<(), Broken>
where
    C: AsyncRead + AsyncWrite + Unpin,
    H: AsyncRead + AsyncWrite + Unpin,
{
    let (from_checker, to_checker) = tokio::io::split(checker);
    let (from_host, to_host) = tokio::io::split(host);
    let checker_ended = AtomicBool::new(false);
    let up = async {
        let mut to_host = to_host;
        ledger.charge(Direction::Up, hello.len())?;
        let by_host = |_broken: io::Error| Broken::By(FailedSide::Host);
        to_host.write_all(hello).await.map_err(by_host)?;
        pass(
            from_checker,
            FailedSide::Checker,
            to_host,
            FailedSide::Host,
            Direction::Up,
            ledger,
        )
        .await?;
        checker_ended.store(true, Ordering::Relaxed);
        Ok(())
    };
    let down = async {
        match pass(
            from_host,
            FailedSide::Host,
            to_checker,
            FailedSide::Checker,
            Direction::Down,
            ledger,
        )
        .await
        {
            // A checker that has all data closes the connection. A break caused by that is no
            // failure.
            Err(Broken::By(_)) if checker_ended.load(Ordering::Relaxed) => Ok(()),
            other => other,
        }
    };
    let ended = tokio::try_join!(up, down).map(|_| ());
    if let Err(Broken::By(side)) = ended {
        ledger.failed(side);
    }
    ended
}

async fn pass<R, W>(
    mut from: R,
    from_side: FailedSide,
    mut to: W,
    to_side: FailedSide,
    direction: Direction,
    ledger: &Ledger,
) -> Result<(), Broken>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0_u8; BUFFER_BYTES];
    loop {
        let by_source = |_broken: io::Error| Broken::By(from_side);
        let by_sink = |_broken: io::Error| Broken::By(to_side);
        let read = from.read(&mut buffer).await.map_err(by_source)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            // The other end may be gone already. That is no failure, because nothing is lost.
            to.shutdown().await.ok();
            return Ok(());
        }
        ledger.charge(direction, bytes.len())?;
        to.write_all(bytes).await.map_err(by_sink)?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::duplex;

    use super::*;

    fn ledger(bytes_up_max: u64, bytes_down_max: u64) -> Ledger {
        Ledger::new(BudgetLimits {
            bytes_up_max,
            bytes_down_max,
            connections_max: 1,
            time_max: Duration::from_secs(1),
            unused_max: Duration::from_secs(1),
        })
    }

    #[tokio::test]
    async fn a_half_closed_connection_still_brings_the_answer() {
        let (mut checker, mut checker_end) = duplex(64);
        let (mut host, mut host_end) = duplex(64);
        let ledger = ledger(100, 100);
        let far_ends = async {
            checker.write_all(b" world").await.unwrap();
            checker.shutdown().await.unwrap();
            let mut asked = String::new();
            host.read_to_string(&mut asked).await.unwrap();
            host.write_all(b"answer").await.unwrap();
            host.shutdown().await.unwrap();
            let mut answer = String::new();
            checker.read_to_string(&mut answer).await.unwrap();
            (asked, answer)
        };
        let (ended, texts) = tokio::join!(
            relay(&mut checker_end, &mut host_end, b"hello", &ledger),
            far_ends
        );
        assert_eq!(ended, Ok(()));
        assert_eq!(texts, ("hello world".to_owned(), "answer".to_owned()));
        let account = ledger.account();
        assert_eq!((account.bytes_up, account.bytes_down), (11, 6));
        assert_eq!(
            (account.failed, account.budget_hit),
            (FailedSide::None, None)
        );
    }

    #[tokio::test]
    async fn bytes_beyond_the_budget_are_not_passed_on() {
        let (_checker, mut checker_end) = duplex(64);
        let (mut host, mut host_end) = duplex(64);
        let ledger = ledger(100, 10);
        host.write_all(b"0123456789x").await.unwrap();
        let ended = relay(&mut checker_end, &mut host_end, b"", &ledger).await;
        assert_eq!(ended, Err(Broken::OverBudget));
        assert_eq!(ledger.account().budget_hit, Some(Budget::Bytes));
        assert!(ledger.account().bytes_down <= 10);
    }

    #[tokio::test]
    async fn whoever_broke_off_first_is_named() {
        let (mut checker, mut checker_end) = duplex(64);
        let (host, mut host_end) = duplex(64);
        let ledger = ledger(100, 100);
        drop(host);
        checker.write_all(b"nobody reads this").await.unwrap();
        let ended = relay(&mut checker_end, &mut host_end, b"", &ledger).await;
        assert_eq!(ended, Err(Broken::By(FailedSide::Host)));
        ledger.failed(FailedSide::Checker);
        assert_eq!(ledger.account().failed, FailedSide::Host);
    }

    #[tokio::test]
    async fn a_checker_that_leaves_early_is_no_failure() {
        let (checker, mut checker_end) = duplex(64);
        let (mut host, mut host_end) = duplex(64);
        let ledger = ledger(100, 100);
        drop(checker);
        host.write_all(b"nobody reads this").await.unwrap();
        let ended = relay(&mut checker_end, &mut host_end, b"", &ledger).await;
        assert_eq!(ended, Ok(()));
        assert_eq!(ledger.account().failed, FailedSide::None);
    }
}
