//! Counts and takes due hosts.

use std::sync::{Arc, PoisonError};

use census::class::PerClass;
use census::time::{Calendar, Timestamp};
use protocol::Host;
use scheduler::Event;
use scheduler::command::CanaryTurn;
use scheduler::demand::start_rate::{AHEAD, COUNTED_MAX, Load};
use scheduler::event::{NotAdmitted, Taken, Trigger};
use store::{Location, Reader, StoreError};

use super::parts::store_trouble;
use super::state::Daemon;
use crate::admit::gate::Brought;
use crate::check::services::Services;

impl Daemon {
    pub(super) fn count_due(&mut self, most: u32, with_load: bool) {
        let (reader, now) = (Arc::clone(&self.reader), self.services.now());
        let calendar = self.services.calendar;
        let count = move || -> Result<Event, StoreError> {
            // One count at a time; a count that panicked left nothing half done.
            let reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            read_demand(&reader, now, most, with_load, calendar)
        };
        let location = self.store.location().clone();
        self.asks.spawn(async move {
            let counted = tokio::task::spawn_blocking(count).await;
            let counted = counted.unwrap_or(Err(StoreError::Closed));
            or_failed(counted, &location)
        });
    }

    pub(super) fn take_due(&mut self, wanted: PerClass<u32>) {
        let (services, now) = (self.services.clone(), self.services.now());
        let location = self.store.location().clone();
        self.work
            .spawn(async move { or_failed(take_due(wanted, &services, now).await, &location) });
    }

    pub(super) fn take_canary(&mut self, turn: CanaryTurn) {
        let CanaryTurn { host, wish, left } = turn;
        let (services, now) = (self.services.clone(), self.services.now());
        self.work.spawn(async move {
            Ok(match take_one(host, &services, now).await {
                Ok(taken) => Event::TakenOne {
                    taken,
                    trigger: Trigger::Canary(wish),
                },
                Err(_why_not) => Event::CanaryRefused { wish, left },
            })
        });
    }
}

fn or_failed(event: Result<Event, StoreError>, location: &Location) -> anyhow::Result<Event> {
    event.or_else(|error| {
        let what = store_trouble(error, location)?;
        Ok(Event::StoreFailed { what })
    })
}

/// Counts due hosts, and measures the load if requested: the answer to
/// [`scheduler::Command::CountDue`]. Blocks.
pub fn read_demand(
    reader: &Reader,
    now: Timestamp,
    most: u32,
    with_load: bool,
    calendar: Calendar,
) -> Result<Event, StoreError> {
    let load = if with_load {
        Some(read_load(reader, now, calendar)?)
    } else {
        None
    };
    let waiting = reader.due_by_class(now, most)?;
    let next_due = if waiting.sum() == 0 {
        reader.next_due()?
    } else {
        None
    };
    Ok(Event::Demand {
        waiting,
        next_due,
        load,
    })
}

/// Reads how much work there is. Blocks.
pub fn read_load(reader: &Reader, now: Timestamp, calendar: Calendar) -> Result<Load, StoreError> {
    let ahead = now.plus(calendar.shortened(AHEAD));
    Ok(Load {
        late: reader.due_between(Timestamp(i64::MIN), now, COUNTED_MAX)?,
        coming: reader.due_between(now, ahead, COUNTED_MAX)?,
    })
}

async fn take_due(
    wanted: PerClass<u32>,
    services: &Services,
    now: Timestamp,
) -> Result<Event, StoreError> {
    let jitters = services.random.jitters(wanted.sum());
    let taking = services
        .writer
        .take_due(now, wanted, jitters, services.calendar);
    let (mut hosts, mut not_admitted) = (Vec::new(), Vec::new());
    for taken in taking.await? {
        match not_admitted_now(&taken, services, now).await {
            Some(refused) => not_admitted.push(refused),
            None => hosts.push(of_store(taken)),
        }
    }
    Ok(Event::Taken {
        hosts,
        not_admitted,
    })
}

/// Parks a host whose name the rules no longer admit. They may have changed since the name was
/// admitted, and such a host never stops the daemon. A host that the operator denies is
/// not checked.
async fn not_admitted_now(
    taken: &store::Taken,
    services: &Services,
    now: Timestamp,
) -> Option<NotAdmitted> {
    let host = taken.record.host.clone();
    if let Err(refusal) = services.gate.denies(&host) {
        // Its record stays unchanged: once the line is removed, everything is as before.
        return Some(NotAdmitted {
            host,
            due: taken.record.due,
            why: format!("not asked: {refusal}"),
        });
    }
    let refusal = services.gate.names().admit_host(host.clone()).err()?;
    tracing::warn!(%host, %refusal, "its name is no longer valid for the census: parked");
    // A parked host has no due time, whatever time it is released with. A host that could not be
    // parked is tried again within the hour.
    if let Err(error) = services.writer.park(&host, now).await {
        tracing::error!(%host, %error, "it could not be parked");
    }
    Some(NotAdmitted {
        host,
        due: None,
        why: "its name is no longer admitted".to_owned(),
    })
}

/// Takes a named host, whatever its due time, or returns why not.
pub(super) async fn take_one(
    host: Host,
    services: &Services,
    now: Timestamp,
) -> Result<Taken, String> {
    let names = services.gate.names();
    let admitted = names.admit_host(host.clone());
    let host = admitted.map_err(|refusal| format!("{host}: {refusal}"))?;
    let brought = services.gate.brought(vec![host.clone()], now).await;
    for (host, brought) in brought.map_err(|error| error.to_string())? {
        if let Brought::Refused(refusal) = brought {
            return Err(format!("{host}: {refusal}"));
        }
    }
    let jitter = services.random.jitter();
    let taken = services
        .writer
        .take_one(&host, now, jitter, services.calendar);
    match taken.await {
        Ok(Some(taken)) => Ok(of_store(taken)),
        Ok(None) => Err(format!(
            "{host} opted out or was removed by a moderator; it is not checked"
        )),
        Err(StoreError::InFlight { .. }) => Err(format!(
            "{host} is being checked at this moment, or waits for confirmation"
        )),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) async fn admit_seeds(
    seeds: &[Host],
    services: &Services,
    now: Timestamp,
) -> anyhow::Result<()> {
    let names = services.gate.names();
    let mut admitted = Vec::new();
    for host in seeds {
        match names.admit_host(host.clone()) {
            Ok(host) => admitted.push(host),
            Err(refusal) => tracing::warn!(%host, %refusal, "this seed is not admitted"),
        }
    }
    for (host, brought) in services.gate.brought(admitted, now).await? {
        if let Brought::Refused(refusal) = brought {
            tracing::warn!(%host, %refusal, "this seed is not admitted");
        }
    }
    Ok(())
}

fn of_store(taken: store::Taken) -> Taken {
    Taken {
        record: Box::new(taken.record),
        class: taken.class,
        faults: taken.faults,
    }
}
