//! A client's WebSocket: frames to events, actions to frames and calls.

use std::future::pending;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::ids::Uaid;
use crate::notification::Notification;
use crate::session::{Action, Answer, Call, Close, Event, Leaving, Session, Surroundings};
use crate::storage::{Room, Storage, StorageError, User};

use super::clients::Entry;
use super::service::Service;

/// For so long the other side may take to answer a close frame.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

/// Sending a frame may take so long, or the client is taken for gone.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);

/// Serves a client until either side ends the connection.
pub(super) async fn serve(socket: WebSocket, service: Arc<Service>) {
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
    };
    if connection.act(actions).await.is_continue() {
        connection.run().await;
    }
    connection.leave().await;
}

struct Connection {
    socket: WebSocket,
    session: Session,
    /// Where others reach it, once it is known who it is.
    entry: Option<(Uaid, Entry)>,
    wake: Pin<Box<Sleep>>,
    service: Arc<Service>,
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
                    // It is answered below us.
                    Some(Ok(Message::Ping(_))) if is_known => continue,
                    Some(Ok(Message::Ping(_))) => Event::BadFrame,
                    Some(Ok(Message::Close(_))) => return self.hear_out().await,
                    Some(Err(_)) | None => return,
                },
                () = wake.as_mut() => Event::TimeIsUp,
                event = told(entry) => event,
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

    /// Does what the session wants, calls and their answers included.
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
            if let Some((_, entry)) = &self.entry {
                let takes = self.session.takes_direct();
                entry.reach.takes_direct.store(takes, Ordering::Release);
            }
            let Some(call) = call else {
                return ControlFlow::Continue(());
            };
            let answer = ask(&self.service, call).await;
            let broadcasts = self.service.broadcasts();
            let surroundings = Surroundings {
                now_ms: self.service.now_ms(),
                broadcasts: &broadcasts,
            };
            actions = self.session.on(Event::Answer(answer), surroundings);
        }
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
        if self.send(Message::Close(Some(frame))).await.is_continue() {
            self.hear_out().await;
        }
    }

    /// Takes what still comes, so that the other side reads the close frame before the connection
    /// breaks.
    async fn hear_out(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        timeout(CLOSE_TIME_MAX, rest).await.unwrap_or(());
    }

    /// The connection has ended: what the client has not acknowledged is stored.
    async fn leave(self) {
        let Self {
            session,
            entry,
            service,
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
        unacknowledged.extend(queued.into_iter().filter(|message| message.ttl_s > 0));
        let Ok(_turn) = service.leaving.acquire().await else {
            return;
        };
        let now_ms = service.now_ms();
        let left = service
            .storage
            .call(move |storage| store_left(storage, uaid, unacknowledged, now_ms));
        match left.await {
            Ok(Some(user)) => {
                let is_here = user.node.as_ref() == Some(&service.settings.node);
                if is_here && user.connected_ms == connected_ms {
                    service.forget_node(user).await;
                } else if let Some(node) = user.node {
                    service.notify(&node, uaid).await;
                }
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "what a client left could not be stored"),
        }
    }
}

async fn ask(service: &Arc<Service>, call: Call) -> Answer {
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
        storage.save(uaid, &messages, Room::Promised)?;
    }
    storage.get_user(uaid)
}

/// The next event from the registry. Pending until the client is registered.
async fn told(entry: &mut Option<(Uaid, Entry)>) -> Event {
    let Some((_, entry)) = entry else {
        return pending().await;
    };
    tokio::select! {
        biased;
        _ = &mut entry.superseded => Event::Superseded,
        message = entry.direct.recv() => match message {
            Some(message) => Event::Direct(message),
            None => Event::Superseded,
        },
        () = entry.reach.check.notified() => Event::CheckStorage,
    }
}
