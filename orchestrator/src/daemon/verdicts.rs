//! What an ended check means: it is settled, doubted, or its host is given back.

use std::time::Duration;

use census::state::Record;
use census::time::{Jitter, Timestamp};
use gateway::control::{Deferral, Family};

use super::{Daemon, Finished, InDoubt, writes};
use crate::check::{Check, Ended};
use crate::confirm::{Dns, Doubt, Outcome, Witness};
use crate::fault::{Fault, Reach, Whose};
use crate::metrics::labels::EndedAs;
use crate::silence::Over;

/// A host whose failure is in doubt is asked again after this and up to twice as much: when its paces allow it, and while what was shown to
/// work still does.
pub(super) const ASK_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Longest told wait that a host which has lived keeps to, and up to as much again. It asks again without a promise: that costs no look-up,
/// unless it failed before.
const LIVED_WAIT_MAX: Duration = Duration::from_secs(30);

/// A host that met an outage is due again after this and up to ten seconds more; nothing is taken before the outage is over.
const OUTAGE_OVER_AFTER: Duration = Duration::from_secs(5);

impl Daemon {
    /// What an ended check means: settle it, doubt it, or give the host back.
    pub(super) fn conclude(
        &mut self,
        Finished {
            record,
            check,
            ended,
        }: Finished,
    ) {
        let host = check.host.clone();
        let now = self.tools.now();
        let duration = now.since(check.began);
        let duration_ms = duration.as_millis();
        self.tools.meters.check(ended_as(&ended), duration);
        match ended {
            Ended::Verdict {
                verdict,
                witness,
                doubt,
            } => {
                let (word, reason) = crate::explain::verdict_words(&verdict);
                tracing::info!(%host, check.id = %check.id, verdict = word, reason, duration_ms, "checked");
                self.live.count(now);
                self.tools.meters.verdict(&verdict, now);
                if let Some(witness) = witness {
                    self.hear_the_living(witness, now);
                    for (failure, outcome) in self.confirm.alive(&host, witness, now) {
                        self.silence.witnessed(now).iter().for_each(tell_it_is_over);
                        match outcome {
                            Outcome::Counts => self.settle_confirmed(failure),
                            Outcome::AskAgain => self.ask_again(failure, now),
                        }
                    }
                }
                if verdict.is_failing() {
                    let kind = if reason.is_empty() {
                        word
                    } else {
                        bare(&reason)
                    };
                    self.silence.fail(kind, &doubt.families, now);
                    check.step(|| format!("verdict: {word} {reason}; it counts once other hosts have come out alive"));
                    self.doubt(InDoubt::Verdict(record, verdict), doubt, check.began, now);
                } else {
                    check.step(|| format!("verdict: {word} {reason}"));
                    self.write(host, writes::Write::Settle(record, verdict));
                }
            }
            Ended::Deferred { why, retry_after } => {
                self.put_off(&record, &check, (why, retry_after), now);
            }
            Ended::Offline => {
                self.tools.meters.offline();
                check.step(|| "offline: no verdict, asked again soon".to_owned());
                self.pause("the gateway has no network".to_owned());
                let due = now.plus(writes::spread(OUTAGE_OVER_AFTER, self.tools.dice.jitter()));
                self.give_back(host, due, "we had no network");
            }
            Ended::Fault(fault) => {
                check.step(|| format!("fault of ours, nothing counted: {fault}"));
                self.fault(record, &check, &fault, now);
            }
        }
    }

    /// The gateway had no turn for it, or no answer.
    fn put_off(
        &mut self,
        record: &Record,
        check: &Check,
        (why, retry_after): (Deferral, Duration),
        now: Timestamp,
    ) {
        let host = record.host.clone();
        tracing::debug!(%host, ?why, retry_after_ms = retry_after.as_millis(), "deferred");
        self.tools.meters.deferral(why);
        if is_pace(why) {
            self.due.was_out_of_turn();
        }
        if why == Deferral::DialPace {
            self.due.ran_out_of_dials();
        }
        if why == Deferral::Dns {
            self.silence.fail("dns", &[], now);
        }
        check.step(|| "deferred: no verdict, asked again soon".to_owned());
        let jitter = self.tools.dice.jitter();
        let mut wait = after_deferral(record, why, retry_after, jitter);
        if wait < retry_after {
            wait = self.early.put_off(wait, retry_after, now);
        }
        let note = format!("put off: {}", crate::explain::deferral_words(why));
        self.give_back(host, now.plus(wait), &note);
    }

    fn fault(&mut self, record: Box<Record>, check: &Check, fault: &Fault, now: Timestamp) {
        let host = record.host.clone();
        self.live.count(now);
        self.tools.meters.fault(fault);
        match fault.reach() {
            Reach::Everything => {
                self.fail_everything(fault);
                // The outage keeps it back for as long as it lasts.
                let due = now.plus(writes::spread(OUTAGE_OVER_AFTER, self.tools.dice.jitter()));
                self.give_back(host, due, &fault.to_string());
            }
            Reach::OursAlone => {
                tracing::warn!(%host, check.id = %check.id, %fault, "a check failed on our side; nothing is counted");
                self.count_own_failure(&fault.to_string());
                let due = now.plus(writes::spread(ASK_AGAIN_AFTER, self.tools.dice.jitter()));
                self.give_back(host, due, &fault.to_string());
            }
            Reach::ThisCheck => {
                tracing::warn!(%host, check.id = %check.id, %fault, "a check failed on our side; nothing is counted");
                self.silence.fail("fault", &[], now);
                let lately = self.faulters.note(&host, now);
                self.doubt(
                    InDoubt::Fault(record, fault.to_string(), lately),
                    Doubt {
                        families: Vec::new(),
                        dns: Dns::Sound,
                    },
                    check.began,
                    now,
                );
                self.count_own_failure(&fault.to_string());
            }
        }
    }

    fn doubt(&mut self, failure: InDoubt, doubt: Doubt, began: Timestamp, now: Timestamp) {
        let host = failure.record().host.clone();
        if let Some(oldest) = self.confirm.fail(host, failure, doubt, began, now) {
            self.drop_unconfirmed(oldest);
        }
    }

    /// Others have lived, but not close enough to tell an outage of ours from its failure.
    fn ask_again(&mut self, failure: InDoubt, now: Timestamp) {
        let note = format!(
            "failed once ({}); asked again, now that another host has answered",
            failure.words()
        );
        let due = now.plus(writes::spread(ASK_AGAIN_AFTER, self.tools.dice.jitter()));
        self.give_back(failure.record().host.clone(), due, &note);
    }

    /// Others have lived close by, or it failed again after others had lived: it was them.
    fn settle_confirmed(&mut self, failure: InDoubt) {
        match failure {
            InDoubt::Verdict(record, verdict) => {
                self.write(record.host.clone(), writes::Write::Settle(record, verdict))
            }
            InDoubt::Fault(record, note, _) => {
                let host = record.host.clone();
                if self.faulters.is_alone(&host, self.tools.now()) {
                    self.write(host, writes::Write::CountFault { record, note });
                } else {
                    let note = format!("not counted, because it hit others as well: {note}");
                    let due = Whose::Theirs.due(record.due, self.tools.again_soon());
                    self.give_back(host, due, &note);
                }
            }
        }
    }

    fn hear_the_living(&mut self, witness: Witness, now: Timestamp) {
        self.silence
            .lived(Family::of(witness.address), now)
            .iter()
            .for_each(tell_it_is_over);
    }

    /// One line when failures pile up and nobody lives, and not one a host.
    pub(super) fn listen_for_silence(&mut self, now: Timestamp) {
        if let Some(nobody) = self.silence.look(now) {
            tracing::error!(
                since = crate::explain::rfc3339(Timestamp(nobody.since_ms)),
                "{}: {nobody}",
                nobody.scope
            );
        }
    }

    /// Nobody came out alive in time, so it may have been us.
    pub(super) fn drop_unconfirmed(&mut self, failure: InDoubt) {
        self.tools.meters.unconfirmed();
        self.silence
            .dropped(bare(&failure.reason()), self.tools.now());
        let note = format!(
            "not counted, because no other host answered: {}",
            failure.words()
        );
        let soon = self.tools.again_soon();
        let due = match &failure {
            InDoubt::Verdict(..) => soon,
            InDoubt::Fault(record, _, lately) => Whose::Untold(*lately).due(record.due, soon),
        };
        self.give_back(failure.record().host.clone(), due, &note);
    }
}

fn ended_as(ended: &Ended) -> EndedAs {
    match ended {
        Ended::Verdict { .. } => EndedAs::Verdict,
        Ended::Deferred { .. } => EndedAs::Deferred,
        Ended::Offline => EndedAs::Offline,
        Ended::Fault(_) => EndedAs::Fault,
    }
}

fn tell_it_is_over(over: &Over) {
    tracing::info!(
        lasted_s = over.lasted.as_secs(),
        failures = over.failures,
        dropped = over.dropped,
        "hosts live again; it is over: {}",
        over.scope
    );
}

/// A reason's word, without a status or a target.
fn bare(reason: &str) -> &str {
    reason.split([' ', ',']).next().unwrap_or(reason)
}

/// Whether the gateway put a host off by its paces, before it dialled.
fn is_pace(why: Deferral) -> bool {
    match why {
        Deferral::GroupPace | Deferral::AddressPace | Deferral::BlockPace | Deferral::DialPace => {
            true
        }
        Deferral::Dns | Deferral::NoFamily | Deferral::Full => false,
    }
}

/// The gateway promises paces slot by slot, so a told wait is kept to; whoever waits for something else comes back spread out.
///
/// A host that has lived never stands behind more than a minute of them: else whoever lists junk names below its domain, or points names at its
/// address, would keep it waiting until it is off the list.
pub(super) fn after_deferral(
    record: &Record,
    why: Deferral,
    retry_after: Duration,
    jitter: Jitter,
) -> Duration {
    match why {
        Deferral::GroupPace | Deferral::AddressPace | Deferral::BlockPace => {
            match record.last_alive {
                Some(_) => retry_after.min(writes::spread(LIVED_WAIT_MAX, jitter)),
                None => retry_after,
            }
        }
        Deferral::DialPace | Deferral::Dns | Deferral::NoFamily | Deferral::Full => {
            writes::spread(retry_after, jitter)
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::Host;

    use super::*;

    #[test]
    fn junk_below_its_domain_keeps_no_living_host_waiting() {
        let stranger = Record::discovered(
            Host::parse("a.example.org").unwrap(),
            Timestamp(0),
            Timestamp(0),
        );
        let living = Record {
            last_alive: Some(Timestamp(1)),
            ..stranger.clone()
        };
        let hours = Duration::from_secs(20 * 3600);
        let wait = |record: &Record, told| {
            after_deferral(record, Deferral::GroupPace, told, Jitter(u32::MAX))
        };
        assert_eq!(wait(&stranger, hours), hours, "a promised slot is kept to");
        assert!(wait(&living, hours) <= LIVED_WAIT_MAX * 2);
        assert_eq!(
            wait(&living, Duration::from_secs(3)),
            Duration::from_secs(3)
        );
    }
}
