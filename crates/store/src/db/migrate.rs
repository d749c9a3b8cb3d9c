//! The schema and its migrations (`migrations/`). Databases of a newer schema or of another program
//! are rejected.

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

const STEPS: &[M<'static>] = &[
    M::up(include_str!("../../../../migrations/0001_schema.sql")),
    M::up(include_str!("../../../../migrations/0002_moderation.sql")),
    M::up(include_str!(
        "../../../../migrations/0003_open_registrations.sql"
    )),
    M::up(include_str!("../../../../migrations/0004_walks.sql")),
    M::up(include_str!("../../../../migrations/0005_no_wildcards.sql")),
    M::up(include_str!("../../../../migrations/0006_variant.sql")),
    M::up(include_str!("../../../../migrations/0007_full_lists.sql")),
    M::up(include_str!("../../../../migrations/0008_hosters.sql")),
    M::up(include_str!("../../../../migrations/0009_young.sql")),
    M::up(include_str!("../../../../migrations/0010_versions.sql")),
    M::up(include_str!("../../../../migrations/0011_proofs.sql")),
    M::up(include_str!("../../../../migrations/0012_one_way.sql")),
    M::up(include_str!("../../../../migrations/0013_freed.sql")),
];

#[cfg(test)]
pub(crate) const SCHEMA_VERSION: i64 = STEPS.len().cast_signed() as i64;

pub(crate) static SCHEMA: Schema = Schema {
    migrations: Migrations::from_slice(STEPS),
    steps: STEPS.len(),
};

/// "Fedi" in ASCII: the application id that the first migration writes into the file's header.
const APPLICATION_ID: i64 = 0x4665_6469;

/// The migrations to a schema. Tests have more of them than the program has.
#[derive(Debug)]
pub(crate) struct Schema {
    migrations: Migrations<'static>,
    steps: usize,
}

impl Schema {
    /// The program's own schema and further migrations.
    #[cfg(test)]
    pub(crate) fn with_further(further: Vec<M<'static>>) -> Self {
        let mut steps = STEPS.to_vec();
        steps.extend(further);
        Self {
            steps: steps.len(),
            migrations: Migrations::new(steps),
        }
    }

    /// The schema of a former version, which had the first `steps` of the program's migrations.
    #[cfg(test)]
    pub(crate) fn of_first(steps: usize) -> Self {
        Self {
            steps,
            migrations: Migrations::new(STEPS[..steps].to_vec()),
        }
    }

    /// Its version: the number of migrations.
    pub(crate) fn version(&self) -> i64 {
        i64::try_from(self.steps).unwrap_or(i64::MAX)
    }

    /// Applies the missing migrations, all in one transaction.
    pub(crate) fn to_latest(
        &self,
        connection: &mut Connection,
    ) -> Result<(), rusqlite_migration::Error> {
        self.migrations.to_latest(connection)
    }
}

/// What a database file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Empty,
    Census(i64),
    Foreign,
}

/// Reads what the file contains. Writes nothing.
pub(crate) fn look(connection: &Connection) -> rusqlite::Result<Found> {
    let version = version(connection)?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version, tables) {
        (0, 0, 0) => Found::Empty,
        (APPLICATION_ID, version, _) => Found::Census(version),
        _ => Found::Foreign,
    })
}

/// Number of migrations that the database has been through.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_applies_to_an_empty_database() {
        assert_eq!(SCHEMA.migrations.validate(), Ok(()));
    }

    #[test]
    fn registrations_are_open_or_closed_or_unknown_and_nothing_else() {
        let mut connection = Connection::open_in_memory().unwrap();
        SCHEMA.to_latest(&mut connection).unwrap();
        let insert = "INSERT INTO hosts (name, state, since, first_seen, open_registrations) \
             VALUES (?1, 'parked', 0, 0, ?2)";
        for (number, said, is_taken) in [
            (1, Some(0), true),
            (2, Some(1), true),
            (3, None, true),
            (4, Some(2), false),
            (5, Some(-1), false),
        ] {
            let inserted = connection.execute(insert, (format!("n{number}.example"), said));
            assert_eq!(inserted.is_ok(), is_taken, "{said:?}: {inserted:?}");
        }
    }

    #[test]
    fn a_migrated_database_is_told_from_an_empty_and_a_foreign_one() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(look(&connection), Ok(Found::Empty));
        SCHEMA.to_latest(&mut connection).unwrap();
        assert_eq!(look(&connection), Ok(Found::Census(SCHEMA.version())));
        let foreign = Connection::open_in_memory().unwrap();
        foreign
            .execute_batch("CREATE TABLE bookmarks (url TEXT)")
            .unwrap();
        assert_eq!(look(&foreign), Ok(Found::Foreign));
    }
}
