//! The hosts that a census knows from its beginning, as in the middle of a long census.

use std::time::Duration;

use census::state::{Record, State};
use census::time::{Calendar, DOUBLINGS_MAX, Jitter, Timestamp};
use protocol::Host;
use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::measure::Measure;
use crate::stage::Stage;
use crate::world::truth::{Now, Truth};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Records imported at once: a few megabytes.
const IMPORTED_AT_ONCE: usize = 5000;

/// Names that never responded were added within this many days before the start, so that none is
/// forgotten at once and all are within a year.
const KNOWN_FOR_DAYS: u32 = 300;

/// Adds all hosts of the world except a farm's: responding hosts were seen within their day, dead
/// ones are checked every four weeks, half of them responded once. All are at random points of
/// their interval.
pub(super) async fn import(
    stage: &Stage,
    truth: &Truth,
    measure: &mut Measure,
    seed: u64,
    start: Timestamp,
) -> anyhow::Result<()> {
    let mut chance = StdRng::seed_from_u64(seed);
    let writer = &stage.services.writer;
    let mut records = Vec::new();
    for (number, known) in (0..).zip(&truth.hosts.hosts) {
        if truth.farm().contains(&number) {
            continue;
        }
        let is_up = truth.now(Some(number)) == Now::Up;
        let record = record(known.host.clone(), is_up, start, &mut chance);
        measure.imported(&record, number);
        records.push(record);
        if records.len() == IMPORTED_AT_ONCE {
            writer.import(std::mem::take(&mut records)).await?;
        }
    }
    writer.import(records).await?;
    stage.group().await
}

/// The record of a host that has been known for a long time.
fn record(host: Host, is_up: bool, start: Timestamp, chance: &mut StdRng) -> Record {
    let first_seen = start.minus(DAY * chance.random_range(40..KNOWN_FOR_DAYS));
    let jitter = Jitter(chance.random());
    let (state, interval) = if is_up {
        (State::Alive, Calendar::REAL.day(jitter))
    } else {
        (State::Dead, Calendar::REAL.weeks(DOUBLINGS_MAX, jitter))
    };
    let last_checked = start.minus(interval.mul_f64(chance.random()));
    let once_alive: bool = chance.random();
    let last_alive = match (is_up, once_alive) {
        (true, _) => Some(last_checked),
        (false, true) => Some(start.minus(DAY * 39)),
        (false, false) => None,
    };
    let mut record = Record::discovered(host, first_seen, last_checked.plus(interval));
    record.state = state;
    record.instance.software = last_alive.map(|_| "mastodon".to_owned());
    record.last_alive = last_alive;
    record.last_checked = Some(last_checked);
    record.doublings = if is_up { 0 } else { DOUBLINGS_MAX };
    record.alive_count = last_alive.map_or(0, |_| chance.random_range(1..100));
    record
}
