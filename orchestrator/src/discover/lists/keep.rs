//! Reads public lists on their schedule, one at a time.
//!
//! A reading passes names to the gate or puts another list of public suffixes in force, and stores
//! what is remembered of the source. Hosts that opted out are not asked. A fault of ours only
//! causes a later retry.

use std::collections::BTreeMap;
use std::time::Duration;

use census::source::{Decision, Memory, Pause};
use census::time::{Calendar, Timestamp};
use protocol::{Host, ListOutcome};
use store::{Memories, StoreError};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{Source, suffix_list};
use crate::admit::gate::Origin;
use crate::admit::policy::SuffixPlace;
use crate::check::services::Services;
use crate::discover::reading::{self, Ended};
use report::list::{NamesRead, Outcome};

/// Interval between looks at the schedule: no list is read more often than every six hours.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The interval in the lab and wherever intervals are shortened.
const LOOK_EVERY_IN_HASTE: Duration = Duration::from_secs(1);

/// Pause of a source after a fault of ours, so that an outage is not filled with retries.
const AGAIN_AFTER: Duration = Duration::from_secs(600);

/// The sources, and which of the due ones must wait.
#[derive(Debug)]
struct Schedule {
    sources: Vec<Source>,
    calendar: Calendar,
    put_off: BTreeMap<String, Timestamp>,
}

impl Schedule {
    /// The source that has been due for longest, if any is due.
    fn next(&self, memories: &Memories, now: Timestamp) -> Option<&Source> {
        let due = |source: &&Source| -> Option<Timestamp> {
            let name = source.name.as_str();
            if self.put_off.get(name).is_some_and(|until| now < *until) {
                return None;
            }
            let interval = self.calendar.shortened(source.interval);
            let memory = memories.get(name);
            memory.map_or(Some(Timestamp(0)), |memory| memory.due(interval, now))
        };
        let waiting = self.sources.iter().filter_map(|source| {
            let due = due(&source).filter(|due| *due <= now)?;
            Some((due, source))
        });
        waiting
            .min_by_key(|(due, _)| *due)
            .map(|(_, source)| source)
    }

    fn put_off(&mut self, name: &str, until: Timestamp) {
        self.put_off.insert(name.to_owned(), until);
    }
}

/// Reads the sources until `shutdown`. A list of suffixes is stored at `place`.
///
/// # Errors
/// None; it is a `Result` so that it can be joined with the loop.
pub async fn keep(
    services: Services,
    sources: Vec<Source>,
    place: SuffixPlace,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let haste = services.calendar.divisor > 1;
    let every = if haste {
        LOOK_EVERY_IN_HASTE
    } else {
        LOOK_EVERY
    };
    let names: Vec<String> = sources
        .iter()
        .map(|source| source.name.to_string())
        .collect();
    let mut schedule = Schedule {
        sources,
        calendar: services.calendar,
        put_off: BTreeMap::new(),
    };
    let mut look = tokio::time::interval(every);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_clean = false;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            _ = look.tick() => {}
        }
        if !is_clean {
            is_clean = services
                .writer
                .forget_other_sources(names.clone())
                .await
                .is_ok();
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = round(&mut schedule, &place, &services) => {}
        }
    }
}

/// Reads all due sources, one after the other.
async fn round(schedule: &mut Schedule, place: &SuffixPlace, services: &Services) {
    loop {
        let memories = match services.writer.sources().await {
            Ok(memories) => memories,
            // The loop reports other failures of the same cause.
            Err(error) => return tracing::debug!(%error, "the sources' schedule could not be read"),
        };
        let Some(source) = schedule.next(&memories, services.now()).cloned() else {
            return;
        };
        let name = source.name.as_str();
        let before = memories.get(name).cloned().unwrap_or_default();
        match turn(&source, &before, place, services).await {
            Ok(after) => {
                tell(name, &before, &after);
                if let Err(error) = services.writer.remember_source(name, after).await {
                    tracing::warn!(source = name, %error, "the result of reading a source could not be written");
                    schedule.put_off(name, services.now().plus(AGAIN_AFTER));
                }
            }
            Err(Later { why, after }) => {
                tracing::info!(source = name, why, "a source is tried again later");
                schedule.put_off(name, services.now().plus(after.max(LOOK_EVERY)));
            }
        }
    }
}

/// Nothing was learned about the source: it was not asked, or something of ours failed.
#[derive(Debug)]
struct Later {
    why: String,
    after: Duration,
}

impl Later {
    fn fault(why: impl ToString) -> Self {
        Self {
            why: why.to_string(),
            after: AGAIN_AFTER,
        }
    }
}

/// Reads one source, and returns what is remembered of it.
async fn turn(
    source: &Source,
    before: &Memory,
    place: &SuffixPlace,
    services: &Services,
) -> Result<Memory, Later> {
    let trouble = |why: String| Ok(before.after_trouble(why, services.now()));
    let refused = refusal(&source.host, services).await;
    if let Some(why) = refused.map_err(Later::fault)? {
        return trouble(why);
    }
    match reading::list(&source.host, source.list(), services).await {
        Ended::Read(Outcome::Names(read)) => take_names(source, before, read, services).await,
        Ended::Read(Outcome::Suffixes(text)) => take_suffixes(before, text, place, services).await,
        // No source has that format.
        Ended::Read(Outcome::Proof(_)) => trouble("it is a proof, not a list".to_owned()),
        Ended::Read(Outcome::Unread(unread)) => trouble(unread.to_string()),
        Ended::Unreachable { reason, detail } => {
            let reason = reason.as_str().to_owned();
            trouble(format!("its host can't be reached, {reason}: {detail}"))
        }
        Ended::Deferred { why, retry_after } => Err(Later {
            why: format!("the gateway deferred it: {why:?}"),
            after: retry_after,
        }),
        Ended::Offline => Err(Later::fault("there is no network")),
        Ended::Fault(fault) => Err(Later::fault(fault)),
    }
}

/// Why the host of a list is not asked, if it must not be.
pub(super) async fn refusal(
    host: &Host,
    services: &Services,
) -> Result<Option<String>, StoreError> {
    if let Err(refusal) = services.gate.denies(host) {
        return Ok(Some(format!("not asked: {refusal}")));
    }
    let may_be_asked = services.writer.may_be_asked(host).await?;
    Ok((!may_be_asked).then(|| "not asked: its host opted out, or is parked".to_owned()))
}

async fn take_names(
    source: &Source,
    before: &Memory,
    read: NamesRead,
    services: &Services,
) -> Result<Memory, Later> {
    let count = u64::try_from(read.names.len()).unwrap_or(u64::MAX);
    let (after, decision) = before.after_reading(count, services.now());
    if decision == Decision::Take {
        let names = read.names.into_iter().collect();
        let learned = services
            .learn_from(names, &source.host, Origin::Operators)
            .await;
        learned.map_err(Later::fault)?;
        let is_whole = read.outcome == ListOutcome::Complete;
        let (source, dropped) = (source.name.as_str(), read.dropped);
        tracing::info!(
            source,
            names = count,
            dropped,
            is_whole,
            "a public list was read"
        );
    }
    Ok(after)
}

async fn take_suffixes(
    before: &Memory,
    text: String,
    place: &SuffixPlace,
    services: &Services,
) -> Result<Memory, Later> {
    let path = place.0.clone();
    let judged = tokio::task::spawn_blocking(move || {
        let in_force = suffix_list::in_force(&path)?;
        Ok(suffix_list::judge(text, in_force.as_deref(), &path))
    });
    let judged = judged.await.map_err(Later::fault)?;
    let accepted = match judged.map_err(|error: suffix_list::SwapError| Later::fault(error))? {
        Ok(accepted) => accepted,
        Err(refusal) => return Ok(before.after_trouble(refusal.to_string(), services.now())),
    };
    let rules = accepted.rules;
    let count = u64::try_from(rules.icann.saturating_add(rules.private)).unwrap_or(u64::MAX);
    let (after, decision) = before.after_reading(count, services.now());
    if decision == Decision::Take {
        let path = place.0.clone();
        let put = tokio::task::spawn_blocking(move || accepted.put(&path));
        put.await.map_err(Later::fault)?.map_err(Later::fault)?;
        services.gate.reload().await.map_err(Later::fault)?;
        let (icann, private) = (rules.icann, rules.private);
        tracing::info!(
            icann,
            private,
            "a list of public suffixes was read and is used now"
        );
    }
    Ok(after)
}

/// Logs what is new about a source: the same problem is logged once, however long it lasts.
fn tell(source: &str, before: &Memory, after: &Memory) {
    if let Some(pause) = after.paused {
        let what = pause_words(pause);
        return tracing::warn!(
            source,
            "{what}: it is paused, and no name was taken; inspect it, then `fedicensus sources resume {source}`"
        );
    }
    match (&before.trouble, &after.trouble) {
        (former, Some(trouble)) if former.as_ref() != Some(trouble) => {
            tracing::warn!(source, trouble, "a public list could not be read");
        }
        (Some(_), None) => tracing::info!(source, "a public list can be read again"),
        (_, _) => {}
    }
}

/// Why a source is paused, as text.
pub fn pause_words(pause: Pause) -> String {
    format!(
        "it held {} names, and {} at the reading before",
        pause.names, pause.before
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::lists::SourceName;
    use protocol::{ListFormat, ListPath};

    const HOUR_MS: i64 = 3_600_000;

    fn source(name: &str, hours: u64) -> Source {
        Source {
            name: SourceName::parse(name).unwrap(),
            host: Host::parse("a.example").unwrap(),
            path: ListPath::parse("/").unwrap(),
            format: ListFormat::Lines,
            interval: Duration::from_secs(hours * 3600),
            names_max: 1000,
        }
    }

    fn schedule(sources: &[Source]) -> Schedule {
        Schedule {
            sources: sources.to_vec(),
            calendar: Calendar::REAL,
            put_off: BTreeMap::new(),
        }
    }

    fn read_at(hours: i64) -> Memory {
        Memory::default()
            .after_reading(5, Timestamp(hours * HOUR_MS))
            .0
    }

    fn check(schedule: &Schedule, memories: &Memories, hours: i64, expect: Option<&str>) {
        let next = schedule.next(memories, Timestamp(hours * HOUR_MS));
        assert_eq!(next.map(|source| source.name.as_str()), expect, "{hours} h");
    }

    #[test]
    fn whoever_was_due_first_comes_first_and_nobody_before_its_time() {
        let schedule = schedule(&[source("a", 24), source("b", 6), source("c", 6)]);
        let none = Memories::new();
        check(&schedule, &none, 100, Some("a"));
        let mut memories = Memories::from([("a".to_owned(), read_at(100))]);
        check(&schedule, &memories, 100, Some("b"));
        memories.insert("b".to_owned(), read_at(101));
        memories.insert("c".to_owned(), read_at(102));
        check(&schedule, &memories, 106, None);
        check(&schedule, &memories, 107, Some("b"));
        check(&schedule, &memories, 130, Some("b"));
        memories.insert("b".to_owned(), read_at(130));
        check(&schedule, &memories, 130, Some("c"));
    }

    #[test]
    fn who_is_put_off_keeps_nobody_else_waiting() {
        let mut schedule = schedule(&[source("a", 6), source("b", 6)]);
        schedule.put_off("a", Timestamp(11 * HOUR_MS));
        let memories = Memories::from([("a".to_owned(), read_at(1)), ("b".to_owned(), read_at(3))]);
        check(&schedule, &memories, 8, None);
        check(&schedule, &memories, 9, Some("b"));
        check(&schedule, &memories, 10, Some("b"));
        check(&schedule, &memories, 11, Some("a"));
    }

    #[test]
    fn what_is_paused_is_never_its_turn() {
        let schedule = schedule(&[source("a", 6)]);
        let (paused, _) = read_at(1).after_reading(50, Timestamp(7 * HOUR_MS));
        let mut memories = Memories::from([("a".to_owned(), paused.clone())]);
        check(&schedule, &memories, 10_000, None);
        memories.insert("a".to_owned(), paused.resumed());
        check(&schedule, &memories, 8, Some("a"));
    }
}
