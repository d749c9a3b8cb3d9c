//! The places among the containers, as many as the engine bears.
//!
//! In: who wants a place, and how the containers fare. Out: places, handed out in the order in which they were asked for. Refused: more at once than
//! [`Level`] allows, or a quarter of that while they make way for other work of ours. Where the number falls, nobody loses a place: those that become
//! free are not handed out again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::level::{Bounds, Level, Started, Strain};

/// Who waits for each place that is allowed, at most, while others could be kept waiting by it: as many as are opened for each at most. Only where many
/// hosts accept connections whose like did not lately are there more.
const WAITING_PER_PLACE: u32 = 8;

/// Of so many places one is left while they make way, and one at least: where containers have more processes that want to run than there are processors,
/// whatever else wants one gets a tenth of it.
const WAY_PART: u32 = 4;

/// All places. Cheap to clone: they are shared.
#[derive(Debug, Clone)]
pub struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    free: Arc<Semaphore>,
    state: Mutex<State>,
    /// Who waits for a place.
    waiting: AtomicU32,
}

#[derive(Debug)]
struct State {
    level: Level,
    /// Places that exist, taken or free: as many as are allowed, and those taken that are to go.
    existing: u32,
    /// How many [`Way`]s there are.
    ways: u32,
}

impl State {
    fn allowed(&self) -> u32 {
        let allowed = self.level.allowed();
        if self.ways > 0 {
            (allowed / WAY_PART).max(1)
        } else {
            allowed
        }
    }
}

/// The places make way until it is dropped.
#[derive(Debug)]
pub struct Way(Places);

/// A place among the containers, until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    permit: Option<OwnedSemaphorePermit>,
    under_way: u32,
    asked: Instant,
}

/// Waits until it is dropped.
struct Waiting<'places>(&'places AtomicU32);

impl<'places> Waiting<'places> {
    fn among(waiting: &'places AtomicU32) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Places {
    /// Between these bounds.
    pub fn new(bounds: Bounds) -> Self {
        let level = Level::new(bounds, Instant::now());
        let existing = level.allowed();
        let permits = usize::try_from(existing).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Shared {
            free: Arc::new(Semaphore::new(permits)),
            state: Mutex::new(State {
                level,
                existing,
                ways: 0,
            }),
            waiting: AtomicU32::new(0),
        }))
    }

    /// So many, whatever the engine does.
    pub fn fixed(places: u32) -> Self {
        Self::new(Bounds {
            least: places,
            most: places,
        })
    }

    /// Waits for a place, unless a crowd does already: then none is given. For whoever is not to stand in the way of others.
    pub async fn take_unless_crowded(&self) -> Option<Place> {
        // Those that make way are back before long.
        let allowed = self.lock().level.allowed();
        if self.0.waiting.load(Ordering::Relaxed) >= allowed.saturating_mul(WAITING_PER_PLACE) {
            return None;
        }
        Some(self.take().await)
    }

    /// Waits for a place.
    pub async fn take(&self) -> Place {
        let _waiting = Waiting::among(&self.0.waiting);
        // Never closed; if it were, whoever waits would meet its own time-out as with places that are all taken.
        let Ok(permit) = Arc::clone(&self.0.free).acquire_owned().await else {
            return std::future::pending().await;
        };
        let taken = self.taken();
        Place {
            places: self.clone(),
            permit: Some(permit),
            under_way: taken,
            asked: Instant::now(),
        }
    }

    /// Containers that may run at once now, and between which bounds that lies.
    pub fn allowed(&self) -> (u32, Bounds) {
        let state = self.lock();
        (state.allowed(), state.level.bounds())
    }

    /// The machine was looked at.
    pub fn strained(&self, strain: Strain) {
        self.change(|state, now| state.level.strained(strain, now));
    }

    /// Leaves a quarter of the places, one at least, until what is given is dropped.
    pub fn make_way(&self) -> Way {
        self.change(|state, _now| state.ways = state.ways.saturating_add(1));
        Way(self.clone())
    }

    fn taken(&self) -> u32 {
        let free = u32::try_from(self.0.free.available_permits()).unwrap_or(u32::MAX);
        self.lock().existing.saturating_sub(free)
    }

    /// Lets the state change, and makes as many places as it allows then.
    fn change(&self, learn: impl FnOnce(&mut State, Instant)) {
        let mut state = self.lock();
        learn(&mut state, Instant::now());
        let allowed = state.allowed();
        if allowed > state.existing {
            let more = allowed.saturating_sub(state.existing);
            self.0.free.add_permits(usize::try_from(more).unwrap_or(0));
            state.existing = allowed;
        } else {
            let less = state.existing.saturating_sub(allowed);
            let gone = self
                .0
                .free
                .forget_permits(usize::try_from(less).unwrap_or(0));
            let gone = u32::try_from(gone).unwrap_or(u32::MAX);
            state.existing = state.existing.saturating_sub(gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Numbers: half an update does no harm.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The container in it gave its first output.
    pub fn started(&self) {
        let started = Started {
            took: self.asked.elapsed(),
            under_way: self.under_way,
            asked: self.asked,
        };
        self.places
            .change(|state, now| state.level.started(started, now));
    }

    /// The engine failed at the container in it.
    pub fn engine_failed(&self) {
        self.places
            .change(|state, now| state.level.failed(self.asked, now));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.lock();
        let Some(permit) = self.permit.take() else {
            return;
        };
        if state.existing > state.allowed() {
            state.existing = state.existing.saturating_sub(1);
            permit.forget();
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.0
            .change(|state, _now| state.ways = state.ways.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn take_all(places: &Places) -> Vec<Place> {
        let mut taken = Vec::new();
        while let Ok(place) = tokio::time::timeout(Duration::ZERO, places.take()).await {
            taken.push(place);
        }
        taken
    }

    /// Starts until so many are allowed.
    async fn grow(places: &Places, to: u32) {
        for _ in 0..1000 {
            if places.allowed().0 >= to {
                return;
            }
            let taken = take_all(places).await;
            tokio::time::advance(Duration::from_millis(100)).await;
            taken.iter().for_each(Place::started);
        }
        panic!("{places:?}");
    }

    fn places(least: u32, most: u32) -> Places {
        Places::new(Bounds { least, most })
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_as_many_places_as_are_allowed() {
        let places = places(2, 8);
        assert_eq!(take_all(&places).await.len(), 2);
        grow(&places, 8).await;
        assert_eq!(take_all(&places).await.len(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_gets_a_place_that_comes_in_addition() {
        let places = places(1, 2);
        let first = places.take().await;
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { places.take().await }
        });
        for _ in 0..20 {
            first.started();
        }
        let second = tokio::time::timeout(Duration::from_secs(1), waiting).await;
        let second = second.unwrap().unwrap();
        assert_eq!(places.taken(), 2);
        drop((first, second));
        assert_eq!(places.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn where_fewer_are_allowed_free_places_go_at_once_and_taken_ones_when_they_are_free() {
        let places = places(1, 8);
        grow(&places, 8).await;
        let mut taken = take_all(&places).await;
        taken.truncate(7);
        for _ in 0..2 {
            taken[0].engine_failed();
        }
        assert_eq!(places.allowed().0, 6);
        assert_eq!(places.taken(), 7, "nobody loses a place");
        assert_eq!(take_all(&places).await.len(), 0);
        taken.pop();
        assert_eq!(
            take_all(&places).await.len(),
            0,
            "it is not handed out again"
        );
        taken.pop();
        assert_eq!(take_all(&places).await.len(), 1);
        drop(taken);
        assert_eq!(take_all(&places).await.len(), 6);
        grow(&places, 8).await;
        assert_eq!(take_all(&places).await.len(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quarter_of_the_places_is_left_while_they_make_way_and_nobody_loses_one() {
        let places = places(1, 8);
        grow(&places, 8).await;
        let mut taken = take_all(&places).await;
        let (way, other) = (places.make_way(), places.make_way());
        assert_eq!(places.allowed().0, 2);
        assert_eq!(places.taken(), 8, "nobody loses a place");
        taken.truncate(2);
        assert_eq!(take_all(&places).await.len(), 0);
        taken.truncate(1);
        assert_eq!(take_all(&places).await.len(), 1);
        drop(way);
        assert_eq!(places.allowed().0, 2, "somebody else still wants way");
        drop(other);
        assert_eq!(take_all(&places).await.len(), 7);
        drop(taken);
        let few = Places::fixed(2);
        let _way = few.make_way();
        assert_eq!(
            take_all(&few).await.len(),
            1,
            "the census never stands still"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_turned_away_for_places_that_make_way() {
        let places = Places::fixed(4);
        let _only = places.take().await;
        let _way = places.make_way();
        let waiting: Vec<_> = (0..4 * WAITING_PER_PLACE)
            .map(|_| {
                let places = places.clone();
                tokio::spawn(async move { places.take_unless_crowded().await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(waiting.iter().all(|one| !one.is_finished()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_upon_a_crowd_is_turned_away_and_the_living_wait_all_the_same() {
        let places = Places::fixed(1);
        let first = places.take().await;
        let mut crowd: Vec<_> = (0..WAITING_PER_PLACE)
            .map(|_| {
                let places = places.clone();
                tokio::spawn(async move { places.take_unless_crowded().await })
            })
            .collect();
        tokio::task::yield_now().await;
        let turned_away = tokio::time::timeout(Duration::ZERO, places.take_unless_crowded()).await;
        assert!(turned_away.is_ok_and(|place| place.is_none()));
        let living = tokio::spawn({
            let places = places.clone();
            async move { places.take().await }
        });
        tokio::task::yield_now().await;
        let gone = crowd.pop().unwrap();
        gone.abort();
        assert!(gone.await.is_err());
        drop(first);
        for waiting in crowd {
            assert!(waiting.await.unwrap().is_some(), "whoever waits is served");
        }
        drop(living.await.unwrap());
        assert!(places.take_unless_crowded().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fixed_number_stays() {
        let places = Places::fixed(3);
        let taken = take_all(&places).await;
        for place in &taken {
            (0..9).for_each(|_| place.engine_failed());
            places.strained(Strain::Over);
        }
        drop(taken);
        assert_eq!(take_all(&places).await.len(), 3);
    }
}
