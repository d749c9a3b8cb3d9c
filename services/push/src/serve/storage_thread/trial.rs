//! Whether the storage works: it is written for a trial.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::storage::Condition;

use super::StorageThread;

/// Everybody gets the result of a trial that is not older.
const TRIAL_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(in crate::serve) struct Trial(Mutex<Option<(Instant, Option<Condition>)>>);

impl Trial {
    /// The storage's condition a moment ago; `None` if it could not be written.
    pub(in crate::serve) async fn condition(
        &self,
        storage: &StorageThread,
        now_ms: i64,
    ) -> Option<Condition> {
        let mut last = self.0.lock().await;
        if let Some((when, condition)) = *last
            && when.elapsed() < TRIAL_EVERY
        {
            return condition;
        }
        let tried = storage.call(move |storage| storage.try_write(now_ms));
        let condition = tried.await.ok();
        *last = Some((Instant::now(), condition));
        condition
    }
}
