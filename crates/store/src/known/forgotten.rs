//! The table `forgotten`: names that were never alive for a year, kept as hashes of eight bytes.
//!
//! Holds at most about [`FORGOTTEN_MAX`] names. Each further name replaces a pseudo-random one,
//! which counts as a new name when it is next mentioned. A pair of names has the same hash with a
//! probability of 2⁻⁶⁴. A name added by hand comes back in any case.

use std::hash::Hasher as _;

use protocol::Host;
use rusqlite::Connection;
use siphasher::sip::SipHasher13;

use crate::db::error::StoreError;

pub(crate) type Key = [u8; 16];

/// Most names, about 180 MB. Half a year of a flood that exhausts the daily total of
/// [`admission::Limits::ORDINARY`] leads to this number.
const FORGOTTEN_MAX: i64 = 10_000_000;

/// Number of equal spans of hashes. Hashes are evenly distributed, so the count of one span shows
/// the count of all.
const SPANS: i64 = 4096;

/// Hashes per span: 2⁶⁴ divided by [`SPANS`].
const SPAN: i64 = 1 << 52;

pub(crate) const KEY: &str = "SELECT key FROM forgotten_key WHERE id = 1";
pub(crate) const IS_FORGOTTEN: &str = "SELECT EXISTS (SELECT 1 FROM forgotten WHERE hash = ?1)";
pub(crate) const FORGET: &str =
    "INSERT INTO forgotten (hash) VALUES (?1) ON CONFLICT (hash) DO NOTHING";
pub(crate) const COUNT_SPAN: &str = "SELECT count(*) FROM forgotten WHERE hash BETWEEN ?1 AND ?2";
/// Deletes the first hash of the span, except for the new one.
pub(crate) const DROP_ONE: &str = "DELETE FROM forgotten WHERE hash = \
     (SELECT hash FROM forgotten WHERE hash BETWEEN ?1 AND ?2 AND hash <> ?3 ORDER BY hash LIMIT 1)";
pub(crate) const REMEMBER: &str = "DELETE FROM forgotten WHERE hash = ?1";
/// The foreign key deletes the history too.
pub(crate) const DELETE: &str = "DELETE FROM hosts WHERE id = ?1";

/// Whether the name was forgotten because it was never alive for a year.
pub(crate) fn is_forgotten(connection: &Connection, host: &Host) -> Result<bool, StoreError> {
    has(connection, &key(connection)?, host)
}

/// As [`is_forgotten`], with a key that was read before.
pub(crate) fn has(connection: &Connection, key: &Key, host: &Host) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(IS_FORGOTTEN)?
        .query_row([hash_by(key, host.as_str())], |row| row.get(0))?)
}

/// Deletes a host's row and keeps only a hash of its name.
pub(crate) fn forget(connection: &Connection, id: i64, host: &Host) -> Result<(), StoreError> {
    let hash = hash(connection, host)?;
    connection.prepare_cached(DELETE)?.execute([id])?;
    connection.prepare_cached(FORGET)?.execute([hash])?;
    keep_few(connection, hash, FORGOTTEN_MAX)
}

/// Drops another hash if there are more than `most` names, judging by the span of the `new` hash.
fn keep_few(connection: &Connection, new: i64, most: i64) -> Result<(), StoreError> {
    let first = new - new.rem_euclid(SPAN);
    let last = first + (SPAN - 1);
    let count: i64 = connection
        .prepare_cached(COUNT_SPAN)?
        .query_row([first, last], |row| row.get(0))?;
    if count > most / SPANS {
        connection
            .prepare_cached(DROP_ONE)?
            .execute([first, last, new])?;
    }
    Ok(())
}

/// Removes a name from the forgotten ones, so that it can be added again.
pub(crate) fn remember(connection: &Connection, host: &Host) -> Result<(), StoreError> {
    let hash = hash(connection, host)?;
    connection.prepare_cached(REMEMBER)?.execute([hash])?;
    Ok(())
}

fn hash(connection: &Connection, host: &Host) -> Result<i64, StoreError> {
    Ok(hash_by(&key(connection)?, host.as_str()))
}

/// The key of the hash, drawn when the database was created.
pub(crate) fn key(connection: &Connection) -> Result<Key, rusqlite::Error> {
    connection
        .prepare_cached(KEY)?
        .query_row([], |row| row.get(0))
}

/// A name's hash. It is stored, so neither the function nor the key may ever change.
pub(crate) fn hash_by(key: &Key, name: &str) -> i64 {
    let mut hasher = SipHasher13::new_with_key(key);
    hasher.write(name.as_bytes());
    hasher.finish().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::migrate;

    fn hashes(connection: &Connection) -> Vec<i64> {
        let mut all = connection
            .prepare("SELECT hash FROM forgotten ORDER BY hash")
            .unwrap();
        let all = all.query_map([], |row| row.get(0)).unwrap();
        all.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn forgotten_names_are_bounded_and_the_newest_stays() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::SCHEMA.to_latest(&mut connection).unwrap();
        // Two hashes per span.
        let most = 2 * SPANS;
        let ends = [i64::MIN, -SPAN, 0, i64::MAX - SPAN + 1];
        for first in ends {
            for hash in [first + 7, first, first + (SPAN - 1), first + 5] {
                connection.execute(FORGET, [hash]).unwrap();
                keep_few(&connection, hash, most).unwrap();
                assert!(hashes(&connection).contains(&hash));
            }
        }
        let kept = hashes(&connection);
        assert_eq!(kept.len(), 2 * ends.len(), "{kept:?}");
        let span = |hash: &i64| hash.div_euclid(SPAN);
        for pair in kept.chunks(2) {
            assert_eq!(span(&pair[0]), span(&pair[1]), "{kept:?}");
        }
    }
}
