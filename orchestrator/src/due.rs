//! Step 1 of 7: host rows and the clock → hosts to check.
//!
//! In: how much room there is. Out: of each class its share of the room (`census::share`), those first that have been due longest, each already marked
//! in flight and given its ordinary next time, in one write before its check starts, so that no crash can make a host loop. Refused: more than there is
//! room for, or than the rate of starts allows ([`crate::starts`]).

use std::time::Duration;

use census::share::{Room, Shares};
use census::time::Timestamp;
use store::{Store, StoreError, Taken};
use tokio::time::Instant;

use crate::starts::{Load, MEASURE_EVERY, PORTION, Starts};
use crate::tools::Tools;

/// How long the answer "nothing is due" is trusted: candidates come in while checks run, and some of them are due at once.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Early asks a minute that are no burden: ten a second, some milliseconds each.
const EARLY_ASKS_MAX: u32 = 600;

/// Early asks are put off this many times as long at most: half an hour becomes the wait, against a fortnight that a host stays listed.
const STRETCH_MAX: u32 = 60;

/// Hosts that have lived ask again before the turn that they were promised. Whoever makes ten thousands of living names would have them ask
/// thousands of times a second: the more ask early, the longer each of them waits.
#[derive(Debug, Default)]
pub struct EarlyAsks {
    minute: i64,
    this_minute: u32,
    last_minute: u32,
}

impl EarlyAsks {
    /// Counts one, and gives for how long it is put off: `wait`, stretched while there are too many, and at most what it was `told`.
    pub fn put_off(&mut self, wait: Duration, told: Duration, now: Timestamp) -> Duration {
        let minute = now.0.div_euclid(60_000);
        if minute != self.minute {
            let follows = minute.checked_sub(self.minute) == Some(1);
            self.last_minute = if follows { self.this_minute } else { 0 };
            (self.minute, self.this_minute) = (minute, 0);
        }
        self.this_minute = self.this_minute.saturating_add(1);
        let busiest = self.last_minute.max(self.this_minute);
        let stretch = (busiest / EARLY_ASKS_MAX)
            .saturating_add(1)
            .min(STRETCH_MAX);
        wait.saturating_mul(stretch).min(told)
    }
}

/// Knows when it is worth asking the store again, whose turn it is, and how fast hosts may be opened.
#[derive(Debug)]
pub struct Due {
    look_at: Timestamp,
    shares: Shares,
    starts: Starts,
    /// When the load was last measured.
    measured: Option<Instant>,
}

impl Due {
    /// Asks at once, and opens so many hosts a second at least.
    pub fn new(starts_per_second: u32) -> Self {
        Self {
            look_at: Timestamp(i64::MIN),
            shares: Shares::default(),
            starts: Starts::new(starts_per_second, Instant::now()),
            measured: None,
        }
    }

    /// Hosts that are opened a second at most, as the load is.
    pub fn rate(&self) -> f64 {
        self.starts.rate()
    }

    /// A host that was taken was out of turn by the gateway's paces, and not dialled. Crowds of such hosts, who ask again and again, would use
    /// up the rate of those who are in turn.
    pub fn was_out_of_turn(&mut self) {
        self.starts.returned();
    }

    /// A host was out of turn because the gateway had no dial to spare: more were opened than it may dial.
    pub fn ran_out_of_dials(&mut self) {
        self.starts.lower(Instant::now());
    }

    /// When [`Due::take`] is worth calling again.
    pub fn look_at(&self) -> Timestamp {
        self.look_at
    }

    /// Something may have become due.
    pub fn poke(&mut self) {
        self.look_at = Timestamp(i64::MIN);
    }

    /// Takes the hosts whose turn it is, at most `room.free`.
    ///
    /// # Errors
    /// When the store fails; nothing is in flight then that was not before.
    pub async fn take(
        &mut self,
        mut room: Room,
        tools: &Tools,
        store: &Store,
    ) -> Result<Vec<Taken>, StoreError> {
        let now = tools.now();
        // A clock that was set back must not make the daemon sleep until it is where it was.
        let looks_far_ahead = self.look_at > now.plus(LOOK_AGAIN_AFTER);
        if room.free == 0 || (now < self.look_at && !looks_far_ahead) {
            return Ok(Vec::new());
        }
        self.measure(now, tools, store).await;
        room.free = room.free.min(self.starts.ready(Instant::now()));
        if room.free == 0 {
            self.look_at = now.plus(self.starts.wait());
            return Ok(Vec::new());
        }
        let jitters = tools.dice.jitters(room.free);
        let taking = tools
            .writer
            .take_due(now, room, self.shares, jitters, tools.calendar);
        let (taken, shares) = taking.await?;
        self.shares = shares;
        let count = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        self.starts.spend(count);
        // One write for all that come to have room within a portion's time, and not one for each.
        self.look_at = now.plus(self.starts.wait().max(PORTION));
        if count < room.free {
            self.look_at = match next_due(store).await {
                Ok(next) => next
                    .unwrap_or(now.plus(LOOK_AGAIN_AFTER))
                    .clamp(now.plus(PORTION), now.plus(LOOK_AGAIN_AFTER)),
                Err(error) if taken.is_empty() => return Err(error),
                // These are marked in flight and must be checked; the next look meets the error again.
                Err(_again) => now,
            };
        }
        Ok(taken)
    }

    /// Measures the load when it is time to. What can't be read leaves the rate as it was: the take that follows meets the trouble and tells it.
    async fn measure(&mut self, now: Timestamp, tools: &Tools, store: &Store) {
        let is_fresh = |at: Instant| at.elapsed() < MEASURE_EVERY;
        if self.measured.is_some_and(is_fresh) {
            return;
        }
        self.measured = Some(Instant::now());
        if let Ok(load) = load(store, now, tools).await {
            self.starts.measured(load, tools.calendar, Instant::now());
        }
    }
}

async fn load(store: &Store, now: Timestamp, tools: &Tools) -> Result<Load, StoreError> {
    let (reader, calendar) = (store.reader()?, tools.calendar);
    tokio::task::spawn_blocking(move || Load::read(&reader, now, calendar))
        .await
        .map_err(|_panicked| StoreError::Closed)?
}

async fn next_due(store: &Store) -> Result<Option<Timestamp>, StoreError> {
    let reader = store.reader()?;
    tokio::task::spawn_blocking(move || reader.next_due())
        .await
        .map_err(|_panicked| StoreError::Closed)?
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use protocol::Host;

    use super::*;

    const WAIT: Duration = Duration::from_secs(30);
    const TOLD: Duration = Duration::from_secs(48 * 3600);

    /// `count` asks within a minute; what the last one is put off.
    fn minute(early: &mut EarlyAsks, minute: i64, count: u32) -> Duration {
        let mut last = Duration::ZERO;
        for _ in 0..count {
            last = early.put_off(WAIT, TOLD, Timestamp(minute * 60_000));
        }
        last
    }

    #[test]
    fn few_early_asks_wait_as_they_should_and_many_wait_longer() {
        let mut early = EarlyAsks::default();
        assert_eq!(minute(&mut early, 1, EARLY_ASKS_MAX - 1), WAIT);
        assert_eq!(minute(&mut early, 2, 1), WAIT);
        assert_eq!(minute(&mut early, 3, EARLY_ASKS_MAX * 5), WAIT * 6);
        assert_eq!(
            minute(&mut early, 4, 1),
            WAIT * 6,
            "the minute before counts"
        );
        assert_eq!(minute(&mut early, 9, 1), WAIT, "that was long ago");
        assert_eq!(
            minute(&mut early, 10, EARLY_ASKS_MAX * 100),
            WAIT * STRETCH_MAX
        );
    }

    #[test]
    fn nobody_waits_longer_than_its_turn() {
        let mut early = EarlyAsks::default();
        minute(&mut early, 1, EARLY_ASKS_MAX * 100);
        let told = WAIT * 2;
        assert_eq!(early.put_off(WAIT, told, Timestamp(60_000)), told);
    }

    #[test]
    fn a_clock_at_the_ends_of_time_does_no_harm() {
        let mut early = EarlyAsks::default();
        for now in [i64::MIN, i64::MAX, 0] {
            assert_eq!(early.put_off(WAIT, TOLD, Timestamp(now)), WAIT);
        }
    }

    fn tools(store: &Store) -> Tools {
        crate::tools::tests::tools(store, Path::new("/nonexistent"))
    }

    /// They are marked in flight: whoever forgot them now would never ask them again before a restart.
    #[tokio::test]
    async fn what_was_taken_is_not_lost_when_the_next_look_fails() {
        let directory = tempfile::tempdir().unwrap();
        let (data, away) = (directory.path().join("data"), directory.path().join("away"));
        std::fs::create_dir(&data).unwrap();
        let store = store::open(&data.join("census.db")).unwrap();
        let tools = tools(&store);
        let host = Host::parse("a.example.org").unwrap();
        tools.writer.add_now(vec![host], tools.now()).await.unwrap();
        // The writer's file stays open; a new reader finds none.
        std::fs::rename(&data, &away).unwrap();
        let mut due = Due::new(1000);
        let taken = due.take(Room::empty(5), &tools, &store).await.unwrap();
        assert_eq!(taken.len(), 1);
        let again = due.take(Room::empty(5), &tools, &store).await;
        assert!(again.is_err(), "and it is said");
    }

    async fn fifty_that_are_due() -> (tempfile::TempDir, Store, Tools) {
        let directory = tempfile::tempdir().unwrap();
        let store = store::open(&directory.path().join("census.db")).unwrap();
        let tools = tools(&store);
        let hosts = (0..50).map(|n| Host::parse(&format!("n{n}.example.org")).unwrap());
        let now = tools.now();
        tools.writer.add_now(hosts.collect(), now).await.unwrap();
        (directory, store, tools)
    }

    #[tokio::test]
    async fn no_more_is_taken_than_the_rate_allows_and_the_rest_is_looked_for_soon() {
        let (_directory, store, tools) = fifty_that_are_due().await;
        let mut due = Due::new(1);
        let room = Room::empty(40);
        assert_eq!(due.take(room, &tools, &store).await.unwrap().len(), 1);
        assert_eq!(due.take(room, &tools, &store).await.unwrap().len(), 0);
        let wait = due.look_at().since(tools.now());
        assert!(
            wait > Duration::ZERO && wait <= Duration::from_secs(2),
            "{wait:?}"
        );
    }

    /// Else each check that ends would be followed by a transaction of its own for the next.
    #[tokio::test]
    async fn what_comes_to_have_room_within_a_portions_time_is_taken_in_one_write() {
        let (_directory, store, tools) = fifty_that_are_due().await;
        let now = tools.now();
        let mut due = Due::new(1000);
        let room = Room::empty(3);
        assert_eq!(due.take(room, &tools, &store).await.unwrap().len(), 3);
        let until = due.look_at().since(now);
        assert!(until >= PORTION, "{until:?}");
        due.poke();
        assert_eq!(due.take(room, &tools, &store).await.unwrap().len(), 3);
    }
}
