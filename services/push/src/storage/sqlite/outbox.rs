//! Unsent messages to other push services, so that a restart loses none.

use rusqlite::params;

use crate::notify::Subscription;
use crate::remote::Cursor;
use crate::storage::StorageError;

use super::Sqlite;
use super::subscriptions;

const PAGE: u32 = 500;

/// The section that a subscription is owed a message about while its push service has not accepted
/// one. No section has this digest. SQL has the text itself, for its indexes.
pub const CONFIRMATION: &str = "confirmation";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub id: i64,
    pub subscription: Subscription,
    /// When the message expires, in seconds since 1970.
    pub until_s: i64,
}

impl Sqlite {
    /// Records that these confirmed subscriptions are owed a message about a section, until a time
    /// in seconds since 1970, and none about another section.
    pub fn enqueue(&self, ids: &[i64], section: &str, until_s: i64) -> Result<(), StorageError> {
        self.write(|t| {
            let mut statement = t.prepare_cached(
                "UPDATE subscriptions SET owed = ?2, owed_until_s = ?3 \
                 WHERE id = ?1 AND owed IS NOT 'confirmation'",
            )?;
            for id in ids {
                statement.execute(params![id, section, until_s])?;
            }
            Ok(())
        })
    }

    /// Records that subscriptions that are still owed a message about an earlier section are owed
    /// one about this section, until the same time.
    pub fn carry_over(&self, section: &str) -> Result<(), StorageError> {
        self.write(|t| {
            t.prepare_cached(
                "UPDATE subscriptions SET owed = ?1 \
                 WHERE owed IS NOT NULL AND owed NOT IN (?1, 'confirmation')",
            )?
            .execute([section])?;
            Ok(())
        })
    }

    /// Some endpoints after a cursor that are owed a message about a section, with their positions,
    /// in order.
    pub fn pending_endpoints(
        &self,
        section: &str,
        after: &Cursor,
        now_s: i64,
    ) -> Result<Vec<Cursor>, StorageError> {
        self.read(|c| {
            let mut statement = c.prepare_cached(
                "SELECT endpoint, id FROM subscriptions \
                 WHERE owed = ?1 AND (endpoint, id) > (?2, ?3) AND owed_until_s > ?4 \
                 ORDER BY endpoint, id LIMIT ?5",
            )?;
            let rows = statement
                .query_map(params![section, after.0, after.1, now_s, PAGE], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            rows.collect()
        })
    }

    /// Some subscriptions after a cursor that are owed a message about a section and whose
    /// endpoints begin with an origin, in order.
    pub fn pending(
        &self,
        section: &str,
        origin: &str,
        after: Option<&Cursor>,
        now_s: i64,
        most: usize,
    ) -> Result<Vec<Pending>, StorageError> {
        let first = (format!("{origin}/"), 0);
        // The character after a slash: no endpoint of the origin comes after this.
        let end = format!("{origin}0");
        let (endpoint, id) = after.unwrap_or(&first);
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(|c| {
            let mut statement = c.prepare_cached(
                "SELECT id, endpoint, filter, public_key, secret, owed_until_s FROM subscriptions \
                 WHERE owed = ?1 AND (endpoint, id) > (?2, ?3) AND endpoint < ?4 \
                 AND owed_until_s > ?5 ORDER BY endpoint, id LIMIT ?6",
            )?;
            let rows =
                statement.query_map(params![section, endpoint, id, end, now_s, most], |row| {
                    Ok(Pending {
                        id: row.get(0)?,
                        subscription: subscriptions::subscription(row)?,
                        until_s: row.get(5)?,
                    })
                })?;
            rows.collect()
        })
    }

    /// Records that these subscriptions are no longer owed a message about a section, and removes
    /// all subscriptions of these endpoints. A confirmation is one of all of an endpoint's
    /// subscriptions.
    pub fn settle(
        &self,
        section: &str,
        told: &[(i64, String)],
        ended: &[String],
    ) -> Result<(), StorageError> {
        self.write(|t| {
            // Compared with the endpoint: an ended subscription's id may belong to another one by
            // now.
            let mut settle = t.prepare_cached(
                "UPDATE subscriptions SET owed = NULL WHERE endpoint = ?2 AND owed = ?3 \
                 AND (id = ?1 OR owed = 'confirmation')",
            )?;
            for (id, endpoint) in told {
                settle.execute(params![id, endpoint, section])?;
            }
            let mut end = t.prepare_cached("DELETE FROM subscriptions WHERE endpoint = ?1")?;
            for endpoint in ended {
                end.execute([endpoint])?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Place, subscription};
    use super::*;
    use crate::notify::Filter;

    const ORIGIN: &str = "https://push.example";

    fn subscribe(storage: &Sqlite, path: &str, filter: Filter) {
        let one = subscription(&format!("{ORIGIN}{path}"), filter);
        assert!(storage.subscribe(&one, None).unwrap());
    }

    /// Endpoints at an origin that are owed a message, without the origin.
    fn pending(storage: &Sqlite, section: &str, after: Option<&Cursor>, now_s: i64) -> Vec<String> {
        let pending = storage.pending(section, ORIGIN, after, now_s, 100).unwrap();
        pending
            .into_iter()
            .map(|pending| pending.subscription.endpoint.replace(ORIGIN, ""))
            .collect()
    }

    #[test]
    fn what_is_owed_outlives_a_restart_and_is_settled_one_by_one() {
        let place = Place::new();
        let storage = place.open();
        let elsewhere = ["0.evil.example/x", ".evil.example/x", "-x/y"];
        for path in ["/c", "/a", "/b"].iter().chain(&elsewhere) {
            subscribe(&storage, path, Filter::All);
        }
        subscribe(&storage, "/a", Filter::Host("a.example".to_owned()));
        assert_eq!(pending(&storage, "s1", None, 0), [""; 0]);
        storage.enqueue(&[1, 2, 3, 4, 5, 6, 7], "s1", 100).unwrap();
        // A reader that subscribes again is owed it nevertheless.
        subscribe(&storage, "/c", Filter::All);
        drop(storage);
        let storage = place.open();
        assert_eq!(pending(&storage, "s1", None, 99), ["/a", "/a", "/b", "/c"]);
        assert_eq!(pending(&storage, "s1", None, 100), [""; 0]);
        assert_eq!(pending(&storage, "s2", None, 0), [""; 0]);
        let first = (format!("{ORIGIN}/a"), 2);
        assert_eq!(pending(&storage, "s1", Some(&first), 0), ["/a", "/b", "/c"]);
        let all = storage
            .pending_endpoints("s1", &(String::new(), 0), 0)
            .unwrap();
        assert_eq!(all.len(), 7);
        let last = storage.pending_endpoints("s1", &all[5], 0).unwrap();
        assert_eq!(last, [all[6].clone()]);

        let at = |path: &str| format!("{ORIGIN}{path}");
        // Ended subscriptions have no filter: all of an endpoint are gone.
        storage.settle("s1", &[(3, at("/b"))], &[at("/a")]).unwrap();
        assert_eq!(pending(&storage, "s1", None, 0), ["/c"]);
        // Neither an older section's answer nor another endpoint's settles it.
        storage.settle("s0", &[(1, at("/c"))], &[]).unwrap();
        storage.settle("s1", &[(1, at("/a"))], &[]).unwrap();
        assert_eq!(pending(&storage, "s1", None, 0), ["/c"]);
        storage.enqueue(&[1], "s2", 100).unwrap();
        assert_eq!(pending(&storage, "s1", None, 0), [""; 0]);
        assert_eq!(pending(&storage, "s2", None, 0), ["/c"]);
        storage.carry_over("s3").unwrap();
        assert_eq!(pending(&storage, "s3", None, 99), ["/c"]);
        assert_eq!(pending(&storage, "s3", None, 100), [""; 0]);
        let left = storage.subscriptions_after(0).unwrap();
        assert_eq!(left.len(), 5, "{left:?}");
    }

    #[test]
    fn what_is_owed_is_found_by_its_index() {
        let place = Place::new();
        let storage = place.open();
        let plan: Vec<String> = storage
            .read(|c| {
                let mut statement = c.prepare(
                    "EXPLAIN QUERY PLAN SELECT id FROM subscriptions \
                     WHERE owed = 'x' AND (endpoint, id) > ('a', 1) AND endpoint < 'b' \
                     AND owed_until_s > 1 ORDER BY endpoint, id LIMIT 100",
                )?;
                let rows = statement.query_map([], |row| row.get(3))?;
                rows.collect()
            })
            .unwrap();
        assert_eq!(plan.len(), 1, "{plan:?}");
        let is_indexed = plan[0].contains("SEARCH subscriptions USING INDEX subscriptions_owed");
        assert!(is_indexed, "{plan:?}");
    }
}
