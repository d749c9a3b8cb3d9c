//! Creates, opens and copies the file.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use files::{Disk, Mode, create_private, make_private};
use limiter::login::record::Timestamp;
use rand::CryptoRng;
use rusqlite::{Connection, TransactionBehavior, params};
use rusqlite_migration::{M, Migrations};

use crate::error::AccountsError;
use crate::holds::HOLDS_MAX;
use crate::mac::Key;
use crate::password::{Hashed, Password};

const STEPS: &[M<'static>] = &[M::up(include_str!("../migrations/0001_accounts.sql"))];

/// "`FedA`" in ASCII. The first migration writes it.
const APPLICATION_ID: i64 = 0x4665_6441;

/// A command and the console may have the file open at the same time, each for milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Accounts {
    pub(crate) connection: Connection,
    pub(crate) keys: Keys,
    /// The hash to compare with if there is no account of a name.
    pub(crate) nobody: Hashed,
    /// Number of records of bans, locks and attempts.
    pub(crate) holds: u32,
    pub(crate) holds_max: u32,
}

#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) hold: Key,
    pub(crate) device: Key,
    pub(crate) csrf: Key,
}

impl Keys {
    /// Creates the missing ones.
    pub(crate) fn open(
        connection: &Connection,
        random: &mut impl CryptoRng,
    ) -> Result<Self, AccountsError> {
        Ok(Self {
            hold: key(connection, "hold", random)?,
            device: key(connection, "device", random)?,
            csrf: key(connection, "csrf", random)?,
        })
    }
}

impl Accounts {
    /// Opens the file, and creates it if it does not exist.
    pub fn open(path: &Path, random: &mut impl CryptoRng) -> Result<Self, AccountsError> {
        let failed = |source| AccountsError::Open {
            path: path.to_owned(),
            source,
        };
        create_private(path).map_err(failed)?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // A transaction that reads first could not write after another process has written.
        connection.set_transaction_behavior(TransactionBehavior::Immediate);
        let (application, tables, found) = {
            let transaction = connection.transaction()?;
            let tables = "SELECT count(*) FROM sqlite_schema";
            (
                number(&transaction, "PRAGMA application_id")?,
                number(&transaction, tables)?,
                number(&transaction, "PRAGMA user_version")?,
            )
        };
        if application != APPLICATION_ID && (application, tables) != (0, 0) {
            return Err(AccountsError::Foreign {
                path: path.to_owned(),
            });
        }
        if usize::try_from(found).is_ok_and(|found| found > STEPS.len()) {
            return Err(AccountsError::Newer {
                path: path.to_owned(),
                found,
                known: STEPS.len(),
            });
        }
        make_private(path).map_err(failed)?;
        // Written data survives the process. A power cut may lose the last second, but no attempt
        // of a flood has to wait for the disk.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // The container has no folder for temporary files.
        connection.pragma_update(None, "temp_store", "memory")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "secure_delete", true)?;
        Migrations::from_slice(STEPS).to_latest(&mut connection)?;
        let mut accounts = Self {
            nobody: Hashed::of_nobody(random)?,
            keys: Keys::open(&connection, random)?,
            connection,
            holds: 0,
            holds_max: HOLDS_MAX,
        };
        accounts.count_holds()?;
        Ok(accounts)
    }

    /// Writes a consistent copy for a backup. The copy contains the keys.
    ///
    /// # Errors
    /// Fails if the file exists already, or can't be written. In the latter case nothing is left of
    /// it.
    pub fn copy_to(&self, path: &Path) -> Result<(), AccountsError> {
        let text = path.to_str().ok_or_else(|| AccountsError::NotText {
            path: path.to_owned(),
        })?;
        let open = |source| AccountsError::Open {
            path: path.to_owned(),
            source,
        };
        Disk::SYSTEM.create(path, Mode::Private).map_err(open)?;
        let copied = self.connection.execute("VACUUM INTO ?1", [text]);
        let synced = copied.map_err(AccountsError::from).and_then(|_| {
            File::open(path)
                .and_then(|file| file.sync_all())
                .map_err(open)
        });
        if synced.is_err() {
            std::fs::remove_file(path).ok();
        }
        synced
    }

    /// Truncates the write-ahead log, which otherwise still contains deleted secrets.
    pub(crate) fn empty_log(&self) -> Result<(), AccountsError> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        // A reader in another process may prevent it; the next call succeeds.
        Ok(self.connection.query_row(sql, [], |_| Ok(()))?)
    }

    /// How long the slowest of a few hashes takes, by this clock, for a limiter's settings. It
    /// hashes the password of no account.
    pub fn hash_time(
        &self,
        rounds: u32,
        now: impl Fn() -> Duration,
    ) -> Result<Duration, AccountsError> {
        let mut slowest = Duration::ZERO;
        for _ in 0..rounds {
            let before = now();
            Password::new(String::new()).is(&self.nobody)?;
            slowest = slowest.max(now().saturating_sub(before));
        }
        Ok(slowest)
    }
}

/// The key of this name. The first call creates it.
fn key(
    connection: &Connection,
    name: &str,
    random: &mut impl CryptoRng,
) -> Result<Key, AccountsError> {
    let mut made = [0; 32];
    random.fill_bytes(&mut made);
    connection.execute(
        "INSERT INTO keys (name, secret) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING",
        params![name, made],
    )?;
    let sql = "SELECT secret FROM keys WHERE name = ?1";
    Ok(Key::new(
        connection.query_row(sql, [name], |row| row.get(0))?,
    ))
}

fn number(connection: &Connection, sql: &str) -> Result<i64, rusqlite::Error> {
    connection.query_row(sql, [], |row| row.get(0))
}

pub(crate) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn timestamp(millis: i64) -> Timestamp {
    Timestamp(Duration::from_millis(
        u64::try_from(millis).unwrap_or_default(),
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use tempfile::TempDir;

    use super::*;

    /// A generator that returns the same numbers each time.
    pub(crate) fn random() -> StdRng {
        StdRng::seed_from_u64(1)
    }

    /// New accounts, and the folder that contains them.
    pub(crate) fn accounts() -> (Accounts, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let accounts = Accounts::open(&folder.path().join("console.db"), &mut random()).unwrap();
        (accounts, folder)
    }

    pub(crate) const NOW: Timestamp = Timestamp(Duration::from_secs(1_800_000_000));

    pub(crate) const PASSWORD: &str = "correct horse";

    pub(crate) fn password(text: &str) -> Password {
        Password::new(text.to_owned())
    }

    /// Accounts of these moderators, all with [`PASSWORD`].
    pub(crate) fn accounts_of(names: &[&str]) -> (Accounts, TempDir) {
        let (mut accounts, folder) = accounts();
        for name in names {
            let added = accounts.add(name, &password(PASSWORD), NOW, &mut random());
            added.unwrap();
        }
        (accounts, folder)
    }

    #[test]
    fn every_step_applies_to_an_empty_file() {
        Migrations::from_slice(STEPS).validate().unwrap();
    }

    #[test] // S49 S82
    fn keys_are_made_once_and_the_owner_alone_reads_them() {
        let (accounts, folder) = accounts();
        let hash = accounts.keys.device.hash(&[b"a"]);
        drop(accounts);
        let path = folder.path().join("console.db");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut other = StdRng::seed_from_u64(2);
        let again = Accounts::open(&path, &mut other).unwrap();
        assert_eq!(again.keys.device.hash(&[b"a"]), hash);
        assert_ne!(again.keys.hold.hash(&[b"a"]), hash);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let copy = folder.path().join("copy.db");
        again.copy_to(&copy).unwrap();
        assert!(again.copy_to(&copy).is_err(), "no file is replaced");
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let copied = Accounts::open(&copy, &mut other).unwrap();
        assert_eq!(copied.keys.device.hash(&[b"a"]), hash);
    }

    #[test]
    fn a_file_of_a_newer_version_is_left_alone() {
        let (accounts, folder) = accounts();
        let newer = accounts.connection.pragma_update(None, "user_version", 99);
        newer.unwrap();
        drop(accounts);
        let refused = Accounts::open(&folder.path().join("console.db"), &mut random());
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("schema 99, made by a newer version"),
            "{refused}"
        );
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("census.db");
        let foreign = Connection::open(&path).unwrap();
        foreign
            .execute_batch("CREATE TABLE hosts (name TEXT)")
            .unwrap();
        drop(foreign);
        let before = std::fs::read(&path).unwrap();
        let opened = Accounts::open(&path, &mut random());
        assert!(matches!(opened, Err(AccountsError::Foreign { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
