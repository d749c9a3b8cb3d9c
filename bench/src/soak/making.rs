//! Creates a database in the middle of its life, through the store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admission::{Names, Reserved, Suffixes};
use anyhow::Result;
use census::state::{Record, StateName};
use census::time::Timestamp;
use futures_util::future::try_join_all;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use store::Writer;

use crate::history;
use crate::world::World;

/// Records in one request to the writer, which shares transactions among waiting requests.
const RECORDS: usize = 500;

const REQUESTS: usize = 16;

/// The seed of the census: the same each time, except for the time.
const SEED: u64 = 1;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    /// Number of the hosts' past verdicts.
    pub(crate) verdicts: u64,
    pub(crate) bytes: u64,
}

/// Creates the census of `world` in its state at `now`, grouped, in a new database.
pub(crate) async fn make(
    database: &Path,
    world: World,
    now: Timestamp,
    late: Duration,
) -> Result<Made> {
    let store = store::open(database)?;
    let writer = store.writer();
    let mut chance = StdRng::seed_from_u64(SEED);
    for together in world.shuffled(&mut chance).chunks(RECORDS * REQUESTS) {
        let mut requests = Vec::with_capacity(REQUESTS);
        for numbers in together.chunks(RECORDS) {
            let records = numbers
                .iter()
                .map(|number| world.record(*number, now, late, &mut chance))
                .collect::<Result<Vec<Record>>>()?;
            requests.push(writer.import(records));
        }
        try_join_all(requests).await?;
    }
    group(&writer).await?;
    drop(writer);
    store.close();
    let verdicts = history::fill(database)?;
    Ok(Made {
        verdicts,
        bytes: std::fs::metadata(database)?.len(),
    })
}

/// Groups all hosts by registered domain, as the daemon does in the background.
async fn group(writer: &Writer) -> Result<()> {
    let names = names();
    let mut after = Some(0);
    while let Some(last) = after {
        after = writer.group_new(Arc::clone(&names), last).await?;
    }
    Ok(())
}

fn names() -> Arc<Names> {
    Arc::new(Names {
        suffixes: Suffixes::compiled(),
        reserved: Reserved::AllowInLab,
    })
}

pub(crate) fn states(database: &Path) -> Result<Vec<(StateName, u64)>> {
    Ok(store::open_read_only(database)?.counts()?.by_state)
}

#[cfg(test)]
mod tests {
    use lab::crowd::Crowd;
    use store::Depth;

    use super::*;

    #[tokio::test]
    async fn what_is_made_is_sound_and_grouped() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("census.db");
        let world = World::new(Crowd::new(100, 1), 100, 400);
        let now = Timestamp(1_795_000_000_000);
        let made = make(&database, world, now, Duration::ZERO).await.unwrap();
        // Ten for each that ever responded, three for each of the others.
        assert!((100 * 10 + 300 * 3..400 * 10).contains(&made.verdicts));
        let alive = states(&database).unwrap();
        assert!(alive.contains(&(StateName::Alive, 100)));
        let reader = store::open_read_only(&database).unwrap();
        let sound = reader.soundness(Depth::Whole, Duration::from_secs(60));
        let findings = sound.unwrap().findings;
        assert!(findings.is_empty(), "{findings:?}");
        let store = store::open(&database).unwrap();
        let left = store.writer().group_new(names(), 0).await.unwrap();
        assert_eq!(left, None, "nobody is left to be grouped");
        store.close();
    }
}
