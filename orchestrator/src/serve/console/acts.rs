//! Carries out moderators' orders, in their names.

use std::sync::PoisonError;
use std::time::Duration;

use ::console::wire::{
    Act, DOMAINS_MAX, DecisionId, HostVerb, LINES_MAX, Order, Outcome, Verb, WORK_TIME_MAX,
};
use store::HostDecision;
use tokio::sync::mpsc;

use super::{ConsoleHandler, shown};
use crate::names::groups;
use crate::serve::control::{self, decided_in_words};

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
        let who = format!("moderator {moderator}");
        self.take_from_budget(&order)?;
        match order {
            Order::Decide {
                domains,
                verb,
                reason,
            } => self.decide_groups(&who, domains, verb, &reason).await,
            Order::Undo { decisions } => self.undo(&who, decisions).await,
            Order::ResumeSource { name } => {
                let resumed = self.handler.resume_source(&name).await;
                tracing::info!(moderator, source = %protocol::escaped(name.as_bytes(), 200), ?resumed, "a moderator resumes a source");
                Ok(vec![outcome(resumed)])
            }
            Order::PublishByForce {} => self.publish(&moderator).await,
            Order::Check { host } => self.check(&moderator, &host).await,
            Order::DecideHost {
                host,
                decision,
                reason,
            } => self.decide_host(&who, &host, decision, &reason).await,
        }
    }

    fn take_from_budget(&self, order: &Order) -> Result<(), String> {
        let decisions = match order {
            Order::Decide { domains, .. } => domains.len(),
            Order::Undo { decisions } => decisions.len(),
            Order::DecideHost { .. } => 1,
            Order::ResumeSource { .. } | Order::PublishByForce {} | Order::Check { .. } => 0,
        };
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.take(decisions, tokio::time::Instant::now().into_std())
    }

    async fn decide_groups(
        &self,
        who: &str,
        domains: Vec<String>,
        verb: Verb,
        reason: &str,
    ) -> Result<Vec<Outcome>, String> {
        let ruling = self.handler.ruling(who, groups::a_line(reason)?);
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
            let decided = self.handler.decide_group(domain, verb, &ruling).await;
            tracing::info!(who, domain = %protocol::escaped(domain.as_bytes(), 200), ?verb, done = decided.is_ok(), "a moderator decides about a group");
            outcomes.push(outcome(decided));
        }
        Ok(outcomes)
    }

    async fn undo(&self, who: &str, decisions: Vec<DecisionId>) -> Result<Vec<Outcome>, String> {
        let mut outcomes = Vec::new();
        for id in decisions.into_iter().take(DOMAINS_MAX) {
            let undone = match id {
                DecisionId::Group(id) => self.handler.undo_group_decision(id, who).await,
                DecisionId::Host(id) => self.handler.undo_host_decision(id, who).await,
            };
            tracing::info!(
                who,
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
        let (steps, mut shown) = mpsc::channel(STEPS_WAITING_MAX);
        let checking = async move {
            let checked = in_time(self.handler.check(host, &steps)).await;
            checked.unwrap_or_else(|| {
                Ok(
                    "the check is still in progress; load the host again in some minutes"
                        .to_owned(),
                )
            })
        };
        let collecting = async {
            let mut outcomes = Vec::new();
            while let Some(answer) = shown.recv().await {
                if let control::Answer::Step(step) = answer
                    && outcomes.len() < LINES_MAX
                {
                    outcomes.push(outcome(Ok(step)));
                }
            }
            outcomes
        };
        let (checked, mut outcomes) = tokio::join!(checking, collecting);
        match checked {
            // The last step repeats why.
            Err(why) => {
                outcomes.pop();
                outcomes.push(outcome(Err(why)));
            }
            Ok(last) => {
                let last = outcome(Ok(last));
                if outcomes.last() != Some(&last) {
                    outcomes.push(last);
                }
            }
        }
        Ok(outcomes)
    }

    async fn decide_host(
        &self,
        who: &str,
        text: &str,
        verb: HostVerb,
        reason: &str,
    ) -> Result<Vec<Outcome>, String> {
        let host = self.known_host(text).await?;
        let decision = match verb {
            HostVerb::TakeOut => HostDecision::TakeOut,
            HostVerb::PutBack => HostDecision::PutBack,
        };
        let ruling = self.handler.ruling(who, groups::a_line(reason)?);
        let decided = self.handler.decide_host(&host, decision, ruling).await?;
        tracing::info!(who, %host, ?decided, "a moderator decides about a host");
        Ok(vec![outcome(decided_in_words(&host, decided))])
    }
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
        text: shown::line(&text),
    }
}
