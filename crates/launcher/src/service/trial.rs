//! Measures before the first check which network namespaces take the engine less time.
//!
//! Probe containers run in both ways in turns. The shortest time of each way counts, because other
//! work on the machine only adds time.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::{Engine, EngineKind};
use crate::service::guest::{Namespaces, Way};
use crate::service::probe_container::probe;
use crate::service::state::Shared;
use crate::wire::LaunchFault;

/// Most containers per way. A single one may coincide with a disk that writes back.
const CONTAINERS: u32 = 3;

/// Slots are used if a container with its own namespace takes at least this many times as long. A
/// smaller gain is not worth the holders' memory. Docker 20.10 takes twice as long.
const GAIN_MIN: f64 = 1.2;

/// The time of a container from create to removal, the shortest of several, for each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trial {
    own: Duration,
    slots: Duration,
}

impl Trial {
    /// Runs containers from this image, with this runtime, in both ways.
    ///
    /// # Errors
    /// Fails if one of them can't be run or lacks a limit.
    pub(crate) async fn run<E: Engine>(
        shared: &Shared<E>,
        kind: EngineKind,
        image: &str,
        runtime: Option<&'static str>,
    ) -> Result<Self, LaunchFault> {
        let mut shortest = Self {
            own: Duration::MAX,
            slots: Duration::MAX,
        };
        // Started now, so that it does not count as part of its first guest.
        shared.ready_holder(image).await?;
        for _ in 0..CONTAINERS {
            for (namespaces, shortest) in [
                (Namespaces::Own, &mut shortest.own),
                (Namespaces::Slots, &mut shortest.slots),
            ] {
                let start = Instant::now();
                let way = Way {
                    namespaces,
                    runtime,
                };
                probe(shared, kind, image, way).await?;
                *shortest = start.elapsed().min(*shortest);
            }
            // The very first container met cold caches. If it was faster even so, the result is
            // clear.
            if shortest.own < shortest.slots {
                break;
            }
        }
        Ok(shortest)
    }

    pub(crate) fn chosen(self) -> Namespaces {
        if self.own.as_secs_f64() >= self.slots.as_secs_f64() * GAIN_MIN && self.own > self.slots {
            Namespaces::Slots
        } else {
            Namespaces::Own
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a container takes {} ms in a slot and {} ms with a namespace of its own",
            self.slots.as_millis(),
            self.own.as_millis()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_where_they_save_a_sixth() {
        for (own, slots, expect) in [
            (400, 200, Namespaces::Slots),
            (120, 100, Namespaces::Slots),
            (119, 100, Namespaces::Own),
            (100, 100, Namespaces::Own),
            (200, 400, Namespaces::Own),
            (0, 0, Namespaces::Own),
        ] {
            let trial = Trial {
                own: Duration::from_millis(own),
                slots: Duration::from_millis(slots),
            };
            assert_eq!(trial.chosen(), expect, "{trial}");
        }
    }
}
