//! A client's WebSocket: frames to events, actions to frames and calls.

use std::future::pending;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::ids::Uaid;
use crate::notification::Notification;
use crate::session::{Action, Answer, Call, Close, Event, Leaving, Session, Surroundings};
use crate::storage::{Room, Saved, Storage, StorageError, User};

use super::clients::places::Place;
use super::clients::{Entry, OnItsWay, direct_bytes};
use super::service::Service;

/// How long the other side may take to read a close frame, and to answer it.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

/// How long sending a frame may take. After that, the client counts as gone. With the time for the
/// close frame, it is less than a service that stops waits for its connections.
const SEND_TIME_MAX: Duration = Duration::from_secs(5);

/// Serves a client at an address until either side ends the connection.
pub(super) async fn serve(
    socket: WebSocket,
    service: Arc<Service>,
    address: Option<IpAddr>,
    place: Place,
) {
    let _connected = service.connected.token();
    let candidate = match service.new_uaid() {
        Ok(candidate) => candidate,
        Err(error) => return tracing::error!(%error, "a client can't be served"),
    };
    let settings = &service.settings;
    let (session, actions) = Session::new(settings.rules, settings.node.clone(), candidate);
    let mut connection = Connection {
        socket,
        session,
        entry: None,
        wake: Box::pin(sleep(settings.rules.hello_within)),
        service: Arc::clone(&service),
        address,
        place,
        held: None,
    };
    if connection.act(actions).await.is_continue() {
        connection.run().await;
    }
    connection.leave().await;
}

struct Connection {
    socket: WebSocket,
    session: Session,
    /// The signals from the rest of the service, once the client's id is known.
    entry: Option<(Uaid, Entry)>,
    wake: Pin<Box<Sleep>>,
    service: Arc<Service>,
    address: Option<IpAddr>,
    place: Place,
    /// Room in memory for messages that went straight to the client.
    held: Option<OwnedSemaphorePermit>,
}

impl Connection {
    async fn run(&mut self) {
        loop {
            let Self {
                socket,
                entry,
                wake,
                ..
            } = self;
            let is_known = entry.is_some();
            let event = tokio::select! {
                frame = socket.recv() => match frame {
                    Some(Ok(Message::Text(text))) => Event::Text(text.to_string()),
                    Some(Ok(Message::Binary(_))) => Event::BadFrame,
                    Some(Ok(Message::Pong(_))) => Event::Pong,
                    // The WebSocket library answers it.
                    Some(Ok(Message::Ping(_))) if is_known => continue,
                    Some(Ok(Message::Ping(_))) => Event::BadFrame,
                    Some(Ok(Message::Close(_))) => {
                        let rest = timeout(CLOSE_TIME_MAX, self.hear_out());
                        return rest.await.unwrap_or(());
                    }
                    // The frame does not arrive if the connection broke.
                    Some(Err(_)) => return self.close(Close::Protocol).await,
                    None => return,
                },
                () = wake.as_mut() => Event::TimeIsUp,
                told = told(entry) => match told {
                    Told::Direct((message, room)) => {
                        self.hold(room);
                        Event::Direct(message)
                    }
                    Told::CheckStorage => Event::CheckStorage,
                    Told::Superseded => Event::Superseded,
                },
            };
            if self.on(event).await.is_break() {
                return;
            }
        }
    }

    async fn on(&mut self, event: Event) -> ControlFlow<()> {
        let broadcasts = self.service.broadcasts();
        let surroundings = Surroundings {
            now_ms: self.service.now_ms(),
            broadcasts: &broadcasts,
        };
        let actions = self.session.on(event, surroundings);
        self.act(actions).await
    }

    /// Carries out the session's actions, including calls and their answers.
    async fn act(&mut self, mut actions: Vec<Action>) -> ControlFlow<()> {
        loop {
            let mut call = None;
            for action in actions {
                match action {
                    Action::Send(message) => self.send(Message::text(message.text())).await?,
                    Action::Ping => self.send(Message::Ping(Vec::new().into())).await?,
                    Action::Wait(time) => {
                        let due = Instant::now().checked_add(time);
                        self.wake.as_mut().reset(due.unwrap_or_else(Instant::now));
                    }
                    Action::Enter(uaid) => {
                        let (storage, now_ms) = (&self.service.storage, self.service.now_ms());
                        // A former connection's place is taken over.
                        if !self.service.clients.has(uaid)
                            && !self.place.is_for(uaid, storage, now_ms).await
                        {
                            self.close(Close::Crowded).await;
                            return ControlFlow::Break(());
                        }
                        let direct = self.service.settings.rules.direct;
                        self.entry = Some((uaid, self.service.clients.enter(uaid, direct)));
                    }
                    Action::Call(asked) => call = Some(asked),
                    Action::Close(close) => {
                        self.close(close).await;
                        return ControlFlow::Break(());
                    }
                }
            }
            self.release();
            if let Some((_, entry)) = &self.entry {
                let takes = self.session.takes_direct();
                entry.reach.takes_direct.store(takes, Ordering::Release);
            }
            let Some(call) = call else {
                return ControlFlow::Continue(());
            };
            let answer = ask(&self.service, self.address, call).await;
            let broadcasts = self.service.broadcasts();
            let surroundings = Surroundings {
                now_ms: self.service.now_ms(),
                broadcasts: &broadcasts,
            };
            actions = self.session.on(Event::Answer(answer), surroundings);
        }
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

    async fn send(&mut self, message: Message) -> ControlFlow<()> {
        match timeout(SEND_TIME_MAX, self.socket.send(message)).await {
            Ok(Ok(())) => ControlFlow::Continue(()),
            Ok(Err(_)) | Err(_) => ControlFlow::Break(()),
        }
    }

    async fn close(&mut self, close: Close) {
        let frame = CloseFrame {
            code: close.code(),
            reason: close.reason().into(),
        };
        let closing = async {
            if self.send(Message::Close(Some(frame))).await.is_continue() {
                self.hear_out().await;
            }
        };
        timeout(CLOSE_TIME_MAX, closing).await.unwrap_or(());
    }

    /// Reads the rest of the input, so that the other side reads the close frame before the
    /// connection breaks.
    async fn hear_out(&mut self) {
        while let Some(Ok(_)) = self.socket.recv().await {}
    }

    /// Ends the connection: stores what the client has not acknowledged.
    async fn leave(self) {
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
            ..
        } = session.leave();
        let (queued, _room): (Vec<_>, Vec<_>) = queued.into_iter().unzip();
        unacknowledged.extend(queued.into_iter().filter(|message| message.ttl_s > 0));
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
            Err(error) => {
                tracing::error!(%error, "a disconnected client's messages could not be stored")
            }
        }
    }
}

async fn ask(service: &Arc<Service>, address: Option<IpAddr>, mut call: Call) -> Answer {
    if let Call::AddUser(user) = &mut call {
        if !service.newcomers.admit(address, service.now_ms()) {
            return Answer::Done(false);
        }
        user.made_at = address;
    }
    let maker = Arc::clone(service);
    let now_ms = service.now_ms();
    let asked = service.storage.call(move |storage| {
        call.run(storage, now_ms, |uaid, channel, key| {
            maker.endpoint(uaid, channel, key).ok()
        })
    });
    asked.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a client's request failed");
        Answer::Failed
    })
}

fn store_left(
    storage: &dyn Storage,
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

/// A signal from the rest of the service.
enum Told {
    Direct(OnItsWay),
    CheckStorage,
    Superseded,
}

/// The next signal. Pending until the client is registered.
async fn told(entry: &mut Option<(Uaid, Entry)>) -> Told {
    let Some((_, entry)) = entry else {
        return pending().await;
    };
    tokio::select! {
        biased;
        _ = &mut entry.superseded => Told::Superseded,
        message = entry.direct.recv() => message.map_or(Told::Superseded, Told::Direct),
        () = entry.reach.check.notified() => Told::CheckStorage,
    }
}

#[cfg(test)]
mod tests;
