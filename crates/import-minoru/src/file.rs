//! Reads the crawler's database (minoru-fediverse-crawler, `src/db.rs`) one page at a time.
//!
//! The file may contain anything. It is rejected if it lacks tables or columns that all versions of
//! the crawler have, or has more than [`HOSTS_MAX`] hosts. A row whose name can't be a host name is
//! skipped and reported. Columns that only some versions have are read if they exist.
//!
//! Nothing that the file defines is executed: no view, trigger, virtual table or generated column.
//! A text's length is checked before the text is loaded.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, params};
use thiserror::Error;

use crate::host::{MinoruHost, MinoruState};

/// Most hosts of a file. Lists that are imported by name have the same limit.
pub const HOSTS_MAX: u64 = 2_000_000;

/// Hosts read at once: some megabytes at most.
pub const PAGE_MAX: u32 = 5000;

/// Longest name that is read, in bytes: no host name is longer.
const NAME_BYTES_MAX: u32 = 253;

/// How long to wait for a crawler that is writing.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Tables and columns that all versions of the crawler have.
const SHAPE: [(&str, &[&str]); 4] = [
    ("instances", &["id", "hostname", "state"]),
    (
        "dying_state_data",
        &["instance", "dying_since", "failed_checks_count"],
    ),
    (
        "moving_state_data",
        &["instance", "moving_since", "redirects_count", "moving_to"],
    ),
    ("moved_state_data", &["instance", "moved_to"]),
];

const IS_TABLE: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1 AND type = 'table' AND rootpage > 0)";

/// Generated and hidden columns are not included.
const HAS_COLUMN: &str = "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2)";

const COUNT: &str = "SELECT count(*) FROM instances";

/// Why a file can't be imported. Each message says what to do.
#[derive(Debug, Error)]
pub enum MinoruError {
    /// The file can't be opened or read.
    #[error("can't read {path}: {reason} (a running crawler has more files next to it: make a copy with `sqlite3 DATABASE \"VACUUM INTO 'COPY'\"` and import that)", path = .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's or SQLite's message.
        reason: String,
    },
    /// The file is something else.
    #[error("{path} is not a database of Minoru's crawler: {lacks}", path = .path.display())]
    Other {
        /// Path of the file.
        path: PathBuf,
        /// What it lacks.
        lacks: String,
    },
    /// The file has too many hosts to be from the crawler.
    #[error("{path} has {found} hosts, more than {HOSTS_MAX}: it can't be what the crawler wrote", path = .path.display())]
    TooMany {
        /// Path of the file.
        path: PathBuf,
        /// Number of its hosts.
        found: u64,
    },
}

/// A row of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A host.
    Host {
        /// Its name as in the file: at most 253 bytes, not validated otherwise.
        name: String,
        /// What the crawler knew about it.
        known: MinoruHost,
    },
    /// A row that can't be imported.
    Refused {
        /// Id of the row.
        row: i64,
        /// Why it can't be imported.
        why: &'static str,
    },
}

/// The file, open for reading.
#[derive(Debug)]
pub struct MinoruFile {
    path: PathBuf,
    connection: Connection,
    page: String,
    hosts: u64,
    after: Option<i64>,
}

impl MinoruFile {
    /// Opens the file and checks that it is a crawler's database.
    ///
    /// Without a log next to it, the file is read without locks or changes. With a log, it is read
    /// as SQLite does while others write.
    ///
    /// # Errors
    /// Each cause has its variant.
    pub fn open(path: &Path) -> Result<Self, MinoruError> {
        // SQLite's message for a missing file says only that it can't be opened.
        std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
        let failed = |error| explain(path, error);
        let connection = connect(path).map_err(failed)?;
        if let Some(lacks) = lacks(&connection).map_err(failed)? {
            let path = path.to_owned();
            return Err(MinoruError::Other { path, lacks });
        }
        let count: i64 = connection
            .query_row(COUNT, [], |row| row.get(0))
            .map_err(failed)?;
        let hosts = u64::try_from(count).unwrap_or(0);
        if hosts > HOSTS_MAX {
            return Err(MinoruError::TooMany {
                path: path.to_owned(),
                found: hosts,
            });
        }
        let page = page(&connection).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            connection,
            page,
            hosts,
            after: None,
        })
    }

    /// Number of hosts in the file.
    pub fn hosts(&self) -> u64 {
        self.hosts
    }

    /// The next rows, at most [`PAGE_MAX`]. Empty at the end.
    ///
    /// # Errors
    /// Fails if the file can't be read.
    pub fn next_page(&mut self) -> Result<Vec<Found>, MinoruError> {
        let failed = |error| explain(&self.path, error);
        let mut found = Vec::new();
        let mut statement = self.connection.prepare_cached(&self.page).map_err(failed)?;
        let mut rows = statement
            .query(params![self.after, PAGE_MAX])
            .map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            self.after = Some(row.get(0).map_err(failed)?);
            found.push(read(row).map_err(failed)?);
        }
        Ok(found)
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(path), flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

/// Without a log next to it, the file is not in use or is a copy. Then SQLite need not create files
/// next to it, which would fail on a read-only disk.
fn uri(path: &Path) -> String {
    let is_used = ["-wal", "-journal"].iter().any(|end| {
        let mut companion = path.as_os_str().to_owned();
        companion.push(end);
        Path::new(&companion).symlink_metadata().is_ok()
    });
    let absolute = std::path::absolute(path).unwrap_or_else(|_unknown| path.to_owned());
    let mut uri = "file:".to_owned();
    for byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    if !is_used {
        uri.push_str("?immutable=1");
    }
    uri
}

/// What the file lacks to be the crawler's, in words. `None` if it lacks nothing.
fn lacks(connection: &Connection) -> rusqlite::Result<Option<String>> {
    for (table, columns) in SHAPE {
        if !is_true(connection, IS_TABLE, &[table])? {
            return Ok(Some(format!("it has no table `{table}`")));
        }
        for column in columns {
            if !is_true(connection, HAS_COLUMN, &[table, column])? {
                return Ok(Some(format!(
                    "its table `{table}` has no column `{column}`"
                )));
            }
        }
    }
    Ok(None)
}

fn is_true(connection: &Connection, sql: &str, names: &[&str]) -> rusqlite::Result<bool> {
    let names = rusqlite::params_from_iter(names);
    connection
        .prepare_cached(sql)?
        .query_row(names, |row| row.get(0))
}

/// The query of a page, with NULL for columns that this version of the file lacks. All names in the
/// query come from this program.
fn page(connection: &Connection) -> rusqlite::Result<String> {
    let number = |alias: &str, table: &str, column: &str| -> rusqlite::Result<String> {
        Ok(if is_true(connection, HAS_COLUMN, &[table, column])? {
            format!("CASE typeof({alias}.{column}) WHEN 'integer' THEN {alias}.{column} END")
        } else {
            "NULL".to_owned()
        })
    };
    let name = |alias: &str| {
        format!(
            "CASE WHEN typeof({alias}.hostname) = 'text' AND octet_length({alias}.hostname) <= {NAME_BYTES_MAX} THEN {alias}.hostname END"
        )
    };
    let columns = [
        "i.rowid".to_owned(),
        name("i"),
        number("i", "instances", "state")?,
        number("i", "instances", "discovered_datetime")?,
        number("i", "instances", "last_check_datetime")?,
        number("i", "instances", "next_check_datetime")?,
        number("d", "dying_state_data", "dying_since")?,
        number("d", "dying_state_data", "failed_checks_count")?,
        number("d", "dying_state_data", "previous_state")?,
        number("m", "moving_state_data", "moving_since")?,
        number("m", "moving_state_data", "redirects_count")?,
        number("m", "moving_state_data", "previous_state")?,
        name("t"),
        name("u"),
    ];
    Ok(format!(
        "SELECT {} FROM instances i LEFT JOIN dying_state_data d ON d.instance = i.id \
         LEFT JOIN moving_state_data m ON m.instance = i.id LEFT JOIN instances t ON t.id = m.moving_to \
         LEFT JOIN moved_state_data v ON v.instance = i.id LEFT JOIN instances u ON u.id = v.moved_to \
         WHERE ?1 IS NULL OR i.rowid > ?1 ORDER BY i.rowid LIMIT ?2",
        columns.join(", ")
    ))
}

fn read(row: &Row<'_>) -> rusqlite::Result<Found> {
    let id = row.get(0)?;
    let refused = |why| Ok(Found::Refused { row: id, why });
    let Some(name) = text(row, 1)? else {
        return refused("it has no name, or one that is longer than any host's");
    };
    let Some(state) = state(row.get(2)?) else {
        return refused("it is in no state that the crawler knows");
    };
    // Values that belong to another state are leftovers of a former state.
    let (since, count, before, target) = match state {
        MinoruState::Dying => (row.get(6)?, row.get(7)?, row.get(8)?, None),
        MinoruState::Moving => (row.get(9)?, row.get(10)?, row.get(11)?, text(row, 12)?),
        MinoruState::Moved => (None, None, None, text(row, 13)?),
        MinoruState::Discovered | MinoruState::Alive | MinoruState::Dead => {
            (None, None, None, None)
        }
    };
    let known = MinoruHost {
        state,
        since_s: since,
        count,
        state_before: self::state(before),
        target,
        first_seen_s: row.get(3)?,
        last_checked_s: row.get(4)?,
        next_check_s: row.get(5)?,
    };
    Ok(Found::Host { name, known })
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => str::from_utf8(bytes).ok().map(str::to_owned),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

/// The crawler's numbers of its states.
fn state(number: Option<i64>) -> Option<MinoruState> {
    Some(match number? {
        0 => MinoruState::Discovered,
        1 => MinoruState::Alive,
        2 => MinoruState::Dying,
        3 => MinoruState::Dead,
        4 => MinoruState::Moving,
        5 => MinoruState::Moved,
        _ => return None,
    })
}

fn explain(path: &Path, error: rusqlite::Error) -> MinoruError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => MinoruError::Other {
            path: path.to_owned(),
            lacks: "it is no SQLite database".to_owned(),
        },
        Some(_) | None => unreadable(path, &error),
    }
}

fn unreadable(path: &Path, reason: &dyn std::error::Error) -> MinoruError {
    MinoruError::Unreadable {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests;
