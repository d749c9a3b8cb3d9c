//! Step 1 of 7 within the loop: takes what is due and starts its checks.

use census::share::Room;
use store::Taken;

use super::{Asked, Daemon, Finished};
use crate::check::{self, Check};
use crate::fault::Fault;

impl Daemon {
    /// How many more hosts may be opened, and who is under way. Fewer in proportion while fewer containers are allowed: whoever is opened waits for a
    /// place.
    pub(super) fn room(&self) -> Room {
        let (allowed, bounds) = self.tools.places.allowed();
        let most = in_proportion(self.config.opens_max, allowed, bounds.most);
        let most = self.outage.room(most);
        self.under_way.room(most)
    }

    /// ① Takes what is due and starts its checks.
    pub(super) async fn fill(&mut self) {
        if self.outage.is_on() {
            return;
        }
        match self.due.take(self.room(), &self.tools, &self.store).await {
            Ok(taken) => {
                for taken in taken {
                    self.start_if_admitted(taken).await;
                }
            }
            Err(error) => self.fail_everything(&Fault::Store(error)),
        }
    }

    /// The rule for names may have changed since this one came in: then it is parked, and never stops the daemon (design §8). Whom the operator
    /// denies is not asked.
    async fn start_if_admitted(&mut self, taken: Taken) {
        let host = taken.record.host.clone();
        if let Err(refusal) = self.tools.door.denies(&host) {
            // Its record stays as it is: without the line all is as before.
            self.in_flight.insert(host.clone(), None);
            let due = taken.record.due.unwrap_or_else(|| self.tools.again_soon());
            self.give_back(host, due, &format!("not asked: {refusal}"));
            return;
        }
        let Err(refusal) = self.tools.door.names().admit_host(host.clone()) else {
            self.start(taken, Asked::InTurn);
            return;
        };
        tracing::warn!(%host, %refusal, "no longer a name for the census: parked");
        self.in_flight.insert(host.clone(), None);
        let now = self.tools.now();
        match self.tools.writer.park(&host, now).await {
            Ok(_parked) => self.give_back(host, now, "its name is no longer admitted"),
            Err(error) => {
                self.stuck.push(host);
                self.fail_everything(&Fault::Store(error));
            }
        }
    }

    pub(super) fn start(&mut self, taken: Taken, asked: Asked) {
        let watcher = match &asked {
            Asked::ByName(watcher) => Some(watcher.clone()),
            Asked::InTurn | Asked::Canary(_) => None,
        };
        let mut check = Check::new(&taken.record, &self.tools, watcher);
        check.wish = self.confirm.wish_for(&check.host);
        if let Asked::Canary(wish) = asked {
            self.canaries.bid(&mut check, wish);
        }
        let host = check.host.clone();
        let tools = self.tools.clone();
        // Goes with the task, however it ends.
        let mut counted = self.under_way.enter(taken.class);
        let task = self.checks.spawn(async move {
            let ended = check::run(&check, &mut counted, &tools).await;
            Finished {
                record: Box::new(taken.record),
                check,
                ended,
            }
        });
        self.in_flight.insert(host, Some(task));
    }
}

/// Of `whole`, what `part` is of `all`: no less than `part`, since the settings make `whole` no less than `all`.
fn in_proportion(whole: u32, part: u32, all: u32) -> u32 {
    let scaled = u64::from(whole) * u64::from(part) / u64::from(all.max(1));
    u32::try_from(scaled).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_opened_in_proportion_to_the_containers_and_one_a_container_at_least() {
        assert_eq!(in_proportion(16, 4, 4), 16);
        assert_eq!(in_proportion(16, 1, 4), 4);
        assert_eq!(in_proportion(5, 3, 5), 3);
        assert_eq!(in_proportion(64, 5, 64), 5);
        assert_eq!(in_proportion(9, 2, 0), 18);
    }
}
