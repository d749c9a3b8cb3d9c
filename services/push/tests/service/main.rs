//! The whole service over connections in memory: clients, applications and other nodes.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of it is test code: a panic is how it says what it found"
)]

mod applications;
mod clients;
mod notify;
mod process;
mod registration;
mod remote;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::put;
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use push::endpoint::fernet::Keys;
use push::notify::seal::Sender;
use push::remote::wire::Daemon;
use push::remote::{PushServices, Remote};
use push::serve::{Bounds, Census, Now, Service, Settings, converse, internal, public};
use push::session::Rules;
use push::storage::sqlite::{Limits, Sqlite};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

const ORIGIN: &str = "https://push.example";
const CHANNEL: &str = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";

/// Longest wait for an expected event.
const PATIENCE: Duration = Duration::from_secs(20);

/// Shortest wait that shows that an event does not come.
const SILENCE: Duration = Duration::from_millis(300);

fn keys(byte: u8) -> String {
    Keys::text_of(&[byte; 32])
}

fn settings(rules: Rules) -> Settings {
    Settings {
        origin: ORIGIN.to_owned(),
        nodes: PathBuf::new(),
        node: "here".to_owned(),
        keys: Keys::parse(&keys(1)).unwrap(),
        registration_keys: vec!["first".to_owned(), "second".to_owned()],
        rules,
        bounds: Bounds::within(768 * 1024 * 1024),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the test's clock")]
fn now() -> Now {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
    })
}

struct Push {
    folder: TempDir,
    service: Arc<Service>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    fn refusal(&self) -> (u16, Value) {
        (self.status.as_u16(), self.json()["errno"].clone())
    }
}

impl Push {
    fn new(rules: Rules) -> Self {
        Self::open(tempfile::tempdir().unwrap(), settings(rules))
    }

    fn open(folder: TempDir, settings: Settings) -> Self {
        Self::open_with(folder, settings, PushServices::default())
    }

    /// A service that posts messages to other push services through `daemon.sock`.
    fn open_with(folder: TempDir, mut settings: Settings, services: PushServices) -> Self {
        folder.path().clone_into(&mut settings.nodes);
        let path = folder.path().join("push.db");
        let storage = Arc::new(Sqlite::open(&path, Limits::ORDINARY).unwrap());
        let key = storage
            .secret("sender", &Sender::new_key().unwrap())
            .unwrap();
        let census = Census {
            sender: Sender::new(&key, "mailto:census@example".to_owned()).unwrap(),
            changes: folder.path().join("changes"),
            remote: Remote {
                services,
                daemon: Daemon::new(folder.path().join("daemon.sock")),
            },
        };
        let service = Service::new(settings, storage, Some(census), now()).unwrap();
        let service = Arc::new(service);
        Self { folder, service }
    }

    fn another(&self, settings: Settings) -> Arc<Service> {
        let storage = Arc::new(self.storage());
        Arc::new(Service::new(settings, storage, None, now()).unwrap())
    }

    fn node(&self, rules: Rules) -> (Arc<Service>, UnixListener) {
        let node = self.another(Settings {
            nodes: self.folder.path().to_owned(),
            node: "there".to_owned(),
            ..settings(rules)
        });
        let listener = UnixListener::bind(node.node_socket()).unwrap();
        (node, listener)
    }

    fn public(&self) -> Router {
        public(Arc::clone(&self.service))
    }

    async fn client(&self) -> Client {
        Client::connect(self.public()).await
    }

    /// A client that has said hello. An empty id is a new one's.
    async fn greeted(&self, uaid: &str) -> Client {
        let mut client = self.client().await;
        client.hello(uaid).await;
        client
    }

    /// Disconnects a client, and waits until the service knows. Returns its id.
    async fn dismissed(&self, client: Client) -> String {
        let uaid = client.leave().await;
        until_empty(self).await;
        uaid
    }

    fn storage(&self) -> Sqlite {
        Sqlite::open(&self.folder.path().join("push.db"), Limits::ORDINARY).unwrap()
    }

    fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("push.db")).unwrap()
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        ask(self.public(), method, path, headers, body).await
    }

    /// Sends a message without a body to an endpoint.
    async fn send(&self, endpoint: &str, ttl_s: u32) -> Answer {
        let ttl_s = ttl_s.to_string();
        self.ask("POST", path(endpoint), &[("ttl", &ttl_s)], b"")
            .await
    }
}

fn open_connection(router: Router) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(converse(theirs, router));
    ours
}

async fn ask(
    router: Router,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    ask_over(open_connection(router), method, path, headers, body).await
}

async fn ask_over<S>(
    stream: S,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "push.example");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_vec())).unwrap();
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: head.status,
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// Another node, which holds a client. It refuses each request when the test allows it.
struct SlowNode {
    requests: mpsc::Receiver<oneshot::Sender<()>>,
}

impl SlowNode {
    /// A node with a registered client, and the client's endpoint. The test sees requests for
    /// `path`.
    async fn start(push: &Push, path: &'static str) -> (Self, String) {
        let (other, listener) = push.node(Rules::AUTOPUSH);
        let (client, endpoint) = subscribed_at(public(other), None).await;
        let (asked, requests) = mpsc::channel(1);
        tokio::spawn(async move {
            // The client stays connected as long as its node.
            let _client = client;
            while let Ok((stream, _)) = listener.accept().await {
                let asked = asked.clone();
                let refused = put(async move || {
                    let (allow, allowed) = oneshot::channel();
                    asked.send(allow).await.ok();
                    allowed.await.ok();
                    StatusCode::NOT_FOUND
                });
                let router = Router::new().route(path, refused);
                tokio::spawn(converse(stream, router));
            }
        });
        (Self { requests }, endpoint)
    }

    /// The next request. It is refused when the value is dropped.
    async fn asked(&mut self) -> oneshot::Sender<()> {
        let asked = timeout(PATIENCE, self.requests.recv());
        asked.await.unwrap().unwrap()
    }
}

fn path(url: &str) -> &str {
    url.strip_prefix(ORIGIN).unwrap()
}

struct Client<S = DuplexStream> {
    socket: WebSocketStream<S>,
    uaid: String,
}

impl Client {
    async fn connect(router: Router) -> Self {
        Self::over(open_connection(router), None).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// A client at an address, as the web server in front forwards it.
    async fn over(stream: S, address: Option<&str>) -> Self {
        let mut request = "ws://push.example/".into_client_request().unwrap();
        if let Some(address) = address {
            let address = address.parse().unwrap();
            request.headers_mut().insert("x-real-ip", address);
        }
        let (socket, _) = client_async(request, stream).await.unwrap();
        Self {
            socket,
            uaid: String::new(),
        }
    }

    async fn say(&mut self, message: Value) {
        let text = Message::text(message.to_string());
        self.socket.send(text).await.unwrap();
    }

    /// The next message, or the code and reason of a close frame.
    async fn next(&mut self) -> Result<Value, (u16, String)> {
        timeout(PATIENCE, self.read()).await.unwrap()
    }

    async fn read(&mut self) -> Result<Value, (u16, String)> {
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Text(text) => return Ok(serde_json::from_str(&text).unwrap()),
                Message::Close(Some(frame)) => {
                    return Err((frame.code.into(), frame.reason.to_string()));
                }
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn heard(&mut self) -> Value {
        self.next().await.unwrap()
    }

    async fn closed(&mut self) -> (u16, String) {
        self.next().await.unwrap_err()
    }

    async fn hears_nothing(&mut self) {
        let heard = timeout(SILENCE, self.next()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    async fn hello(&mut self, uaid: &str) -> Value {
        let uaid = Some(uaid).filter(|uaid| !uaid.is_empty());
        let hello = json!({"messageType": "hello", "uaid": uaid});
        self.say(hello).await;
        let answer = self.heard().await;
        answer["uaid"].as_str().unwrap().clone_into(&mut self.uaid);
        answer
    }

    async fn register(&mut self, key: Option<&str>) -> String {
        let register = json!({"messageType": "register", "channelID": CHANNEL, "key": key});
        self.say(register).await;
        let answer = self.heard().await;
        assert_eq!(answer["status"], 200, "{answer}");
        answer["pushEndpoint"].as_str().unwrap().to_owned()
    }

    async fn unregister(&mut self) -> Value {
        let unregister = json!({"messageType": "unregister", "channelID": CHANNEL});
        self.say(unregister).await;
        self.heard().await
    }

    async fn acknowledge(&mut self, message: &Value) {
        let update = json!({"channelID": message["channelID"], "version": message["version"]});
        self.say(json!({"messageType": "ack", "updates": [update]}))
            .await;
    }

    async fn leave(mut self) -> String {
        self.socket.close(None).await.unwrap();
        while let Some(Ok(_)) = self.socket.next().await {}
        self.uaid
    }
}

async fn subscribed(push: &Push, key: Option<&str>) -> (Client, String) {
    subscribed_at(push.public(), key).await
}

async fn subscribed_at(router: Router, key: Option<&str>) -> (Client, String) {
    let mut client = Client::connect(router).await;
    client.hello("").await;
    let endpoint = client.register(key).await;
    (client, endpoint)
}

/// A service with autopush's rules, a registered client and its endpoint.
async fn rig() -> (Push, Client, String) {
    let push = Push::new(Rules::AUTOPUSH);
    let (client, endpoint) = subscribed(&push, None).await;
    (push, client, endpoint)
}

async fn until_empty(push: &Push) {
    let empty = async {
        while push.service.connections() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, empty).await.unwrap();
}
