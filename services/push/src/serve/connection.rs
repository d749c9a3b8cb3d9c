//! A client's WebSocket: frames to events, actions to frames and calls.
//!
//! Reading never waits, for writing or for the storage: what a client sends meanwhile would lie in
//! the web server's memory. It is read and bounded here.

mod frames;

use std::collections::VecDeque;
use std::future::pending;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::ids::Uaid;
use crate::notification::Notification;
use crate::session::{Action, Answer, Call, Close, Event, Leaving, Session, Surroundings};
use crate::storage::sqlite::Sqlite;
use crate::storage::{Room, Saved, StorageError, User};

use self::frames::{Frames, Moved};
use super::clients::held::Share;
use super::clients::slots::Slot;
use super::clients::{Entry, OnItsWay, direct_bytes};
use super::listen::BytesRead;
use super::service::Service;

/// How long sending a frame may take. After that, the client counts as gone. With the time for the
/// close frame, it is less than a service that stops waits for its connections.
const SEND_TIME_MAX: Duration = Duration::from_secs(5);

/// Bytes of a client that are read and not handled. The longest message is as long.
const UNHANDLED_BYTES_MAX: usize = 32 * 1024;

/// Messages of a client that are read and not handled: a telephone registers as many applications
/// in a row.
const UNHANDLED_EVENTS_MAX: usize = 256;

/// Memory of a waiting message in addition to its text.
const EVENT_BYTES: usize = 128;

/// Bytes that wait for a client. A batch from the storage is shorter.
const UNSENT_BYTES_MAX: usize = 32 * 1024;

/// Serves a client at an address until either side ends the connection.
pub(super) async fn serve(
    socket: WebSocket,
    service: Arc<Service>,
    address: Option<IpAddr>,
    read: BytesRead,
    slot: Slot,
) {
    let _connected = service.connected.token();
    let candidate = match service.new_uaid() {
        Ok(candidate) => candidate,
        Err(error) => return tracing::error!(%error, "a client can't be served"),
    };
    let settings = &service.settings;
    let (session, actions) = Session::new(settings.rules, settings.node.clone(), candidate);
    let mut connection = Connection {
        frames: Frames::new(socket, read),
        session,
        entry: None,
        wake: Box::pin(sleep(settings.rules.hello_within)),
        call: None,
        unhandled: VecDeque::new(),
        share: Share::new(Arc::clone(&service.held)),
        service: Arc::clone(&service),
        address,
        slot,
        held: None,
    };
    let end = match connection.act(actions) {
        None => connection.run().await,
        Some(close) => End::Here(close),
    };
    connection.leave(end).await;
}

enum End {
    Here(Close),
    /// By the other side's close frame.
    There,
    Broken,
}

impl End {
    /// For metrics: the code of our close frame, or who else ended the connection.
    fn label(&self) -> String {
        match self {
            Self::Here(close) => close.code().to_string(),
            Self::There => "client".to_owned(),
            Self::Broken => "broken".to_owned(),
        }
    }
}

impl From<Close> for End {
    fn from(close: Close) -> Self {
        Self::Here(close)
    }
}

type Asked = Pin<Box<dyn Future<Output = Answer> + Send>>;

struct Connection {
    frames: Frames,
    session: Session,
    /// The signals from the rest of the service, once the client's id is known.
    entry: Option<(Uaid, Entry)>,
    wake: Pin<Box<Sleep>>,
    call: Option<Asked>,
    /// Events from the client, each with the number of bytes that were read until then.
    unhandled: VecDeque<(Event, u64)>,
    /// What the client holds of the memory for all.
    share: Share,
    service: Arc<Service>,
    address: Option<IpAddr>,
    slot: Slot,
    /// Room in memory for messages that went straight to the client.
    held: Option<OwnedSemaphorePermit>,
}

impl Connection {
    async fn run(&mut self) -> End {
        loop {
            while self.call.is_none()
                && let Some((event, read)) = self.unhandled.pop_front()
            {
                self.frames.handled(read);
                if let Some(close) = self.on(event) {
                    return close.into();
                }
            }
            if self.holds_too_much() {
                return Close::TooMuch.into();
            }
            let Self {
                frames,
                entry,
                wake,
                call,
                share,
                ..
            } = self;
            let is_idle = call.is_none();
            let since = frames.sending_since();
            let stuck = since.and_then(|since| since.checked_add(SEND_TIME_MAX));
            let is_sent = since.is_none();
            // What arrived comes before what is late: the process may have been stopped.
            let event = tokio::select! {
                biased;
                answer = answer(call) => {
                    self.call = None;
                    Event::Answer(answer)
                }
                () = share.is_over() => return Close::TooMuch.into(),
                signal = next_signal(entry, is_sent), if is_idle => match signal {
                    Signal::Direct((message, room)) => {
                        self.hold(room);
                        Event::Direct(message)
                    }
                    Signal::CheckStorage => Event::CheckStorage,
                    Signal::Wake => Event::Wake,
                    Signal::Superseded => Event::Superseded,
                    Signal::Restart => return Close::Restart.into(),
                },
                moved = frames.exchange() => match moved {
                    Moved::Sent | Moved::Part => continue,
                    Moved::Read(frame) => {
                        let Some(event) = self.event(frame) else {
                            continue;
                        };
                        self.unhandled.push_back((event, self.frames.read_bytes()));
                        continue;
                    }
                    Moved::Malformed => return Close::Protocol.into(),
                    Moved::Closed => return End::There,
                    Moved::Broken => return End::Broken,
                },
                () = until(stuck) => match self.frames.sending_since() == since {
                    true => return End::Broken,
                    // Some of it was sent.
                    false => continue,
                },
                () = wake.as_mut(), if is_idle => Event::TimeIsUp,
            };
            if let Some(close) = self.on(event) {
                return close.into();
            }
        }
    }

    fn holds_too_much(&mut self) -> bool {
        let (unhandled, unsent) = (self.frames.unhandled_bytes(), self.frames.unsent_bytes());
        let events = self.unhandled.len();
        let bytes = unhandled.saturating_add(unsent);
        self.share
            .set(bytes.saturating_add(events.saturating_mul(EVENT_BYTES)));
        unhandled > UNHANDLED_BYTES_MAX
            || events > UNHANDLED_EVENTS_MAX
            || unsent > UNSENT_BYTES_MAX
            || self.frames.are_too_many()
    }

    fn event(&self, frame: Message) -> Option<Event> {
        Some(match frame {
            Message::Text(text) => Event::Text(text.to_string()),
            Message::Pong(_) => Event::Pong,
            // The WebSocket library answers it.
            Message::Ping(_) if self.entry.is_some() => return None,
            Message::Binary(_) | Message::Ping(_) | Message::Close(_) => Event::BadFrame,
        })
    }

    fn on(&mut self, event: Event) -> Option<Close> {
        let broadcasts = self.service.broadcasts();
        let surroundings = Surroundings {
            now_ms: self.service.now_ms(),
            broadcasts: &broadcasts,
        };
        let actions = self.session.on(event, surroundings);
        self.act(actions)
    }

    /// Carries out the session's actions. A call goes on in the background.
    fn act(&mut self, actions: Vec<Action>) -> Option<Close> {
        for action in actions {
            match action {
                Action::Send(message) => self.frames.send(Message::text(message.text())),
                Action::Ping => self.frames.send(Message::Ping(Vec::new().into())),
                Action::Wait(time) => {
                    let due = Instant::now().checked_add(time);
                    self.wake.as_mut().reset(due.unwrap_or_else(Instant::now));
                }
                Action::Enter(uaid) => {
                    // A former connection's place is taken over.
                    let is_for = self.service.clients.has(uaid)
                        || (self.slot).is_for(self.session.made_ms(), self.service.now_ms());
                    let direct = self.service.settings.rules.direct;
                    self.entry = Some((uaid, self.service.clients.enter(uaid, direct)));
                    if !is_for {
                        return Some(Close::Crowded);
                    }
                }
                Action::Call(call) => {
                    let service = Arc::clone(&self.service);
                    self.call = Some(Box::pin(ask(service, self.address, call)));
                }
                Action::Close(close) => return Some(close),
            }
        }
        self.release();
        if let Some((_, entry)) = &self.entry {
            let takes = self.session.takes_direct();
            entry.reach.takes_direct.store(takes, Ordering::Release);
            if self.session.wants_check() {
                entry.reach.check.notify_one();
            }
        }
        None
    }

    /// Reserves the room of a message that goes straight to the client.
    fn hold(&mut self, room: OwnedSemaphorePermit) {
        match &mut self.held {
            Some(held) => held.merge(room),
            None => self.held = Some(room),
        }
    }

    /// Releases the room of messages that no longer wait for an acknowledgement.
    fn release(&mut self) {
        let Some(held) = &mut self.held else {
            return;
        };
        let unacknowledged = self.session.unacknowledged().iter().map(direct_bytes);
        let bytes = unacknowledged.fold(0, usize::saturating_add);
        drop(held.split(held.num_permits().saturating_sub(bytes)));
    }

    /// Handles what the client said before its end. A record that names this node has an entry
    /// afterwards.
    async fn finish(&mut self) {
        loop {
            let event = match self.call.take() {
                Some(call) => Event::Answer(call.await),
                None => match self.unhandled.pop_front() {
                    Some((event, _)) => event,
                    None => return,
                },
            };
            let _ended = self.on(event);
        }
    }

    /// Ends the connection: stores what the client has not acknowledged.
    async fn leave(mut self, end: End) {
        self.service.meters.closed(&end.label());
        self.share.set(0);
        match end {
            End::Here(close) => {
                self.unhandled.clear();
                let frame = CloseFrame {
                    code: close.code(),
                    reason: close.reason().into(),
                };
                self.frames.close(Some(frame)).await;
                self.finish().await;
            }
            // Before the answer: the client may connect again at once.
            End::There => {
                self.finish().await;
                self.frames.close(None).await;
            }
            End::Broken => {
                self.frames.drop_socket();
                self.finish().await;
            }
        }
        let Self {
            session,
            entry,
            service,
            held: _held,
            ..
        } = self;
        let Some((uaid, entry)) = entry else {
            return;
        };
        // Leave the registry first, so that no message arrives after this.
        let queued = service.clients.leave(uaid, entry);
        let Leaving {
            connected_ms,
            mut unacknowledged,
            stored,
            ..
        } = session.leave();
        let (queued, _room): (Vec<_>, Vec<_>) = queued.into_iter().unzip();
        unacknowledged.extend(queued.into_iter().filter(|message| message.ttl_s > 0));
        let again = unacknowledged.len().saturating_add(stored);
        service.meters.again(again);
        let Ok(_turn) = service.leaving.acquire().await else {
            return;
        };
        let now_ms = service.now_ms();
        let left = service
            .storage
            .call(move |storage| store_left(storage, uaid, unacknowledged, now_ms));
        match left.await {
            // The client has connected again, and may have read the storage too early.
            Ok(Some(_)) if service.clients.notify(uaid) => {}
            Ok(Some(user)) => {
                let is_here = user.node.as_ref() == Some(&service.settings.node);
                if is_here && user.connected_ms == connected_ms {
                    service.forget_node(user).await;
                } else if let Some(node) = user.node {
                    service.notify(&node, uaid).await;
                }
            }
            Ok(None) => {}
            // The storage's thread has counted and logged it.
            Err(_failed) => {}
        }
    }
}

async fn ask(service: Arc<Service>, address: Option<IpAddr>, mut call: Call) -> Answer {
    if let Call::AddUser(user) = &mut call {
        if !service.newcomers.admit(address, service.now_ms()) {
            return Answer::Done(false);
        }
        user.made_at = address;
    }
    let maker = Arc::clone(&service);
    let now_ms = service.now_ms();
    let asked = service.storage.call(move |storage| {
        call.run(storage, now_ms, |uaid, channel, key| {
            maker.endpoint(uaid, channel, key).ok()
        })
    });
    // The storage's thread has counted and logged it.
    asked.await.unwrap_or(Answer::Failed)
}

fn store_left(
    storage: &Sqlite,
    uaid: Uaid,
    left: Vec<Notification>,
    now_ms: i64,
) -> Result<Option<User>, StorageError> {
    if !left.is_empty() {
        let messages: Vec<_> = left
            .into_iter()
            .map(|message| message.arrived_again(|| storage.place(now_ms)))
            .collect();
        if storage.save(uaid, &messages, Room::Promised)? == Saved::Full {
            tracing::warn!("messages of a client that acknowledges none were dropped");
        }
    }
    storage.get_user(uaid)
}

enum Signal {
    Direct(OnItsWay),
    CheckStorage,
    Wake,
    Superseded,
    Restart,
}

/// The next signal. Pending until the client is registered. Messages wait while others are unsent.
async fn next_signal(entry: &mut Option<(Uaid, Entry)>, is_sent: bool) -> Signal {
    let Some((_, entry)) = entry else {
        return pending().await;
    };
    tokio::select! {
        biased;
        end = &mut entry.end => end.map_or(Signal::Superseded, |()| Signal::Restart),
        message = entry.direct.recv(), if is_sent => message.map_or(Signal::Superseded, Signal::Direct),
        () = entry.reach.check.notified(), if is_sent => Signal::CheckStorage,
        () = entry.reach.wake.notified(), if is_sent => Signal::Wake,
    }
}

/// The answer to the call. Pending if there is none.
async fn answer(call: &mut Option<Asked>) -> Answer {
    match call {
        Some(call) => call.as_mut().await,
        None => pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
