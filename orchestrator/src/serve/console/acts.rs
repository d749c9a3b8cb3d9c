//! Carries out moderators' orders, in their names.

use std::sync::PoisonError;
use std::time::Duration;

use ::console::wire::{
    Act, DOMAINS_MAX, DecisionId, HostVerb, Order, Outcome, Verb, WORK_TIME_MAX,
};
use store::HostDecision;
use tokio::sync::mpsc;

use super::{ConsoleHandler, views};
use crate::groups;
use crate::inspect::explain::end_in_words;
use crate::serve::control::decided_in_words;

/// Margin by which the answer comes before the console gives up.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// Steps of a check that wait to be collected.
const STEPS_WAITING_MAX: usize = 64;

impl ConsoleHandler {
    pub(super) async fn act(&self, act: Act) -> Result<Vec<Outcome>, String> {
        let Act { moderator, order } = act;
        if !accounts::is_name(&moderator) {
            return Err("there is no moderator of this name".to_owned());
        }
        let done = self.carry_out(&moderator, order).await;
        let refused = match &done {
            Ok(outcomes) => outcomes
                .iter()
                .find(|outcome| !outcome.is_done)
                .map(|outcome| outcome.text.clone()),
            Err(why) => Some(views::line(why)),
        };
        if let Some(why) = refused {
            tracing::warn!(
                moderator,
                why,
                "a moderator's order was refused, at least in part"
            );
        }
        done
    }

    async fn carry_out(&self, moderator: &str, order: Order) -> Result<Vec<Outcome>, String> {
        match order {
            Order::Decide {
                domains,
                verb,
                reason,
            } => self.decide_groups(moderator, domains, verb, &reason).await,
            Order::Undo { decisions } => self.undo(moderator, decisions).await,
            Order::ResumeSource { name } => {
                let resumed = self.handler.resume_source(&name).await;
                tracing::info!(moderator, source = %protocol::escaped(name.as_bytes(), 200), ?resumed, "a moderator resumes a source");
                Ok(vec![outcome(resumed)])
            }
            Order::PublishByForce {} => self.publish(moderator).await,
            Order::Check { host } => self.check(moderator, &host).await,
            Order::DecideHost {
                host,
                decision,
                reason,
            } => self.decide_host(moderator, &host, decision, &reason).await,
        }
    }

    /// Makes one decision within the day's budget, which is charged afterwards: an order that
    /// decides nothing costs nothing.
    async fn within_budget<T>(
        &self,
        moderator: &str,
        decide: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let budget = || self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget().check(moderator, tokio::time::Instant::now().into_std())?;
        let decided = decide.await?;
        budget().charge(moderator);
        Ok(decided)
    }

    async fn decide_groups(
        &self,
        moderator: &str,
        domains: Vec<String>,
        verb: Verb,
        reason: &str,
    ) -> Result<Vec<Outcome>, String> {
        let ruling = self
            .handler
            .ruling(&name_of(moderator), groups::a_line(reason)?);
        let verb = match verb {
            Verb::Allow => groups::Verb::Allow,
            Verb::Deny => groups::Verb::Deny,
            Verb::Limit(a_day) if i32::try_from(a_day).is_err() => {
                return Err("a limit is at most 2147483647 checks a day".to_owned());
            }
            Verb::Limit(a_day) => groups::Verb::Limit(a_day),
            Verb::Forget => groups::Verb::ForgetDecision,
        };
        let mut outcomes = Vec::new();
        for domain in domains.iter().take(DOMAINS_MAX) {
            let decide = self.handler.decide_group(domain, verb, &ruling);
            let decided = self.within_budget(moderator, decide).await;
            tracing::info!(moderator, domain = %protocol::escaped(domain.as_bytes(), 200), ?verb, done = decided.is_ok(), "a moderator decides about a group");
            let id = decided.as_ref().ok().map(|(id, _)| *id);
            outcomes.push(Outcome {
                undo: id.map(DecisionId::Group),
                ..outcome(decided.map(|(_, words)| words))
            });
        }
        Ok(outcomes)
    }

    async fn undo(
        &self,
        moderator: &str,
        decisions: Vec<DecisionId>,
    ) -> Result<Vec<Outcome>, String> {
        let (who, mut outcomes) = (name_of(moderator), Vec::new());
        for id in decisions.into_iter().take(DOMAINS_MAX) {
            let undo = async {
                match id {
                    DecisionId::Group(id) => self.handler.undo_group_decision(id, &who).await,
                    DecisionId::Host(id) => self.handler.undo_host_decision(id, &who).await,
                }
            };
            let undone = self.within_budget(moderator, undo).await;
            tracing::info!(
                moderator,
                ?id,
                done = undone.is_ok(),
                "a moderator undoes a decision"
            );
            outcomes.push(outcome(undone));
        }
        if outcomes.is_empty() {
            return Err("no decision was named".to_owned());
        }
        Ok(outcomes)
    }

    async fn publish(&self, moderator: &str) -> Result<Vec<Outcome>, String> {
        let Ok(_turn) = self.long_orders.try_acquire() else {
            return Err(BUSY.to_owned());
        };
        tracing::info!(moderator, "a moderator publishes the list by force");
        let publishing = self.handler.dump(true);
        let published = in_time(publishing).await.unwrap_or_else(|| {
            Ok("publishing is still in progress; load the list again in some minutes".to_owned())
        });
        Ok(vec![outcome(published)])
    }

    async fn check(&self, moderator: &str, text: &str) -> Result<Vec<Outcome>, String> {
        let host = self.known_host(text).await?;
        let Ok(_turn) = self.long_orders.try_acquire() else {
            return Err(BUSY.to_owned());
        };
        tracing::info!(moderator, %host, "a moderator has a host checked");
        // The steps are for operators; the last one is the result.
        let (steps, mut unread) = mpsc::channel(STEPS_WAITING_MAX);
        let named = host.clone();
        let checking = async move { in_time(self.handler.check(named, &steps)).await };
        let reading = async { while unread.recv().await.is_some() {} };
        let (checked, ()) = tokio::join!(checking, reading);
        let said = checked.unwrap_or_else(|| {
            Ok("The check is still in progress: load the host again in some minutes.".to_owned())
        });
        let said = said.map(|last| format!("{host}: {}", end_in_words(&last)));
        Ok(vec![outcome(said)])
    }

    async fn decide_host(
        &self,
        moderator: &str,
        text: &str,
        verb: HostVerb,
        reason: &str,
    ) -> Result<Vec<Outcome>, String> {
        let host = self.known_host(text).await?;
        let decision = match verb {
            HostVerb::TakeOut => HostDecision::TakeOut,
            HostVerb::PutBack => HostDecision::PutBack,
        };
        let ruling = self
            .handler
            .ruling(&name_of(moderator), groups::a_line(reason)?);
        let decide = async {
            let decided = self.handler.decide_host(&host, decision, ruling).await?;
            tracing::info!(moderator, %host, ?decided, "a moderator decides about a host");
            decided_in_words(&host, decided)
        };
        Ok(vec![outcome(self.within_budget(moderator, decide).await)])
    }
}

fn name_of(moderator: &str) -> String {
    format!("moderator {moderator}")
}

const BUSY: &str =
    "another check or publication of a moderator is in progress: try again when it is over";

/// `None` if the work takes too long.
async fn in_time<T>(work: impl Future<Output = T>) -> Option<T> {
    let time_max = WORK_TIME_MAX.saturating_sub(ANSWER_MARGIN);
    tokio::time::timeout(time_max, work).await.ok()
}

fn outcome(done: Result<String, String>) -> Outcome {
    let is_done = done.is_ok();
    let (Ok(text) | Err(text)) = done;
    Outcome {
        is_done,
        text: views::line(&text),
        undo: None,
    }
}
