//! Posts messages to other push services through the daemon. One batch at a time, so that this
//! service's notifications don't wait for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use census::time::{Jitter, Timestamp};
use protocol::order::delivery::MessageBody;
use protocol::{DeliveryOrder, Host, Message, MessageOutcome, limits};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::notify::seal::seal;
use crate::notify::text::Text;
use crate::notify::{Filter, Section, Subscription};
use crate::remote::wire::{Answer, Request};
use crate::remote::{Attempt, AttemptResult, Cursor, Endpoint, Next, Queue};
use crate::storage::sqlite::{CONFIRMATION, Pending, Sqlite};

use super::census::{Census, NotifyError, topic};
use super::service::Service;

/// Wait after a failure of our own: the daemon is missing, or the storage fails.
const FAILURE_WAIT: Duration = Duration::from_secs(60);

/// Posts the notifications of the newest section to subscriptions at other push services, until
/// `shutdown`. Looks at the clock, which may have been set, at the interval `every`.
pub(super) async fn deliver(
    service: &Service,
    census: &Census,
    every: Duration,
    mut newest: watch::Receiver<Option<Arc<Section>>>,
    shutdown: &CancellationToken,
) {
    let mut deliveries = Deliveries::new(service, census);
    loop {
        let step = async {
            // Messages about a former section are worthless: they may name a host that has opted
            // out since.
            if newest.has_changed().unwrap_or(false) {
                let section = newest.borrow_and_update().clone();
                if let Err(error) = deliveries.begin(section.map(Subject::News)).await {
                    deliveries.log(&error);
                    newest.mark_changed();
                    return tokio::time::sleep(FAILURE_WAIT).await;
                }
            }
            let Some(wait) = deliveries.step().await else {
                return;
            };
            tokio::select! {
                _ = newest.changed() => newest.mark_changed(),
                () = tokio::time::sleep(wait.min(every)) => {}
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = step => {}
        }
    }
}

/// Posts a first message to new subscriptions at other push services, until `shutdown`. Looks for
/// them at the interval `every`. One that is accepted confirms the endpoint's subscriptions.
pub(super) async fn confirm(
    service: &Service,
    census: &Census,
    every: Duration,
    shutdown: &CancellationToken,
) {
    let mut deliveries = Deliveries::new(service, census);
    let steps = async {
        loop {
            let Some(wait) = deliveries.step().await else {
                continue;
            };
            tokio::time::sleep(wait.min(every)).await;
            if let Err(error) = deliveries.begin(Some(Subject::Confirmation)).await {
                deliveries.log(&error);
                tokio::time::sleep(FAILURE_WAIT).await;
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = steps => {}
    }
}

#[derive(Debug, Clone)]
enum Subject {
    News(Arc<Section>),
    Confirmation,
}

impl Subject {
    fn pending(&self) -> &str {
        match self {
            Self::News(section) => &section.sha256,
            Self::Confirmation => CONFIRMATION,
        }
    }

    fn text(&self, filter: &Filter) -> Option<Text> {
        match self {
            // After a restart, missed lists before the newest one are among the recent changes.
            Self::News(section) => {
                Text::of(section, filter).or_else(|| Text::of_recent(section, filter))
            }
            Self::Confirmation => Some(Text::confirmation()),
        }
    }
}

struct Deliveries<'a> {
    service: &'a Service,
    census: &'a Census,
    queue: Queue,
    subject: Option<Subject>,
    /// The subject and the outcome of a batch that could not be stored.
    unsettled: Option<(String, Settled)>,
    last_error: String,
}

#[derive(Debug, Clone, Default)]
struct Settled {
    /// Subscriptions that are no longer owed a message: id and endpoint.
    told: Vec<(i64, String)>,
    /// Endpoints whose subscriptions can't work.
    ended: Vec<String>,
}

#[derive(Default)]
struct Batch {
    messages: Vec<Message>,
    /// Their subscriptions: id and endpoint.
    sent: Vec<(i64, String)>,
    settled: Settled,
}

impl<'a> Deliveries<'a> {
    fn new(service: &'a Service, census: &'a Census) -> Self {
        Self {
            service,
            census,
            queue: Queue::default(),
            subject: None,
            unsettled: None,
            last_error: String::new(),
        }
    }

    async fn begin(&mut self, subject: Option<Subject>) -> Result<(), NotifyError> {
        self.subject = subject;
        // The queue keeps what it knows of the push services.
        let Some(subject) = &self.subject else {
            return Ok(());
        };
        if self.is_confirming() {
            let now_s = self.service.now_s();
            let end = move |s: &Sqlite| s.end_unconfirmed(now_s);
            self.service.storage.call(end).await?;
        }
        let counts = self.counts(subject).await?;
        self.queue.replace(counts, self.now());
        Ok(())
    }

    fn is_confirming(&self) -> bool {
        matches!(self.subject, Some(Subject::Confirmation))
    }

    async fn counts(&self, subject: &Subject) -> Result<BTreeMap<Host, u64>, NotifyError> {
        let mut counts: BTreeMap<Host, u64> = BTreeMap::new();
        let mut after: Cursor = (String::new(), 0);
        loop {
            let pending = subject.pending().to_owned();
            let (from, now_s) = (after, self.service.now_s());
            let read = move |s: &Sqlite| s.pending_endpoints(&pending, &from, now_s);
            let page = self.service.storage.call(read).await?;
            let Some(last) = page.last() else {
                return Ok(counts);
            };
            after = last.clone();
            for (endpoint, _) in page {
                if let Some(Endpoint { host, .. }) = Endpoint::parse(&endpoint)
                    && self.census.remote.services.covers(&host)
                {
                    let count = counts.entry(host).or_default();
                    *count = count.saturating_add(1);
                }
            }
        }
    }

    /// Posts one batch. Returns the wait before the next one, if any.
    async fn step(&mut self) -> Option<Duration> {
        if let Err(error) = self.settle().await {
            self.log(&error);
            return Some(FAILURE_WAIT);
        }
        if self.subject.is_none() {
            return Some(Duration::MAX);
        }
        let now = self.now();
        match self.queue.next(now) {
            Next::Post(host, cursor) => match self.post(&host, cursor).await {
                Ok(()) => None,
                Err(error) => {
                    self.log(&error);
                    Some(FAILURE_WAIT)
                }
            },
            Next::Wait(until) => Some(until.since(now)),
            Next::Nothing => Some(Duration::MAX),
        }
    }

    async fn post(&mut self, host: &Host, cursor: Option<Cursor>) -> Result<(), NotifyError> {
        let Some(subject) = self.subject.clone() else {
            return Ok(());
        };
        let page = self.page(&subject, host, cursor).await?;
        if page.is_empty() {
            self.queue.at_end(host);
            return Ok(());
        }
        let mut batch = self.batch(page, &subject, host)?;
        if let Ok(messages) = DeliveryOrder::new(std::mem::take(&mut batch.messages)) {
            self.ask(host, messages, &mut batch).await;
        }
        self.unsettled = Some((subject.pending().to_owned(), batch.settled));
        self.settle().await
    }

    /// Stores the outcome of the last batch. It is kept until that succeeds: otherwise the same
    /// messages would be posted again.
    async fn settle(&mut self) -> Result<(), NotifyError> {
        let Some((subject, Settled { told, ended })) = self.unsettled.clone() else {
            return Ok(());
        };
        let settle = move |s: &Sqlite| s.settle(&subject, &told, &ended);
        self.service.storage.call(settle).await?;
        self.unsettled = None;
        Ok(())
    }

    async fn page(
        &self,
        subject: &Subject,
        host: &Host,
        cursor: Option<Cursor>,
    ) -> Result<Vec<Pending>, NotifyError> {
        let (subject, now_s) = (subject.pending().to_owned(), self.service.now_s());
        let origin = origin(host);
        let page = self.service.storage.call(move |s| {
            let most = limits::MESSAGES_MAX;
            s.pending(&subject, &origin, cursor.as_ref(), now_s, most)
        });
        Ok(page.await?)
    }

    /// The messages of a page that fit into one order.
    fn batch(
        &self,
        page: Vec<Pending>,
        subject: &Subject,
        host: &Host,
    ) -> Result<Batch, NotifyError> {
        let now_s = self.service.now_s();
        let authorization = self.census.sender.authorization(&origin(host), now_s)?;
        let mut batch = Batch::default();
        let mut bytes = 0_usize;
        for pending in page {
            let Pending {
                id,
                subscription,
                until_s,
            } = pending;
            let last = batch.sent.last().map(|(_, endpoint)| endpoint);
            // The first one's message confirms the others as well.
            if self.is_confirming() && last == Some(&subscription.endpoint) {
                continue;
            }
            let Some(text) = subject.text(&subscription.filter) else {
                batch.settled.told.push((id, subscription.endpoint));
                continue;
            };
            let ttl_s = u32::try_from(until_s.saturating_sub(now_s)).unwrap_or(0);
            // Keys are checked at subscription, and texts are bounded: otherwise the subscription
            // can't work.
            let Some(message) = message(&subscription, &text, ttl_s, &authorization) else {
                batch.settled.ended.push(subscription.endpoint);
                continue;
            };
            bytes = bytes.saturating_add(message.bytes());
            if bytes > limits::MESSAGES_BYTES_MAX {
                break;
            }
            batch.messages.push(message);
            batch.sent.push((id, subscription.endpoint));
        }
        Ok(batch)
    }

    /// Requests posting of messages, and records their outcomes.
    async fn ask(&mut self, host: &Host, messages: DeliveryOrder, batch: &mut Batch) {
        let request = Request::Deliver {
            host: host.clone(),
            messages,
        };
        let answer = self.census.remote.daemon.ask(&request).await;
        let mut outcomes = Vec::new();
        let attempt = match answer {
            Ok(Answer::Delivered { outcomes: told }) if told.len() == batch.sent.len() => {
                outcomes = told;
                Attempt::Ran(&outcomes)
            }
            Ok(Answer::Delivered { .. }) => {
                self.log(&"the daemon's answer is about other messages");
                Attempt::Failed
            }
            Ok(Answer::Unreachable { why }) => {
                tracing::info!(%host, why, "a push service could not be reached");
                Attempt::Failed
            }
            Ok(Answer::NotAPushService {}) => {
                tracing::warn!(%host, "the daemon posts nothing to this push service; set push_services to the same value for both parts");
                let refused = batch.sent.drain(..);
                match self.is_confirming() {
                    true => batch
                        .settled
                        .ended
                        .extend(refused.map(|(_, endpoint)| endpoint)),
                    false => batch.settled.told.extend(refused),
                }
                return;
            }
            Ok(Answer::NotNow { why, retry_after_s }) => {
                tracing::debug!(%host, why, "messages to a push service are deferred");
                Attempt::NotNow(Duration::from_secs(retry_after_s))
            }
            Err(error) => {
                self.log(&format!("no answer from the daemon: {error}; check that it runs, with the setting push_socket"));
                Attempt::NotNow(FAILURE_WAIT)
            }
        };
        if matches!(attempt, Attempt::Ran(_)) {
            self.last_error.clear();
        }
        let last = batch.sent.last();
        let cursor = last.map(|(id, endpoint)| (endpoint.clone(), *id));
        self.queue
            .after(host, attempt, cursor, self.now(), self.jitter());
        self.sort(host, batch, &outcomes);
    }

    fn sort(&self, host: &Host, batch: &mut Batch, outcomes: &[MessageOutcome]) {
        let meters = &self.service.meters;
        let (mut taken, mut dropped, mut later) = (0_u32, 0_u32, 0_u32);
        for ((id, endpoint), outcome) in batch.sent.drain(..).zip(outcomes) {
            match AttemptResult::of(outcome) {
                AttemptResult::Taken => {
                    meters.notified.inc();
                    taken = taken.saturating_add(1);
                    batch.settled.told.push((id, endpoint));
                }
                AttemptResult::Dropped => {
                    meters.failed.inc();
                    dropped = dropped.saturating_add(1);
                    match self.is_confirming() {
                        true => batch.settled.ended.push(endpoint),
                        false => batch.settled.told.push((id, endpoint)),
                    }
                }
                AttemptResult::Ended => {
                    meters.ended.inc();
                    batch.settled.ended.push(endpoint);
                }
                AttemptResult::Later => later = later.saturating_add(1),
            }
        }
        if !outcomes.is_empty() {
            let ended = batch.settled.ended.len();
            tracing::info!(%host, taken, ended, dropped, later, "messages were posted to a push service");
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.service.now_ms())
    }

    fn jitter(&self) -> Jitter {
        let random = self.service.random().unwrap_or_default();
        Jitter(u32::from_le_bytes(random))
    }

    /// Repeated failures are logged once.
    fn log(&mut self, error: &dyn std::fmt::Display) {
        let error = error.to_string();
        if error != self.last_error {
            tracing::error!(%error, "messages to other push services could not be posted; they are tried again");
        }
        self.last_error = error;
    }
}

fn origin(host: &Host) -> String {
    format!("https://{host}")
}

/// A message to a subscription; `None` if none can be made.
fn message(
    subscription: &Subscription,
    text: &Text,
    ttl_s: u32,
    authorization: &str,
) -> Option<Message> {
    let words = serde_json::to_vec(text).ok()?;
    let sealed = seal(&words, subscription).ok()?;
    Some(Message {
        path: Endpoint::parse(&subscription.endpoint)?.path,
        ttl_s,
        topic: topic(&subscription.filter).try_into().ok()?,
        authorization: authorization.to_owned().try_into().ok()?,
        body: MessageBody::new(sealed).ok()?,
    })
}
