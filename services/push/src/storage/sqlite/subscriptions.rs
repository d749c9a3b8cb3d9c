//! Tables of the census in the push service's file: its keys and its subscriptions.

use rusqlite::{OptionalExtension as _, Row, params};

use crate::notify::{Filter, Subscription};
use crate::storage::StorageError;

use super::Sqlite;

/// Most confirmed subscriptions. Each takes some 400 bytes.
pub const SUBSCRIPTIONS_MAX: u32 = 100_000;

/// Most subscriptions that wait for their confirmation: those of a quarter of an hour at the pace
/// of messages to one push service.
const UNCONFIRMED_MAX: u32 = 10_000;

/// Most subscriptions per endpoint: a person follows some hosts and some software.
const OF_ENDPOINT_MAX: u32 = 100;

const PAGE: u32 = 500;

/// Name under which the section of the last notification is stored.
pub const LAST_TOLD: &str = "last_told";

/// The same of the newest section, of which subscribers may not be notified yet.
pub const NEWEST: &str = "newest";

impl Sqlite {
    /// A named secret, which is made and stored at the first call.
    pub fn secret(&self, name: &str, new: &[u8]) -> Result<Vec<u8>, StorageError> {
        self.write(|t| {
            t.prepare_cached(
                "INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )?
            .execute(params![name, new])?;
            t.prepare_cached("SELECT value FROM secrets WHERE name = ?1")?
                .query_row([name], |row| row.get(0))
        })
    }

    pub fn replace_secret(&self, name: &str, value: &[u8]) -> Result<(), StorageError> {
        let sql = "INSERT OR REPLACE INTO secrets (name, value) VALUES (?1, ?2)";
        self.change(sql, params![name, value]).map(|_replaced| ())
    }

    /// Adds a subscription, or replaces the keys of the one with its endpoint and filter; false if
    /// there are too many others, in total or of this endpoint.
    ///
    /// With `unconfirmed_until_s`, in seconds since 1970, it ends at that time unless its push
    /// service accepts a message before, or has accepted one for this endpoint already. If too many
    /// wait for that, the oldest one ends.
    pub fn subscribe(
        &self,
        subscription: &Subscription,
        unconfirmed_until_s: Option<i64>,
    ) -> Result<bool, StorageError> {
        let filter = serde_json::to_string(&subscription.filter).map_err(StorageError::new)?;
        self.write(|t| {
            let added = t
                .prepare_cached(
                    "INSERT INTO subscriptions (endpoint, filter, public_key, secret, owed, owed_until_s) \
                     SELECT ?1, ?2, ?3, ?4, iif(?7 IS NULL OR EXISTS (SELECT 1 FROM subscriptions \
                     WHERE endpoint = ?1 AND owed IS NOT 'confirmation'), NULL, 'confirmation'), coalesce(?7, 0) \
                     WHERE EXISTS (SELECT 1 FROM subscriptions WHERE endpoint = ?1 AND filter = ?2) \
                     OR ((SELECT confirmed FROM subscription_counts) < ?5 \
                     AND (SELECT count(*) FROM subscriptions WHERE endpoint = ?1) < ?6) \
                     ON CONFLICT DO UPDATE SET public_key = excluded.public_key, secret = excluded.secret",
                )?
                .execute(params![
                    subscription.endpoint,
                    filter,
                    subscription.public_key,
                    subscription.secret,
                    SUBSCRIPTIONS_MAX,
                    OF_ENDPOINT_MAX,
                    unconfirmed_until_s,
                ])?;
            t.prepare_cached(
                "DELETE FROM subscriptions WHERE id = (SELECT id FROM subscriptions \
                 WHERE owed = 'confirmation' ORDER BY owed_until_s LIMIT 1) \
                 AND (SELECT unconfirmed FROM subscription_counts) > ?1",
            )?
            .execute([UNCONFIRMED_MAX])?;
            Ok(added > 0)
        })
    }

    /// Removes an endpoint's subscription with this filter, or all of its subscriptions.
    pub fn unsubscribe(
        &self,
        endpoint: &str,
        filter: Option<&Filter>,
    ) -> Result<bool, StorageError> {
        let filter = filter.map(serde_json::to_string).transpose();
        let filter = filter.map_err(StorageError::new)?;
        let sql = "DELETE FROM subscriptions WHERE endpoint = ?1 AND (?2 IS NULL OR filter = ?2)";
        self.change(sql, params![endpoint, filter])
    }

    /// Ends the subscriptions that were not confirmed in time.
    pub fn end_unconfirmed(&self, now_s: i64) -> Result<(), StorageError> {
        let sql = "DELETE FROM subscriptions WHERE owed = 'confirmation' AND owed_until_s <= ?1";
        self.change(sql, params![now_s]).map(|_ended| ())
    }

    /// Some confirmed subscriptions after an id, with their ids, in order.
    pub fn subscriptions_after(
        &self,
        after: i64,
    ) -> Result<Vec<(i64, Subscription)>, StorageError> {
        self.read(|c| {
            let mut statement = c.prepare_cached(
                "SELECT id, endpoint, filter, public_key, secret FROM subscriptions \
                 WHERE id > ?1 AND owed IS NOT 'confirmation' ORDER BY id LIMIT ?2",
            )?;
            let rows = statement.query_map(params![after, PAGE], |row| {
                Ok((row.get(0)?, subscription(row)?))
            })?;
            rows.collect()
        })
    }

    pub fn last_told(&self) -> Result<Option<String>, StorageError> {
        self.section(LAST_TOLD)
    }

    /// The section that is stored under this name.
    pub fn section(&self, name: &str) -> Result<Option<String>, StorageError> {
        self.read(|c| {
            c.prepare_cached("SELECT value FROM secrets WHERE name = ?1")?
                .query_row([name], |row| row.get::<_, Vec<u8>>(0))
                .optional()
        })
        .map(|value| value.and_then(|bytes| String::from_utf8(bytes).ok()))
    }
}

/// The subscription in a row's second to fifth column: endpoint, filter, public key, secret.
pub(super) fn subscription(row: &Row<'_>) -> rusqlite::Result<Subscription> {
    let filter: String = row.get(2)?;
    Ok(Subscription {
        endpoint: row.get(1)?,
        // We wrote it; an unreadable one matches nothing.
        filter: serde_json::from_str(&filter).unwrap_or_else(|_| Filter::Host(String::new())),
        public_key: row.get(3)?,
        secret: row.get(4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::CONFIRMATION;
    use super::super::tests::{Place, subscription};
    use super::*;

    #[test]
    fn a_secret_is_made_once_and_kept() {
        let place = Place::new();
        assert_eq!(place.open().secret("key", b"first").unwrap(), b"first");
        let storage = place.open();
        assert_eq!(storage.secret("key", b"second").unwrap(), b"first");
        storage.replace_secret("key", b"third").unwrap();
        assert_eq!(storage.secret("key", b"fourth").unwrap(), b"third");
        assert_eq!(storage.last_told().unwrap(), None);
        storage.replace_secret("last_told", b"aa").unwrap();
        assert_eq!(storage.last_told().unwrap().as_deref(), Some("aa"));
    }

    #[test] // S30
    fn endpoint_has_a_limit_of_subscriptions() {
        let place = Place::new();
        let storage = place.open();
        let of_host = |endpoint, host: u32| {
            let filter = Filter::Host(format!("{host}.example"));
            storage
                .subscribe(&subscription(endpoint, filter), None)
                .unwrap()
        };
        for host in 0..OF_ENDPOINT_MAX {
            assert!(of_host("https://push/1", host));
        }
        assert!(!of_host("https://push/1", OF_ENDPOINT_MAX));
        assert!(of_host("https://push/1", 0), "it is there already");
        assert!(of_host("https://push/2", OF_ENDPOINT_MAX));
    }

    #[test]
    fn subscriptions_are_kept_until_they_end() {
        let place = Place::new();
        let storage = place.open();
        let host = Filter::Host("a.example".to_owned());
        let all = [
            subscription("https://push/1", Filter::All),
            subscription("https://push/1", host.clone()),
            subscription("https://push/2", Filter::Software("mastodon".to_owned())),
        ];
        for one in all.iter().chain(&all) {
            assert!(storage.subscribe(one, None).unwrap());
        }
        let kept = |storage: &Sqlite| -> Vec<Subscription> {
            let page = storage.subscriptions_after(0).unwrap();
            page.into_iter().map(|(_, one)| one).collect()
        };
        assert_eq!(kept(&storage), all, "twice is once");
        assert!(storage.unsubscribe("https://push/1", Some(&host)).unwrap());
        assert!(!storage.unsubscribe("https://push/1", Some(&host)).unwrap());
        assert_eq!(kept(&storage), [all[0].clone(), all[2].clone()]);
        assert!(storage.unsubscribe("https://push/1", None).unwrap());
        assert_eq!(kept(&storage), [all[2].clone()]);
    }

    /// Confirmed and unconfirmed subscriptions, as they are counted.
    fn counts(storage: &Sqlite) -> (u32, u32) {
        let read = storage.read(|c| {
            let sql = "SELECT confirmed, unconfirmed FROM subscription_counts";
            c.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        });
        read.unwrap()
    }

    #[test] // S36
    fn a_subscription_counts_once_its_push_service_took_a_message() {
        let place = Place::new();
        let storage = place.open();
        let subscribe = |endpoint: &str, until_s| {
            let host = Filter::Host("a.example".to_owned());
            for filter in [Filter::All, host] {
                let one = subscription(endpoint, filter);
                assert!(storage.subscribe(&one, until_s).unwrap());
            }
        };
        subscribe("https://push/1", None);
        subscribe("https://push/2", Some(100));
        subscribe("https://push/3", Some(100));
        subscribe("https://push/4", Some(101));
        assert_eq!(counts(&storage), (2, 6));
        let kept = |storage: &Sqlite| storage.subscriptions_after(0).unwrap().len();
        assert_eq!(kept(&storage), 2, "the others get no list");
        // A list's message that was made before the endpoint subscribed confirms nothing.
        storage.enqueue(&[3], "s1", 200).unwrap();
        let accepted = (3, "https://push/2".to_owned());
        let gone = "https://push/3".to_owned();
        storage.settle(CONFIRMATION, &[accepted], &[gone]).unwrap();
        assert_eq!(counts(&storage), (4, 2), "all of the endpoint's");
        let ended = storage.unsubscribe("https://push/2", Some(&Filter::All));
        assert!(ended.unwrap());
        subscribe("https://push/2", Some(100));
        assert_eq!(counts(&storage), (4, 2), "a confirmed endpoint");
        storage.end_unconfirmed(100).unwrap();
        assert_eq!(counts(&storage), (4, 2));
        storage.end_unconfirmed(101).unwrap();
        assert_eq!((counts(&storage), kept(&storage)), ((4, 0), 4));
    }

    #[test] // S36
    fn too_many_unconfirmed_subscriptions_end_the_oldest() {
        let place = Place::new();
        let storage = place.open();
        let subscribe = |endpoint, until_s| {
            let one = subscription(endpoint, Filter::All);
            storage.subscribe(&one, until_s).unwrap()
        };
        let set = |confirmed: u32, unconfirmed: u32| {
            let sql = "UPDATE subscription_counts SET confirmed = ?1, unconfirmed = ?2";
            let set = storage.write(|t| t.execute(sql, [confirmed, unconfirmed]));
            set.unwrap();
        };
        assert!(subscribe("https://push/new", Some(101)));
        assert!(subscribe("https://push/old", Some(100)));
        set(0, UNCONFIRMED_MAX);
        assert!(subscribe("https://push/newest", Some(102)));
        assert_eq!(counts(&storage), (0, UNCONFIRMED_MAX));
        let pending = storage
            .pending(CONFIRMATION, "https://push", None, 0, 9)
            .unwrap();
        let ends = pending.iter().map(|pending| pending.until_s);
        assert_eq!(ends.collect::<Vec<_>>(), [101, 102]);
        set(SUBSCRIPTIONS_MAX, 0);
        assert!(!subscribe("https://push/1", None));
        assert!(!subscribe("https://push/1", Some(100)));
    }

    #[test]
    fn subscriptions_of_an_older_file_count() {
        let place = Place::new();
        let older = rusqlite::Connection::open(place.path()).unwrap();
        let first = include_str!("../../../migrations/0001_push.sql");
        let rows = "INSERT INTO subscriptions (endpoint, filter, public_key, secret, owed) \
                    VALUES ('a', '\"all\"', x'', x'', NULL), ('b', '\"all\"', x'', x'', 's1')";
        for sql in [first, rows, "PRAGMA user_version = 1"] {
            older.execute_batch(sql).unwrap();
        }
        drop(older);
        let storage = place.open();
        assert_eq!(counts(&storage), (2, 0));
        assert!(storage.unsubscribe("b", None).unwrap());
        assert_eq!(counts(&storage), (1, 0));
    }
}
