//! The tables `day_versions` and `day_minors`: hosts of each day's last list by version, for the
//! most frequent software.
//!
//! Versions beyond the bounds are counted as the rest. Full versions are dropped earlier than days.
//! No row names a host.

use census::time::Timestamp;
use census::version::VersionHosts;
use rusqlite::{Connection, Row, params};

use super::days::{SOFTWARE_A_DAY_MAX, day_of, signed, unsigned};
use crate::db::error::StoreError;
use crate::db::reader::Reader;

/// Days whose full versions are kept: over a year, since most servers have a fix within weeks. They
/// take about 15 MB, and the minor versions of three years about 10 MB.
pub(crate) const VERSION_DAYS_MAX: u32 = 400;

/// Full versions kept per software and day, each with its variant; a further row has the rest.
pub const VERSIONS_A_DAY_MAX: usize = 40;

/// Minor versions kept per software and day: as many as a software's page shows.
pub const MINORS_A_DAY_MAX: usize = 12;

pub(crate) const CLEAR: &str = "DELETE FROM day_versions WHERE day = ?1";
pub(crate) const CLEAR_MINORS: &str = "DELETE FROM day_minors WHERE day = ?1";
pub(crate) const PUT: &str = "INSERT INTO day_versions (day, software, place, version, variant, hosts) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(crate) const PUT_MINOR: &str =
    "INSERT INTO day_minors (day, software, place, minor, hosts) VALUES (?1, ?2, ?3, ?4, ?5)";

/// By the number of days, not by age, as the days themselves.
pub(crate) const PRUNE: &str = "DELETE FROM day_versions WHERE day IN (SELECT day FROM days ORDER BY day DESC LIMIT -1 OFFSET ?1)";

pub(crate) const VERSIONS: &str = "SELECT days.day, version, variant, hosts FROM days CROSS JOIN day_versions \
     WHERE days.day <= ?2 AND day_versions.day = days.day AND software = ?1 ORDER BY days.day, place";
pub(crate) const MINORS: &str = "SELECT days.day, minor, hosts FROM days CROSS JOIN day_minors \
     WHERE days.day <= ?2 AND day_minors.day = days.day AND software = ?1 ORDER BY days.day, place";

/// Listed hosts of one software by version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftwareVersions {
    pub software: String,
    /// The [`VERSIONS_A_DAY_MAX`] most frequent ones, and the rest.
    pub versions: Vec<VersionHosts>,
    /// By the first two numbers, the [`MINORS_A_DAY_MAX`] most frequent ones.
    pub minors: Vec<(String, u64)>,
}

/// Counts by day, as days since 1970, ascending. Days without a count are missing.
pub type ByDay<T> = Vec<(i64, Vec<T>)>;

impl Reader {
    /// Versions of one software up to the day of `now`.
    pub fn versions(&self, name: &str, now: Timestamp) -> Result<ByDay<VersionHosts>, StoreError> {
        by_day(self.connection(), VERSIONS, name, now, |row| {
            Ok(VersionHosts {
                version: row.get(1)?,
                variant: row.get(2)?,
                hosts: unsigned(row.get(3)?),
            })
        })
    }

    /// Minor versions of one software up to the day of `now`.
    pub fn minors(&self, name: &str, now: Timestamp) -> Result<ByDay<(String, u64)>, StoreError> {
        by_day(self.connection(), MINORS, name, now, |row| {
            Ok((row.get(1)?, unsigned(row.get(2)?)))
        })
    }
}

fn by_day<T>(
    connection: &Connection,
    sql: &str,
    software: &str,
    now: Timestamp,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<ByDay<T>, StoreError> {
    let mut days: ByDay<T> = Vec::new();
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![software, day_of(now)])?;
    while let Some(row) = rows.next()? {
        let day: i64 = row.get(0)?;
        match days.last_mut().filter(|(last, _)| *last == day) {
            Some((_, counts)) => counts.push(read(row)?),
            None => days.push((day, vec![read(row)?])),
        }
    }
    Ok(days)
}

/// Replaces the counts of a day, which must be in `days`.
pub(super) fn record(
    connection: &Connection,
    day: i64,
    versions: &[SoftwareVersions],
) -> Result<(), StoreError> {
    connection.prepare_cached(CLEAR)?.execute([day])?;
    connection.prepare_cached(CLEAR_MINORS)?.execute([day])?;
    let mut put = connection.prepare_cached(PUT)?;
    let mut put_minor = connection.prepare_cached(PUT_MINOR)?;
    for counted in versions.iter().take(SOFTWARE_A_DAY_MAX) {
        let software = &counted.software;
        let versions = counted.versions.iter().take(VERSIONS_A_DAY_MAX + 1);
        for (place, of) in (0_i64..).zip(versions) {
            let hosts = signed(of.hosts);
            put.execute(params![day, software, place, of.version, of.variant, hosts])?;
        }
        let minors = counted.minors.iter().take(MINORS_A_DAY_MAX);
        for (place, (minor, hosts)) in (0_i64..).zip(minors) {
            put_minor.execute(params![day, software, place, minor, signed(*hosts)])?;
        }
    }
    connection
        .prepare_cached(PRUNE)?
        .execute([VERSION_DAYS_MAX])?;
    Ok(())
}
