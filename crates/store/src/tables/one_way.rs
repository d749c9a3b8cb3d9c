//! The table `one_way`: hosts that respond by one of two ways out and fail by the other.

use census::time::Timestamp;
use protocol::Host;
use protocol::egress::Way;
use rusqlite::{OptionalExtension as _, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queue::handle::Writer;

/// A host counts as responding by one way only from the second time in a row: it may have been down
/// for the moment of the first look.
const TIMES_MIN: u32 = 2;

pub(crate) const PUT: &str = "INSERT INTO one_way (host_id, way, times, since) SELECT id, ?2, 1, ?3 FROM hosts WHERE name = ?1 \
     ON CONFLICT (host_id) DO UPDATE SET since = iif(way = excluded.way, since, excluded.since), \
     times = iif(way = excluded.way, times + 1, 1), way = excluded.way";

pub(crate) const CLEAR: &str =
    "DELETE FROM one_way WHERE host_id = (SELECT id FROM hosts WHERE name = ?1) AND way <> ?2";

pub(crate) const FIND: &str = "SELECT way, one_way.since FROM one_way JOIN hosts ON id = host_id WHERE name = ?1 AND times >= ?2";

pub(crate) const COUNT: &str = "SELECT count(*) FROM one_way WHERE way = ?1 AND times >= ?2";

pub(crate) const FORGET: &str = "DELETE FROM one_way";

impl Writer {
    /// Forgets by which way hosts respond: there is no second one any more.
    pub async fn forget_ways(&self) -> Result<(), StoreError> {
        self.call(|c| {
            c.prepare_cached(FORGET)?.execute([])?;
            Ok(())
        })
        .await
    }

    /// Notes that a host has just responded by this way; `alone` if it had failed by the other one
    /// before.
    /// Fails on a database error; what was remembered before is kept.
    pub async fn remember_way(
        &self,
        host: &Host,
        by: Way,
        alone: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (host, way) = (host.clone(), by.as_str());
        self.call(move |c| {
            if alone {
                let row = params![host.as_str(), way, now.0];
                c.prepare_cached(PUT)?.execute(row)?;
            } else {
                let row = params![host.as_str(), way];
                c.prepare_cached(CLEAR)?.execute(row)?;
            }
            Ok(())
        })
        .await
    }
}

impl Reader {
    /// The only way by which a host responds, and since when. `None` if it responds by both, or if
    /// there is only one.
    pub fn only_way(&self, host: &Host) -> Result<Option<(Way, Timestamp)>, StoreError> {
        let mut statement = self.connection().prepare_cached(FIND)?;
        let found: Option<(String, i64)> = statement
            .query_row(params![host.as_str(), TIMES_MIN], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        Ok(found.and_then(|(word, since)| {
            let way = Way::ALL.into_iter().find(|way| way.as_str() == word)?;
            Some((way, Timestamp(since)))
        }))
    }

    /// Number of hosts that respond by this way only.
    pub fn only_by(&self, way: Way) -> Result<u32, StoreError> {
        let mut statement = self.connection().prepare_cached(COUNT)?;
        Ok(statement.query_row(params![way.as_str(), TIMES_MIN], |row| row.get(0))?)
    }
}

#[cfg(test)]
mod tests {
    use kit::numbered;

    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    #[tokio::test]
    async fn a_host_that_fails_by_one_way_is_counted_from_the_second_time() {
        let directory = tempfile::tempdir().unwrap();
        let store = crate::open(&directory.path().join("census.db")).unwrap();
        let (writer, reader) = (store.writer(), store.reader().unwrap());
        let host = numbered(1);
        writer.add_now(vec![host.clone()], NOW).await.unwrap();
        let only = || reader.only_way(&host).unwrap();
        for (alone, by, expect) in [
            (true, Way::Second, None),
            (true, Way::Second, Some((Way::Second, NOW))),
            (false, Way::Second, Some((Way::Second, NOW))),
            (false, Way::First, None),
            (true, Way::Second, None),
            (true, Way::First, None),
            (true, Way::First, Some((Way::First, NOW))),
        ] {
            writer.remember_way(&host, by, alone, NOW).await.unwrap();
            assert_eq!(only(), expect, "{alone} {by:?}");
        }
        assert_eq!(reader.only_by(Way::First).unwrap(), 1);
        assert_eq!(reader.only_by(Way::Second).unwrap(), 0);
        writer.forget_ways().await.unwrap();
        assert_eq!(only(), None, "there is one way again");
    }
}
