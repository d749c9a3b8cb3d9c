//! Step 1 of 7: host rows and the clock → hosts to check.
//!
//! In: how much room there is. Out: the hosts that have been due longest, each already marked in flight and given its ordinary next time, in one
//! write before its check starts, so that no crash can make a host loop. Refused: more than there is room for.

use std::time::Duration;

use census::time::Timestamp;
use store::{Store, StoreError, Taken};

use crate::tools::Tools;

/// How long the answer "nothing is due" is trusted: candidates come in while checks run, and some of them are due at once.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Knows when it is worth asking the store again.
#[derive(Debug)]
pub struct Due {
    look_at: Timestamp,
}

impl Default for Due {
    fn default() -> Self {
        Self::new()
    }
}

impl Due {
    /// Asks at once.
    pub fn new() -> Self {
        Self {
            look_at: Timestamp(i64::MIN),
        }
    }

    /// When [`Due::take`] is worth calling again.
    pub fn look_at(&self) -> Timestamp {
        self.look_at
    }

    /// Something may have become due.
    pub fn poke(&mut self) {
        self.look_at = Timestamp(i64::MIN);
    }

    /// Takes the hosts that have been due longest, at most `room`.
    ///
    /// # Errors
    /// When the store fails; nothing is in flight then that was not before.
    pub async fn take(
        &mut self,
        room: u32,
        tools: &Tools,
        store: &Store,
    ) -> Result<Vec<Taken>, StoreError> {
        let now = tools.now();
        // A clock that was set back must not make the daemon sleep until it is where it was.
        let looks_far_ahead = self.look_at > now.plus(LOOK_AGAIN_AFTER);
        if room == 0 || (now < self.look_at && !looks_far_ahead) {
            return Ok(Vec::new());
        }
        let taken = tools
            .writer
            .take_due(now, room, tools.dice.jitters(room), tools.calendar)
            .await?;
        if u32::try_from(taken.len()).unwrap_or(u32::MAX) < room {
            let next = next_due(store).await?.unwrap_or(now.plus(LOOK_AGAIN_AFTER));
            self.look_at = next.min(now.plus(LOOK_AGAIN_AFTER));
        }
        Ok(taken)
    }
}

async fn next_due(store: &Store) -> Result<Option<Timestamp>, StoreError> {
    let reader = store.reader()?;
    tokio::task::spawn_blocking(move || reader.next_due())
        .await
        .map_err(|_panicked| StoreError::Closed)?
}
