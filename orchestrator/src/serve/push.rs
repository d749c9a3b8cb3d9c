//! The daemon's socket for the push process: messages for other push services.
//!
//! Takes requests of [`push::remote::wire`] and has a container of the checker image post their
//! messages, through the gateway. The push process may be compromised, so a host is contacted only
//! if the daemon's own settings name it and it has not opted out; one request at a time, at a pace.
//! No result changes a row of the census (invariant I3).

use std::sync::Arc;
use std::time::Duration;

use ::push::remote::PushServices;
use ::push::remote::wire::{Answer, Request};
use protocol::{DeliveryOrder, Host};
use report::delivery::{Delivery, DeliveryReport};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::check::services::Services;
use crate::discover::reading::{self, Ended, Errand, Ways};
use crate::serve::socket::{Server, Talk};

/// Time limit for a line: the push process writes its request at once, and waits for the answer.
const LINE_WITHIN: Duration = Duration::from_secs(5);

/// Shortest interval between the starts of two deliveries: each starts a container.
const EVERY: Duration = Duration::from_secs(2);

/// Wait after a failure of ours, or while another request is served.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

pub type PushServer = Server<Arc<PushHandler>>;

/// Answers the push process's requests.
#[derive(Debug)]
pub struct PushHandler {
    services: Services,
    push_services: PushServices,
    /// When the next delivery may start.
    turn: Mutex<Instant>,
}

impl Talk for Arc<PushHandler> {
    /// The push process has one, and another one after its restart.
    const CONNECTIONS_MAX: usize = 4;

    async fn talk(self, stream: UnixStream) -> anyhow::Result<()> {
        let answer = |request| self.answer(request);
        Ok(local_socket::answer_one(stream, LINE_WITHIN, answer).await?)
    }
}

impl PushHandler {
    /// A handler that delivers messages to these push services.
    pub fn new(services: Services, push_services: PushServices) -> Self {
        Self {
            services,
            push_services,
            turn: Mutex::new(Instant::now()),
        }
    }

    pub async fn answer(&self, request: Request) -> Answer {
        let Request::Deliver { host, messages } = request;
        match self.may_be_asked(&host).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(%host, "the push service named a host that is not in push_services; set push_services to the same value for both parts");
                return Answer::NotAPushService {};
            }
            Err(why) => return not_now(why, AGAIN_AFTER),
        }
        let Ok(mut turn) = self.turn.try_lock() else {
            return not_now("another delivery is in progress", AGAIN_AFTER);
        };
        sleep_until(*turn).await;
        let now = Instant::now();
        *turn = now.checked_add(EVERY).unwrap_or(now);
        self.deliver(&host, messages).await
    }

    async fn may_be_asked(&self, host: &Host) -> Result<bool, String> {
        if !self.push_services.covers(host) || self.services.gate.denies(host).is_err() {
            return Ok(false);
        }
        let may = self.services.writer.may_be_asked(host).await;
        may.map_err(|error| error.to_string())
    }

    async fn deliver(&self, host: &Host, messages: DeliveryOrder) -> Answer {
        let report = DeliveryReport::new(&messages);
        let mut errand = Errand::to(host, &self.services);
        errand.order.delivery = Some(messages);
        match reading::read(errand, report, &Ways::of(&self.services)).await {
            Ended::Read(Delivery::Ended(outcomes)) => Answer::Delivered { outcomes },
            Ended::Read(Delivery::Failed) => Answer::Unreachable {
                why: "the checker ended early, or broke the rules of a delivery".to_owned(),
            },
            Ended::Unreachable { reason, detail } => Answer::Unreachable {
                why: format!("{}: {detail}", reason.as_str()),
            },
            Ended::Deferred { why, retry_after } => not_now(format!("not now: {why}"), retry_after),
            Ended::Offline => not_now("there is no network", AGAIN_AFTER),
            Ended::Fault(fault) => {
                tracing::warn!(%host, %fault, "push messages could not be posted through our own fault");
                not_now(fault.to_string(), AGAIN_AFTER)
            }
        }
    }
}

fn not_now(why: impl Into<String>, wait: Duration) -> Answer {
    Answer::NotNow {
        why: why.into(),
        retry_after_s: wait.as_secs().saturating_add(1),
    }
}

#[cfg(test)]
mod tests;
