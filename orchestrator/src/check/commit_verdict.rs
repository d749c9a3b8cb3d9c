//! Steps 5 and 6 of 7: `transition` applies the verdict to the host's record, and the writer
//! commits the change in one transaction.
//!
//! The verdict is confirmed, and the record is the one taken when the check began. The target of a
//! move becomes a candidate. While a host is in flight, only an opt-out or a moderator's hold
//! changes its row. The store looks for these in the same transaction, and they win (invariant I7).

use census::state::{Record, Verdict};
use census::transition::transition;
use store::StoreError;

use crate::check::services::Services;

/// Commits a verdict about the record's host.
/// The store fails; the host then stays in flight until it is released.
pub async fn commit_verdict(
    record: &Record,
    verdict: &Verdict,
    services: &Services,
) -> Result<(), StoreError> {
    let now = services.now();
    let mut change = transition(
        record,
        verdict,
        now,
        services.random.jitter(),
        services.calendar,
    );
    // Before the verdict: after a crash between the two, the host is checked again. In the other
    // order, its target would be lost.
    if let Some(target) = change.candidate.take()
        && let Err(error) = services.learn(vec![target.clone()], &record.host).await
    {
        // The verdict matters more than the target, which is admitted when another host names it.
        tracing::warn!(host = %record.host, %target, %error, "its redirect target could not be admitted");
    }
    let settled = services.writer.commit(change).await?;
    if settled.overruled {
        tracing::info!(host = %record.host, "it was opted out while it was checked: the verdict is discarded");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use census::state::State;
    use protocol::Host;
    use store::Store;

    use super::*;
    use crate::admit::gate::tests::with_rules;
    use crate::check::services::tests::services;

    async fn moved(rules: &str, target: &str) -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = store::open(&directory.path().join("census.db")).unwrap();
        let services = Services {
            gate: with_rules(&store, rules),
            ..services(&store, Path::new("/nonexistent"))
        };
        let (host, now) = (Host::parse("old.net").unwrap(), services.now());
        services
            .writer
            .add_now(vec![host.clone()], now)
            .await
            .unwrap();
        let taken =
            services
                .writer
                .take_one(&host, now, services.random.jitter(), services.calendar);
        let record = taken.await.unwrap().unwrap().record;
        let to = Host::parse(target).unwrap();
        commit_verdict(&record, &Verdict::Moved { to }, &services)
            .await
            .unwrap();
        (directory, store)
    }

    /// Whether the target was admitted. Asserts that the verdict was committed.
    async fn comes_in(rules: &str, target: &str) -> bool {
        let (_directory, store) = moved(rules, target).await;
        let reader = store.reader().unwrap();
        let stored = reader
            .record(&Host::parse("old.net").unwrap())
            .unwrap()
            .unwrap();
        assert!(
            matches!(stored.record.state, State::Moving { .. }),
            "the verdict is lost"
        );
        assert!(!stored.in_flight);
        let target = reader.record(&Host::parse(target).unwrap()).unwrap();
        assert!(
            target
                .as_ref()
                .is_none_or(|target| target.record.state == State::Discovered)
        );
        target.is_some()
    }

    #[tokio::test]
    async fn a_target_comes_in_through_the_gate_and_its_verdict_whatever_the_gate_says() {
        assert!(comes_in("public default 1", "new.net").await);
        assert!(!comes_in("domain new.net 0\npublic default 1", "a.new.net").await);
        assert!(!comes_in("", "new.net").await);
        assert!(
            !comes_in("public default 1", "co.uk").await,
            "no name for the census"
        );
    }
}
