//! An engine's API on a real Unix socket, sound or faulty at a chosen call. It tests how
//! [`crate::BollardEngine`] and the HTTP client below it react.
//!
//! The first label of its host decides what a check's container does: `seven` prints and ends with
//! 7, `stay` prints and stays, `flood` prints without end.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use crate::tests::fake_engine::REPORT;

/// More than any bound on an answer: a reader that takes this much has no bound.
pub(crate) const ENDLESS_BYTES: u64 = 64 * 1024 * 1024;

/// A call of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Version,
    List,
    Image,
    Volume,
    Create,
    Attach,
    Start,
    Wait,
    Kill,
    Remove,
}

/// What goes wrong with a call. Except for `Late`, the call has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// The right answer, after this long.
    Late(Duration),
    /// No answer, and the connection stays open.
    Never,
    /// The connection closes without an answer.
    Cut,
    /// Bytes that are not HTTP.
    NoHttp,
    /// A status and a body of this type, complete.
    Answer(u16, &'static str, &'static str),
    /// A body shorter than it claims, then the connection closes.
    CutBody,
    /// A body shorter than it claims, then silence.
    HalfBody,
    /// Headers without end.
    EndlessHead,
    /// A body without end, on one line.
    EndlessBody(u16),
    /// An upgrade, then these bytes, then the end or silence.
    Stream(&'static [u8], Then),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    End,
    Silence,
    Flood,
}

#[derive(Debug)]
pub(crate) struct OddEngine {
    _folder: tempfile::TempDir,
    pub(crate) socket: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    mishaps: HashMap<Call, Mishap>,
    made: u64,
    containers: BTreeMap<String, Container>,
    calls: Vec<Call>,
    endless_bytes: u64,
}

#[derive(Debug, Clone)]
struct Container {
    labels: Value,
    behaviour: String,
    started: watch::Sender<bool>,
    ended: watch::Sender<Option<i64>>,
}

struct Request {
    call: Call,
    id: String,
    body: Vec<u8>,
}

impl OddEngine {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let state = Arc::new(Mutex::new(State::default()));
        let engine = Self {
            _folder: folder,
            socket,
            state,
        };
        let listener = UnixListener::bind(&engine.socket).unwrap();
        let state = Arc::clone(&engine.state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&state)));
            }
        });
        engine
    }

    pub(crate) fn go_wrong(&self, call: Call, mishap: Mishap) {
        self.state.lock().unwrap().mishaps.insert(call, mishap);
    }

    pub(crate) fn be_sound(&self) {
        self.state.lock().unwrap().mishaps.clear();
    }

    pub(crate) fn plant(&self, id: &str, labels: &Value) {
        let container = Container::new(labels.clone(), "stay".to_owned());
        container.started.send_replace(true);
        let mut state = self.state.lock().unwrap();
        state.containers.insert(id.to_owned(), container);
    }

    pub(crate) fn containers(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state.containers.keys().cloned().collect()
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state.lock().unwrap().calls.clone()
    }

    /// The largest number of bytes that one endless answer has sent. Resets it.
    pub(crate) fn take_endless_bytes(&self) -> u64 {
        std::mem::take(&mut self.state.lock().unwrap().endless_bytes)
    }
}

impl Container {
    fn new(labels: Value, behaviour: String) -> Self {
        Self {
            labels,
            behaviour,
            started: watch::Sender::new(false),
            ended: watch::Sender::new(None),
        }
    }

    fn start(&self) {
        self.started.send_replace(true);
        let code = match self.behaviour.as_str() {
            "probe" => Some(0),
            "seven" => Some(7),
            _ => None,
        };
        self.ended.send_replace(code);
    }

    fn kill(&self) {
        self.ended.send_if_modified(|code| {
            let runs = code.is_none();
            *code = code.or(Some(137));
            runs
        });
    }

    async fn end(&self) -> i64 {
        let mut ended = self.ended.subscribe();
        let code = *ended.wait_for(Option::is_some).await.unwrap();
        code.unwrap()
    }
}

async fn serve(mut stream: UnixStream, state: Arc<Mutex<State>>) {
    let Some(request) = request(&mut stream).await else {
        return;
    };
    let mishap = {
        let mut state = state.lock().unwrap();
        state.calls.push(request.call);
        state.mishaps.get(&request.call).copied()
    };
    match mishap {
        None => soundly(&mut stream, &state, &request).await,
        Some(Mishap::Late(wait)) => {
            tokio::time::sleep(wait).await;
            soundly(&mut stream, &state, &request).await;
        }
        Some(mishap) => badly(&mut stream, &state, mishap).await,
    }
}

/// The relevant parts of the request. `None` if the client disconnected before the request was
/// complete.
async fn request(stream: &mut UnixStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let body = bytes.split_off(head_end.saturating_add(4));
    let head = String::from_utf8(bytes).unwrap();
    let length = head
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length:")
                .map(|n| n.trim().to_owned())
        })
        .map_or(0, |length| length.parse().unwrap());
    let mut body = body;
    while body.len() < length {
        if stream.read_buf(&mut body).await.unwrap_or(0) == 0 {
            return None;
        }
    }
    let (method, rest) = head.split_once(' ').unwrap();
    let path = rest.split([' ', '?']).next().unwrap();
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (call, id) = match (method, &parts[..]) {
        ("GET", ["version"]) => (Call::Version, ""),
        ("GET", ["containers", "json"]) => (Call::List, ""),
        ("GET", ["images", .., "json"]) => (Call::Image, ""),
        ("GET", ["volumes"]) => (Call::Volume, ""),
        ("POST", ["containers", "create"]) => (Call::Create, ""),
        ("POST", ["containers", id, "attach"]) => (Call::Attach, *id),
        ("POST", ["containers", id, "start"]) => (Call::Start, *id),
        ("POST", ["containers", id, "wait"]) => (Call::Wait, *id),
        ("POST", ["containers", id, "kill"]) => (Call::Kill, *id),
        ("DELETE", ["containers", id]) => (Call::Remove, *id),
        _ => panic!("no such call: {head}"),
    };
    Some(Request {
        call,
        id: id.to_owned(),
        body,
    })
}

async fn soundly(stream: &mut UnixStream, state: &Mutex<State>, request: &Request) {
    let found = state.lock().unwrap().containers.get(&request.id).cloned();
    let found = || found.ok_or((404, json!({"message": "no such container"})));
    let (status, body) = match request.call {
        Call::Version => (200, json!({"Version": "0", "ApiVersion": "1.41"})),
        Call::Image => (200, json!({"Id": "sha256:0"})),
        Call::Volume => (
            200,
            json!({"Volumes": [{"Name": "fedicensus_egress", "Driver": "local",
            "Mountpoint": "/v", "Labels": {}, "Scope": "local", "Options": {}}]}),
        ),
        Call::List => (200, list(state)),
        Call::Create => (201, create(state, &request.body)),
        Call::Attach => match found() {
            Ok(container) => return attached(stream, &container).await,
            Err(refusal) => refusal,
        },
        Call::Start => found().map_or_else(
            |refusal| refusal,
            |container| {
                container.start();
                (204, Value::Null)
            },
        ),
        Call::Wait => match found() {
            Ok(container) => (200, json!({"StatusCode": container.end().await})),
            Err(refusal) => refusal,
        },
        Call::Kill => found().map_or_else(
            |refusal| refusal,
            |container| {
                container.kill();
                (204, Value::Null)
            },
        ),
        Call::Remove => {
            let removed = state.lock().unwrap().containers.remove(&request.id);
            removed.map_or(
                (404, json!({"message": "no such container"})),
                |container| {
                    container.kill();
                    (204, Value::Null)
                },
            )
        }
    };
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    answer(stream, status, "application/json", &body).await;
}

/// Deliberately all of them: the launcher has to filter itself.
fn list(state: &Mutex<State>) -> Value {
    let state = state.lock().unwrap();
    let all = state.containers.iter();
    // A state that the client does not know, as Podman reports it.
    all.map(|(id, container)| json!({"Id": id, "Labels": container.labels, "State": "stopped"}))
        .collect()
}

fn create(state: &Mutex<State>, body: &[u8]) -> Value {
    let body: Value = serde_json::from_slice(body).unwrap();
    let last = body["Cmd"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .as_str()
        .unwrap();
    let behaviour = last
        .trim_start_matches('-')
        .split('.')
        .next()
        .unwrap()
        .to_owned();
    let mut state = state.lock().unwrap();
    state.made = state.made.saturating_add(1);
    let id = format!("c{}", state.made);
    let container = Container::new(body["Labels"].clone(), behaviour);
    state.containers.insert(id.clone(), container);
    json!({"Id": id, "Warnings": []})
}

async fn attached(stream: &mut UnixStream, container: &Container) {
    stream.write_all(UPGRADED).await.ok();
    let mut started = container.started.subscribe();
    started.wait_for(|started| *started).await.unwrap();
    let printed: &[u8] = match container.behaviour.as_str() {
        "probe" => REPORT.as_bytes(),
        _ => b"out",
    };
    stream.write_all(&frame(1, printed)).await.ok();
    if container.behaviour == "flood" {
        let chunk = frame(1, &vec![b'x'; 32 * 1024]);
        while stream.write_all(&chunk).await.is_ok() {}
    }
    container.end().await;
}

const UPGRADED: &[u8] = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

fn frame(source: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![source, 0, 0, 0];
    frame.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    frame.extend(payload);
    frame
}

async fn answer(stream: &mut UnixStream, status: u16, kind: &str, body: &str) {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nLocation: /elsewhere\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.ok();
}

async fn badly(stream: &mut UnixStream, state: &Mutex<State>, mishap: Mishap) {
    match mishap {
        Mishap::Late(_) | Mishap::Cut => {}
        Mishap::Never => silence(stream).await,
        Mishap::NoHttp => {
            stream
                .write_all(b"\x16\x03\x01SSH-2.0-odd\r\n\r\n")
                .await
                .ok();
        }
        Mishap::Answer(status, kind, body) => answer(stream, status, kind, body).await,
        Mishap::CutBody | Mishap::HalfBody => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"Status";
            stream.write_all(head).await.ok();
            if mishap == Mishap::HalfBody {
                silence(stream).await;
            }
        }
        Mishap::EndlessHead => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").await.ok();
            flood(stream, state).await;
        }
        Mishap::EndlessBody(status) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n\r\n{{\"message\":\""
            );
            stream.write_all(head.as_bytes()).await.ok();
            flood(stream, state).await;
        }
        Mishap::Stream(bytes, then) => {
            stream.write_all(UPGRADED).await.ok();
            stream.write_all(bytes).await.ok();
            match then {
                Then::End => {}
                Then::Silence => silence(stream).await,
                Then::Flood => flood(stream, state).await,
            }
        }
    }
}

/// Waits until the client disconnects.
async fn silence(stream: &mut UnixStream) {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await.unwrap_or(0) > 0 {}
}

async fn flood(stream: &mut UnixStream, state: &Mutex<State>) {
    let chunk = vec![b'a'; 64 * 1024];
    let mut given: u64 = 0;
    while given < ENDLESS_BYTES {
        let Ok(count) = stream.write(&chunk).await else {
            break;
        };
        given = given.saturating_add(u64::try_from(count).unwrap());
        let mut state = state.lock().unwrap();
        state.endless_bytes = state.endless_bytes.max(given);
    }
    silence(stream).await;
}

#[cfg(test)]
mod tests;
