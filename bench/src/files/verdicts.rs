//! Writes verdicts while a set is published.

use std::convert::Infallible;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use census::class::PerClass;
use census::state::Verdict;
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::transition;
use protocol::Private;
use store::Store;

/// The results of the verdicts.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    written: u32,
    slowest: Duration,
}

impl Verdicts {
    /// Takes a due host and commits its verdict, this many times a second. Delayed verdicts are not
    /// caught up.
    pub(crate) async fn write(
        &mut self,
        store: &Store,
        now: Timestamp,
        a_second: u32,
    ) -> Result<Infallible> {
        let Some(pause) = Duration::from_secs(1).checked_div(a_second) else {
            return std::future::pending().await;
        };
        let mut turn = tokio::time::interval(pause);
        turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let writer = store.writer();
        loop {
            turn.tick().await;
            let start = Instant::now();
            let wanted = PerClass::each(|_class| 1);
            let taken = writer.take_due(now, wanted, vec![Jitter(0)], Calendar::REAL);
            for one in taken.await? {
                let alive = Verdict::Alive {
                    software: "software-1".to_owned(),
                    version: Some("5.0".to_owned()),
                    private: Private::No,
                    open_registrations: None,
                };
                let change = transition(&one.record, &alive, now, Jitter(0), Calendar::REAL);
                writer.commit(change).await?;
                self.written += 1;
            }
            self.slowest = self.slowest.max(start.elapsed());
        }
    }
}

impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { written, slowest } = self;
        write!(
            f,
            "{written} verdicts meanwhile, the slowest took {} ms",
            slowest.as_millis()
        )
    }
}
