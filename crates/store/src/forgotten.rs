//! The table `forgotten`: names that never lived for a year, eight bytes each.
//!
//! In: names. Out: whether one was forgotten. A wrong yes has the odds of one in 2⁶⁴ a pair of names; a name added by hand comes back all the same.

use std::hash::Hasher as _;

use protocol::Host;
use rusqlite::Connection;
use siphasher::sip::SipHasher13;

use crate::StoreError;

/// By which names are hashed.
pub(crate) type Key = [u8; 16];

pub(crate) const KEY: &str = "SELECT key FROM forgotten_key WHERE id = 1";
pub(crate) const IS_FORGOTTEN: &str = "SELECT EXISTS (SELECT 1 FROM forgotten WHERE hash = ?1)";
pub(crate) const FORGET: &str =
    "INSERT INTO forgotten (hash) VALUES (?1) ON CONFLICT (hash) DO NOTHING";
pub(crate) const REMEMBER: &str = "DELETE FROM forgotten WHERE hash = ?1";
/// The history goes with it, by the foreign key.
pub(crate) const DELETE: &str = "DELETE FROM hosts WHERE id = ?1";

/// Whether the name was here for a year, never lived, and was forgotten.
pub(crate) fn is_forgotten(connection: &Connection, host: &Host) -> Result<bool, StoreError> {
    has(connection, &key(connection)?, host)
}

/// The same by a key that was asked for before.
pub(crate) fn has(connection: &Connection, key: &Key, host: &Host) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(IS_FORGOTTEN)?
        .query_row([hash_by(key, host.as_str())], |row| row.get(0))?)
}

/// Deletes a host's row and keeps only that its name was here.
pub(crate) fn forget(connection: &Connection, id: i64, host: &Host) -> Result<(), StoreError> {
    let hash = hash(connection, host)?;
    connection.prepare_cached(DELETE)?.execute([id])?;
    connection.prepare_cached(FORGET)?.execute([hash])?;
    Ok(())
}

/// Lets a forgotten name in again.
pub(crate) fn remember(connection: &Connection, host: &Host) -> Result<(), StoreError> {
    let hash = hash(connection, host)?;
    connection.prepare_cached(REMEMBER)?.execute([hash])?;
    Ok(())
}

/// The name's keyed hash.
fn hash(connection: &Connection, host: &Host) -> Result<i64, StoreError> {
    Ok(hash_by(&key(connection)?, host.as_str()))
}

/// The key of the hash, drawn when the database was made.
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
