//! Step 7 of 7: rows → dump → files behind nginx, swapped at once.
//!
//! In: one read transaction. Out: `nodes.json` and `nodes.json.gz`, whole. Refused: a list that lost more than 30 % of its names since the
//! last one is held back until an operator says so (invariant I11); the old one then stands, less those who opted out since (invariant I7).

use std::path::Path;

use admission::DomainList;
use census::group::Decision;
use census::state::State;
use census::time::{Calendar, Timestamp};
use dump::{DumpError, Force, HeldBack};
use protocol::Host;
use store::{Reader, StoreError};
use thiserror::Error;

/// Why a dump did not end well.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The database could not be read.
    #[error("no new list was published, the old one stands: {0}")]
    Store(#[from] StoreError),
    /// The new list is out, and the database does not know it.
    #[error("the new list was published, but could not be recorded: {0}")]
    Unrecorded(#[source] StoreError),
    /// The files could not be written.
    #[error("no new list was published, the old one stands: {0}")]
    Dump(#[from] DumpError),
    /// The files were written, and could not all be put in their places or made to stay there.
    #[error(
        "the new list is perhaps published in part, each file whole; the next one mends that: {0}"
    )]
    Half(#[source] DumpError),
    /// Too many names were lost at once.
    #[error(transparent)]
    HeldBack(#[from] HeldBack),
}

/// Writes the list of what is listed at `now`, less whom the operator denies, and swaps it in. Gives the number of names. Blocks; the caller records the dump.
///
/// # Errors
/// See [`PublishError`]. Each published file is then the old one or the new one, whole.
pub fn publish(
    reader: &Reader,
    directory: &Path,
    now: Timestamp,
    calendar: Calendar,
    deny: &DomainList,
    force: Force,
) -> Result<u64, PublishError> {
    let previous = reader.last_dump()?.map(|dump| dump.names);
    let staged = dump::write_nodes(directory, |name| {
        let mut failed = None;
        let read = reader.listed(now, calendar, |host| {
            if failed.is_none() && deny.covers_text(host).is_none() {
                failed = name(host).err();
            }
        });
        match failed {
            Some(error) => Err(PublishError::Dump(error)),
            None => Ok(read.map(|_names| ())?),
        }
    })?;
    if let Err(held_back) = dump::guard(previous, staged.names(), force) {
        drop(staged);
        retract(reader, directory, deny)?;
        return Err(held_back.into());
    }
    let names = staged.names();
    staged.publish().map_err(PublishError::Half)?;
    Ok(names)
}

/// Takes those who opted out, asked to be left out, or are denied off the list that stands.
fn retract(reader: &Reader, directory: &Path, deny: &DomainList) -> Result<(), PublishError> {
    let path = directory.join(dump::NODES_FILE);
    // A list that is not there, or not ours, holds nobody of whom we know.
    let standing: Vec<String> = std::fs::read(&path)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let mut kept = Vec::with_capacity(standing.len());
    for name in &standing {
        if deny.covers_text(name).is_none() && !is_withdrawn(reader, name)? {
            kept.push(name.as_str());
        }
    }
    if kept.len() < standing.len() {
        dump::write_nodes(directory, |name| {
            kept.iter()
                .try_for_each(|host| name(host))
                .map_err(PublishError::Dump)
        })?
        .publish()
        .map_err(PublishError::Half)?;
    }
    Ok(())
}

fn is_withdrawn(reader: &Reader, name: &str) -> Result<bool, StoreError> {
    let Ok(host) = Host::parse(name) else {
        return Ok(true);
    };
    let stored = reader.record(&host)?;
    Ok(stored.is_some_and(|stored| {
        let is_denied = stored
            .group
            .is_some_and(|group| group.group.decision == Decision::Deny);
        is_denied || stored.record.hidden || matches!(stored.record.state, State::OptedOut { .. })
    }))
}

#[cfg(test)]
mod tests {
    use census::state::{OptedOutBy, Verdict};
    use census::time::Jitter;
    use census::transition::transition;
    use protocol::Private;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        serde_json::from_slice(&std::fs::read(directory.join(dump::NODES_FILE)).unwrap()).unwrap()
    }

    #[test]
    fn a_list_that_cannot_be_put_in_its_place_is_not_said_to_stand_and_the_next_one_does() {
        let directory = tempfile::tempdir().unwrap();
        let store = store::open(&directory.path().join("census.db")).unwrap();
        let reader = store.reader().unwrap();
        let public = directory.path().join("public");
        // No file can take the place of a folder.
        let in_the_way = public.join(dump::NODES_FILE);
        std::fs::create_dir_all(&in_the_way).unwrap();
        let none = DomainList::default();
        let again = || {
            publish(
                &reader,
                &public,
                Timestamp(0),
                Calendar::REAL,
                &none,
                Force::No,
            )
        };
        let error = again().unwrap_err();
        assert!(matches!(error, PublishError::Half(_)), "{error}");
        assert!(!error.to_string().contains("stands"), "{error}");
        std::fs::remove_dir(&in_the_way).unwrap();
        assert_eq!(again().unwrap(), 0);
        // The list and the same gzipped, and nothing beside them.
        assert_eq!(std::fs::read_dir(&public).unwrap().count(), 2);
        assert_eq!(names(&public), Vec::<String>::new());
    }

    /// Invariants I7 and I11 together.
    #[tokio::test]
    async fn a_list_that_is_held_back_still_lets_go_of_who_opted_out_or_is_denied() {
        let directory = tempfile::tempdir().unwrap();
        let store = store::open(&directory.path().join("census.db")).unwrap();
        let writer = store.writer();
        let (now, calendar) = (Timestamp(1_000_000), Calendar::REAL);
        let hosts: Vec<_> = ["a", "b", "c", "d"]
            .map(|name| Host::parse(&format!("{name}.example.org")).unwrap())
            .to_vec();
        writer.add_now(hosts.clone(), now).await.unwrap();
        let alive = Verdict::Alive {
            software: "mastodon".to_owned(),
            version: None,
            private: Private::No,
        };
        for taken in writer
            .take_due(now, 9, vec![Jitter(0); 9], calendar)
            .await
            .unwrap()
        {
            writer
                .settle(transition(&taken.record, &alive, now, Jitter(0), calendar))
                .await
                .unwrap();
        }
        let reader = store.reader().unwrap();
        let none = DomainList::default();
        let published =
            publish(&reader, directory.path(), now, calendar, &none, Force::No).unwrap();
        writer.record_dump(now, published).await.unwrap();
        for host in &hosts[..2] {
            writer.opt_out(host, OptedOutBy::Owner, now).await.unwrap();
        }
        let denied = DomainList::parse(b"d.example.org\n", Path::new("deny")).unwrap();
        let outcome = publish(&reader, directory.path(), now, calendar, &denied, Force::No);
        assert!(
            matches!(outcome, Err(PublishError::HeldBack(_))),
            "{outcome:?}"
        );
        assert_eq!(names(directory.path()), ["c.example.org"]);
        let published =
            publish(&reader, directory.path(), now, calendar, &none, Force::Yes).unwrap();
        assert_eq!(
            published, 2,
            "the record of whom the operator denied is as it was"
        );
        writer.record_dump(now, published).await.unwrap();
        let published = publish(
            &reader,
            directory.path(),
            now,
            calendar,
            &denied,
            Force::Yes,
        )
        .unwrap();
        assert_eq!(
            (published, names(directory.path())),
            (1, vec!["c.example.org".to_owned()])
        );
    }
}
