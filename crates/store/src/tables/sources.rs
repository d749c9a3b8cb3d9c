//! The table `sources`: what is remembered about each public list, by the name that the operator
//! gave it.

use std::collections::BTreeMap;

use census::source::{Memory, Pause, Taken};
use census::time::Timestamp;
use rusqlite::{Connection, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queue::handle::Writer;

pub(crate) const PUT: &str = "INSERT INTO sources (name, tried, taken, taken_names, paused, paused_names, paused_before, trouble) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
     ON CONFLICT (name) DO UPDATE SET tried = excluded.tried, taken = excluded.taken, taken_names = excluded.taken_names, \
     paused = excluded.paused, paused_names = excluded.paused_names, paused_before = excluded.paused_before, trouble = excluded.trouble";

pub(crate) const ALL: &str = "SELECT name, tried, taken, taken_names, paused, paused_names, paused_before, trouble FROM sources";

pub(crate) const FORGET: &str = "DELETE FROM sources WHERE name = ?1";

/// What is remembered about every source, by its name.
pub type Memories = BTreeMap<String, Memory>;

impl Writer {
    /// Stores what to remember about the source of this name.
    /// Fails on a database error; what was remembered before is kept.
    pub async fn remember_source(&self, name: &str, memory: Memory) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.call(move |c| put(c, &name, &memory)).await
    }

    /// Ends the pause of a source: it is due, and its names are accepted at its next reading.
    /// Returns what was remembered before, or `None` for a source that was never read.
    pub async fn resume_source(&self, name: &str) -> Result<Option<Memory>, StoreError> {
        let name = name.to_owned();
        self.call(move |c| {
            let before = all(c)?.remove(&name);
            if let Some(memory) = &before {
                put(c, &name, &memory.resumed())?;
            }
            Ok(before)
        })
        .await
    }

    /// Forgets all sources except those of these names.
    pub async fn forget_other_sources(&self, names: Vec<String>) -> Result<(), StoreError> {
        self.call(move |c| {
            for name in all(c)?.keys().filter(|name| !names.contains(name)) {
                c.prepare_cached(FORGET)?.execute([name])?;
            }
            Ok(())
        })
        .await
    }

    /// What is remembered about every source.
    pub async fn sources(&self) -> Result<Memories, StoreError> {
        self.call(all).await
    }
}

impl Reader {
    /// What is remembered about every source.
    pub fn sources(&self) -> Result<Memories, StoreError> {
        all(self.connection())
    }
}

fn put(connection: &Connection, name: &str, memory: &Memory) -> Result<(), StoreError> {
    let Memory {
        tried,
        taken,
        paused,
        trouble,
    } = memory;
    connection.prepare_cached(PUT)?.execute(params![
        name,
        tried.map(|at| at.0),
        taken.map(|taken| taken.at.0),
        taken.map(|taken| signed(taken.names)),
        paused.map(|pause| pause.since.0),
        paused.map(|pause| signed(pause.names)),
        paused.map(|pause| signed(pause.before)),
        trouble,
    ])?;
    Ok(())
}

fn all(connection: &Connection) -> Result<Memories, StoreError> {
    let mut statement = connection.prepare_cached(ALL)?;
    let rows = statement.query_map([], |row| {
        let number = |column: &str| row.get::<_, Option<i64>>(column);
        let names = |column: &str| Ok::<_, rusqlite::Error>(number(column)?.map(unsigned));
        let at = |column: &str| Ok::<_, rusqlite::Error>(number(column)?.map(Timestamp));
        let taken = at("taken")?
            .zip(names("taken_names")?)
            .map(|(at, names)| Taken { at, names });
        let paused = at("paused")?
            .zip(names("paused_names")?)
            .zip(names("paused_before")?)
            .map(|((since, names), before)| Pause {
                since,
                names,
                before,
            });
        let memory = Memory {
            tried: at("tried")?,
            taken,
            paused,
            trouble: row.get("trouble")?,
        };
        Ok((row.get("name")?, memory))
    })?;
    rows.map(|row| Ok(row?)).collect()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The table has no negative numbers.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn memories() -> impl Strategy<Value = Memory> {
        let number = 0..=u64::try_from(i64::MAX).unwrap();
        let at = any::<i64>().prop_map(Timestamp);
        let taken = (at.clone(), number.clone()).prop_map(|(at, names)| Taken { at, names });
        let paused =
            (at.clone(), number.clone(), number).prop_map(|(since, names, before)| Pause {
                since,
                names,
                before,
            });
        (
            proptest::option::of(at),
            proptest::option::of(taken),
            proptest::option::of(paused),
            proptest::option::of(".{0,20}"),
        )
            .prop_map(|(tried, taken, paused, trouble)| Memory {
                tried,
                taken,
                paused,
                trouble,
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// The last stored memory of a source is read back after a restart.
        #[test]
        fn what_is_remembered_comes_back_whole(
            written in proptest::collection::vec(("[a-c]", memories()), 1..6),
        ) {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("census.db");
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let store = crate::open(&path).unwrap();
            let mut expected = Memories::new();
            for (name, memory) in written {
                expected.insert(name.clone(), memory.clone());
                runtime.block_on(store.writer().remember_source(&name, memory)).unwrap();
            }
            drop(store);
            let store = crate::open(&path).unwrap();
            prop_assert_eq!(&store.reader().unwrap().sources().unwrap(), &expected);
            prop_assert_eq!(&runtime.block_on(store.writer().sources()).unwrap(), &expected);
        }
    }

    #[tokio::test]
    async fn a_pause_ends_by_word_alone_and_who_is_not_in_the_file_is_forgotten() {
        let dir = TempDir::new().unwrap();
        let store = crate::open(&dir.path().join("census.db")).unwrap();
        let writer = store.writer();
        let (few, _) = Memory::default().after_reading(3, Timestamp(1));
        let (paused, _) = few.after_reading(30, Timestamp(2));
        writer.remember_source("few", few.clone()).await.unwrap();
        writer
            .remember_source("paused", paused.clone())
            .await
            .unwrap();
        assert_eq!(writer.resume_source("other").await.unwrap(), None);
        let resumed = writer.resume_source("few").await.unwrap();
        assert_eq!(resumed, Some(few.clone()));
        let resumed = writer.resume_source("paused").await.unwrap();
        assert_eq!(resumed, Some(paused));
        let expected = [
            ("few".to_owned(), few.clone()),
            ("paused".to_owned(), Memory::default()),
        ];
        assert_eq!(writer.sources().await.unwrap(), expected.into());
        let kept = vec!["few".to_owned(), "new".to_owned()];
        writer.forget_other_sources(kept).await.unwrap();
        assert_eq!(
            writer.sources().await.unwrap(),
            [("few".to_owned(), few)].into()
        );
    }
}
