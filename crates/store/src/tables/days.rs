//! The tables `days`, `day_states` and `day_software`: counts of each day's last list, for plots
//! over time.
//!
//! One row per day, read back the oldest first. Days and kinds of software beyond the bounds are
//! dropped.

use census::state::StateName;
use census::time::Timestamp;
use rusqlite::{Connection, params};

use super::day_versions::{self, SoftwareVersions};
use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queue::handle::Writer;

/// Days kept: three years, so that a year can be compared with the two before it. With their
/// software they take about 2 MB.
pub const DAYS_MAX: u32 = 3 * 366;

/// Kinds of software kept per day: twice as many as a plot shows, so that software that rises into
/// the plot has a past.
pub const SOFTWARE_A_DAY_MAX: usize = 20;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Counts are of a day's last list. Additions and removals are summed over all lists of the day.
pub(crate) const PUT: &str = "INSERT INTO days (day, others, appeared, died) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (day) DO UPDATE SET others = excluded.others, appeared = appeared + excluded.appeared, died = died + excluded.died";

pub(crate) const CLEAR_STATES: &str = "DELETE FROM day_states WHERE day = ?1";
pub(crate) const CLEAR_SOFTWARE: &str = "DELETE FROM day_software WHERE day = ?1";
pub(crate) const PUT_STATE: &str = "INSERT INTO day_states (day, state, hosts) VALUES (?1, ?2, ?3)";
pub(crate) const PUT_SOFTWARE: &str =
    "INSERT INTO day_software (day, place, software, hosts) VALUES (?1, ?2, ?3, ?4)";

/// Limits the number of rows, not their age: a clock that was a year ahead for an hour must not
/// delete three years. The foreign keys delete the rows of the other tables.
pub(crate) const PRUNE: &str =
    "DELETE FROM days WHERE day IN (SELECT day FROM days ORDER BY day DESC LIMIT -1 OFFSET ?1)";

pub(crate) const DAYS: &str =
    "SELECT day, others, appeared, died FROM days WHERE day <= ?1 ORDER BY day";
pub(crate) const STATES: &str = "SELECT state, hosts FROM day_states WHERE day = ?1";
pub(crate) const SOFTWARE: &str =
    "SELECT software, hosts FROM day_software WHERE day = ?1 ORDER BY place";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayCounts {
    /// The day in UTC, as days since 1970.
    pub day: i64,
    /// Known hosts by state. A missing state has no hosts.
    pub by_state: Vec<(StateName, u64)>,
    /// Listed hosts by software, the most frequent first; [`SOFTWARE_A_DAY_MAX`] are kept.
    pub by_software: Vec<(String, u64)>,
    /// Listed hosts of other or unknown software.
    pub others: u64,
    /// Hosts added to the list. When written, added to the counts of the day's earlier lists.
    pub appeared: u64,
    /// Hosts that left the list, for any reason, not only by dying. Summed like `appeared`.
    pub died: u64,
    /// Listed hosts by version, for the software in `by_software`. Written only: the reader returns
    /// none here, since one software's are enough for most uses.
    pub versions: Vec<SoftwareVersions>,
}

/// The UTC day of a point in time, as days since 1970.
pub fn day_of(at: Timestamp) -> i64 {
    at.0.div_euclid(DAY_MS)
}

impl Writer {
    /// Writes the counts of a published list. They replace the counts of the day's previous list,
    /// and the oldest day beyond [`DAYS_MAX`] is dropped.
    pub async fn record_day(&self, day: DayCounts) -> Result<(), StoreError> {
        self.call(move |c| record(c, &day)).await
    }
}

impl Reader {
    /// Counts of all days up to the day of `now`, ascending. Leaves out later days, which a fast
    /// clock has written.
    pub fn days(&self, now: Timestamp) -> Result<Vec<DayCounts>, StoreError> {
        let snapshot = self.connection().unchecked_transaction()?;
        let mut statement = snapshot.prepare_cached(DAYS)?;
        let mut rows = statement.query([day_of(now)])?;
        let mut days = Vec::new();
        while let Some(row) = rows.next()? {
            let day = row.get(0)?;
            days.push(DayCounts {
                day,
                by_state: states(&snapshot, day)?,
                by_software: software(&snapshot, day)?,
                others: unsigned(row.get(1)?),
                appeared: unsigned(row.get(2)?),
                died: unsigned(row.get(3)?),
                versions: Vec::new(),
            });
        }
        Ok(days)
    }
}

fn record(connection: &Connection, day: &DayCounts) -> Result<(), StoreError> {
    connection.prepare_cached(PUT)?.execute(params![
        day.day,
        signed(day.others),
        signed(day.appeared),
        signed(day.died)
    ])?;
    connection
        .prepare_cached(CLEAR_STATES)?
        .execute([day.day])?;
    connection
        .prepare_cached(CLEAR_SOFTWARE)?
        .execute([day.day])?;
    let mut put = connection.prepare_cached(PUT_STATE)?;
    for (state, hosts) in &day.by_state {
        put.execute(params![day.day, state.as_str(), signed(*hosts)])?;
    }
    let mut put = connection.prepare_cached(PUT_SOFTWARE)?;
    for (place, (software, hosts)) in (0_i64..).zip(day.by_software.iter().take(SOFTWARE_A_DAY_MAX))
    {
        put.execute(params![day.day, place, software, signed(*hosts)])?;
    }
    connection.prepare_cached(PRUNE)?.execute([DAYS_MAX])?;
    day_versions::record(connection, day.day, &day.versions)
}

fn states(connection: &Connection, day: i64) -> Result<Vec<(StateName, u64)>, StoreError> {
    let mut statement = connection.prepare_cached(STATES)?;
    let mut rows = statement.query([day])?;
    let mut states = Vec::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(0)?;
        // A state that this version does not know is left out.
        let state = StateName::parse(&word);
        let hosts = unsigned(row.get(1)?);
        states.extend(state.map(|state| (state, hosts)));
    }
    // In the order of the states, not in the alphabetical order of their names.
    states.sort_unstable();
    Ok(states)
}

fn software(connection: &Connection, day: i64) -> Result<Vec<(String, u64)>, StoreError> {
    let mut statement = connection.prepare_cached(SOFTWARE)?;
    let rows = statement.query_map([day], |row| Ok((row.get(0)?, unsigned(row.get(1)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use census::version::VersionHosts;

    use super::*;
    use crate::db::migrate;

    fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::SCHEMA.to_latest(&mut connection).unwrap();
        connection
            .execute_batch("PRAGMA foreign_keys = ON")
            .unwrap();
        connection
    }

    fn counts(day: i64, software: &[&str]) -> DayCounts {
        let hosts = u64::try_from(software.len()).unwrap();
        DayCounts {
            day,
            by_state: vec![(StateName::Alive, hosts), (StateName::Parked, 1)],
            by_software: software
                .iter()
                .map(|name| ((*name).to_owned(), 1))
                .collect(),
            others: 3,
            appeared: 2,
            died: 1,
            versions: Vec::new(),
        }
    }

    /// Like [`counts`], with this number of versions of one software.
    fn with_versions(day: i64, software: &str, versions: usize) -> DayCounts {
        let versions = (0..versions).map(|number| VersionHosts {
            version: Some(number.to_string()),
            variant: (number == 1).then(|| "glitch".to_owned()),
            hosts: 1,
        });
        DayCounts {
            versions: vec![SoftwareVersions {
                software: software.to_owned(),
                minors: vec![(versions.len().to_string(), 1); versions.len()],
                versions: versions.collect(),
            }],
            ..counts(day, &[software])
        }
    }

    fn end_of(day: i64) -> Timestamp {
        Timestamp((day + 1) * DAY_MS - 1)
    }

    #[test]
    fn the_last_list_of_a_day_counts_and_who_came_and_went_is_added_up() {
        let connection = database();
        record(&connection, &counts(7, &["a", "b", "c"])).unwrap();
        record(&connection, &counts(8, &["a"])).unwrap();
        let last = DayCounts {
            by_state: vec![(StateName::Alive, 9)],
            others: 0,
            ..counts(7, &["z", "b"])
        };
        record(&connection, &last).unwrap();
        let expect = [
            DayCounts {
                appeared: 4,
                died: 2,
                ..last
            },
            counts(8, &["a"]),
        ];
        assert_eq!(Reader::new(connection).days(end_of(8)).unwrap(), expect);
    }

    #[test]
    fn what_a_clock_wrote_that_was_ahead_is_not_told_and_costs_one_day() {
        let connection = database();
        for day in 0..i64::from(DAYS_MAX) {
            record(&connection, &counts(day, &[])).unwrap();
        }
        record(&connection, &counts(90_000, &["a"])).unwrap();
        let left = |table: &str| -> i64 {
            let sql = format!("SELECT count(DISTINCT day) FROM {table}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(left("days"), i64::from(DAYS_MAX));
        assert_eq!(left("day_states"), i64::from(DAYS_MAX));
        let days = Reader::new(connection).days(end_of(5000)).unwrap();
        assert_eq!(days.len(), usize::try_from(DAYS_MAX).unwrap() - 1);
        assert_eq!(days[0].day, 1);
    }

    #[test]
    fn a_day_keeps_the_most_frequent_software_alone() {
        let connection = database();
        let names: Vec<_> = (0..30).map(|n| n.to_string()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        record(&connection, &counts(1, &names)).unwrap();
        let days = Reader::new(connection).days(end_of(1)).unwrap();
        let kept: Vec<_> = days[0].by_software.iter().map(|(name, _)| name).collect();
        assert_eq!(kept, names[..SOFTWARE_A_DAY_MAX].iter().collect::<Vec<_>>());
    }

    #[test]
    fn versions_are_kept_for_400_days_and_minors_as_long_as_days() {
        let connection = database();
        for day in 0..410 {
            record(&connection, &with_versions(day, "a", 60)).unwrap();
        }
        // The last list of a day counts, and a fast clock's day costs one other.
        let last = with_versions(409, "a", 2);
        record(&connection, &last).unwrap();
        record(&connection, &with_versions(90_000, "a", 1)).unwrap();
        let reader = Reader::new(connection);
        let versions = reader.versions("a", end_of(5000)).unwrap();
        let minors = reader.minors("a", end_of(5000)).unwrap();
        let shape = |days: &[(i64, usize)]| (days.len(), days[0], days[days.len() - 1]);
        let found: Vec<_> = versions.iter().map(|(day, of)| (*day, of.len())).collect();
        assert_eq!(shape(&found), (399, (11, 41), (409, 2)));
        assert_eq!(versions[398].1, last.versions[0].versions);
        let found: Vec<_> = minors.iter().map(|(day, of)| (*day, of.len())).collect();
        assert_eq!(shape(&found), (410, (0, 12), (409, 2)));
        assert_eq!(minors[409].1, last.versions[0].minors);
        assert_eq!(reader.versions("b", end_of(5000)).unwrap(), []);
        let delete = "DELETE FROM days WHERE day = 100";
        reader.connection().execute(delete, []).unwrap();
        assert_eq!(reader.versions("a", end_of(5000)).unwrap().len(), 398);
        assert_eq!(reader.minors("a", end_of(5000)).unwrap().len(), 409);
    }

    #[test]
    fn a_day_ends_at_midnight_in_utc() {
        assert_eq!(day_of(Timestamp(DAY_MS - 1)), 0);
        assert_eq!(day_of(Timestamp(DAY_MS)), 1);
        assert_eq!(day_of(Timestamp(-1)), -1);
    }
}
