//! A TLS server behind a Unix socket that answers from a table, and functions that run a check
//! against it.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use checker::emit::Emitter;
use checker::fetch::{Fetcher, Route, Start};
use checker::limits::Limits;
use checker::order::delivery;
use checker::{check, list, walk};
use protocol::order::AskPeers;
use protocol::{DeliveryOrder, Event, Host, ListOrder, WalkOrder};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;

/// Longest check in tests that don't test its end: a hang fails, and a busy machine does not.
const PATIENCE: Duration = Duration::from_mins(10);

pub(crate) const HOST: &str = "a.example";

pub(crate) const POINTER: &str = r#"{"links":[{"rel":"http://nodeinfo.diaspora.software/ns/schema/2.0","href":"https://a.example/nodeinfo/2.0"}]}"#;

#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Sends these bytes unchanged and ends the connection.
    Raw(Vec<u8>),
    /// Sends these bytes unchanged and waits for the connection's next request.
    Keep(Vec<u8>),
    /// Sends these bytes and then nothing more.
    RawThenSilence(Vec<u8>),
    /// Sends the first bytes, then repeats the second ones without end.
    Endless(Vec<u8>, Vec<u8>),
    /// Sends the first bytes, then repeats the second ones with a pause after each.
    Drip(Vec<u8>, Vec<u8>, Duration),
}

/// An answer with a status, header lines and a body.
pub(crate) fn answer(status: &str, head: &[&str], body: &[u8]) -> Reply {
    let head = [head, &["connection: close"]].concat();
    Reply::Raw(response(status, &head, body))
}

/// As [`answer`], over a connection that stays open for further requests.
pub(crate) fn kept_alive(status: &str, head: &[&str], body: &str) -> Reply {
    Reply::Keep(response(status, head, body.as_bytes()))
}

fn response(status: &str, head: &[&str], body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head: String = head.iter().map(|line| format!("{line}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{head}\r\n");
    [head.as_bytes(), body].concat()
}

pub(crate) fn ok(body: &str) -> Reply {
    let kind = "content-type: application/json";
    answer("200 OK", &[kind], body.as_bytes())
}

pub(crate) fn redirect(status: &str, location: &str) -> Reply {
    answer(status, &[&format!("location: {location}")], b"")
}

pub(crate) fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certificate {
    Sound,
    OtherName,
    Expired,
    NotYetValid,
    SelfSigned,
    /// Self-signed and marked as a CA's, as OpenSSL makes them by default.
    SelfSignedCa,
    UnknownIssuer,
    /// From an intermediate that the server doesn't send.
    IncompleteChain,
    /// A TLS alert in place of a handshake: the client's versions are too new.
    OldVersion,
    None,
    /// The connection is closed after the ClientHello.
    Cut,
}

#[derive(Debug)]
pub(crate) struct World {
    table: HashMap<String, Reply>,
    certificate: Certificate,
    limits: Limits,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<Event>,
    /// Method, path and body of each request.
    pub(crate) requests: Vec<String>,
    pub(crate) heads: String,
    pub(crate) connections: usize,
}

impl World {
    /// A host that answers 404, except at paths that are added.
    pub(crate) fn empty() -> Self {
        Self {
            table: HashMap::new(),
            certificate: Certificate::Sound,
            limits: Limits {
                // The rate limit has its own test. Here it would only take time.
                requests_per_second: 1000,
                whole: PATIENCE,
                first_byte: PATIENCE,
                body_window: PATIENCE,
                ..Limits::default()
            },
        }
    }

    pub(crate) fn of(software: &str) -> Self {
        let document = format!(
            r#"{{"software":{{"name":"{software}","version":"1.0"}},"protocols":["activitypub"],"metadata":{{}}}}"#
        );
        Self::empty()
            .with("/.well-known/nodeinfo", ok(POINTER))
            .with("/nodeinfo/2.0", ok(&document))
    }

    /// Adds or replaces an answer. The key is a path with its query, or without one for all
    /// queries, after a method other than GET; `*` is everything else.
    pub(crate) fn with(mut self, path: &str, reply: Reply) -> Self {
        self.table.insert(path.to_owned(), reply);
        self
    }

    pub(crate) fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = certificate;
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) async fn check(self) -> Outcome {
        let (served, mut fetcher, emitter, kept) = self.begin();
        let ended = check::run(&mut fetcher, emitter, AskPeers::Ask).await;
        ended.unwrap();
        served.outcome(kept.events())
    }

    pub(crate) async fn list(self, order: &ListOrder) -> Outcome {
        let (served, mut fetcher, emitter, kept) = self.begin();
        list::run(&mut fetcher, emitter, order).await.unwrap();
        served.outcome(kept.events())
    }

    pub(crate) async fn walk(self, seed: u64) -> Outcome {
        let (served, mut fetcher, emitter, kept) = self.begin();
        let ended = walk::run(&mut fetcher, emitter, WalkOrder { seed }).await;
        ended.unwrap();
        served.outcome(kept.events())
    }

    pub(crate) async fn deliver(self, order: &DeliveryOrder) -> Outcome {
        let (served, mut fetcher, emitter, kept) = self.begin();
        delivery::run(&mut fetcher, emitter, order).await.unwrap();
        served.outcome(kept.events())
    }

    fn begin(self) -> (Served, Fetcher, Emitter, Kept) {
        let limits = self.limits;
        let served = serve(self);
        let kept = Kept::default();
        let start = Start {
            instant: tokio::time::Instant::now(),
            wall: SystemTime::UNIX_EPOCH,
        };
        let fetcher = Fetcher::new(
            Route::Socket(&served.socket()),
            &Host::parse(HOST).unwrap(),
            "https://census.example",
            Some(served.ca_pem.as_bytes()),
            limits,
            start,
        )
        .unwrap();
        let emitter = Emitter::new(Box::new(kept.clone()), limits.stdout_bytes);
        (served, fetcher, emitter, kept)
    }
}

pub(crate) fn parse(lines: &[u8]) -> Vec<Event> {
    let lines = lines.split_inclusive(|&byte| byte == b'\n');
    lines
        .map(|line| {
            let event: Event = serde_json::from_slice(line).unwrap();
            assert!(event.is_within_bounds(), "{event:?}");
            event
        })
        .collect()
}

impl Outcome {
    /// The finding, after checking that it is the only event between `hello` and `done` except
    /// peers.
    pub(crate) fn finding(&self) -> &Event {
        assert!(matches!(self.events.first(), Some(Event::Hello { .. })));
        assert!(matches!(self.events.last(), Some(Event::Done { .. })));
        let inner = &self.events[1..self.events.len() - 1];
        let (finding, peers) = inner.split_first().unwrap();
        let is_alive = matches!(finding, Event::Alive(_));
        assert_eq!(is_alive, !peers.is_empty(), "{:?}", self.events);
        for (index, event) in peers.iter().enumerate() {
            let is_last = index + 1 == peers.len();
            match event {
                Event::Peers { .. } => assert!(!is_last),
                Event::PeersEnd { .. } => assert!(is_last),
                other => panic!("{other:?}"),
            }
        }
        finding
    }

    pub(crate) fn peers(&self) -> (String, Event) {
        self.finding();
        let mut names = Vec::new();
        for event in &self.events {
            if let Event::Peers { hosts } = event {
                names.extend(hosts.iter().map(ToString::to_string));
            }
        }
        let end = self.events[self.events.len() - 2].clone();
        (names.join(" "), end)
    }
}

#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn events(&self) -> Vec<Event> {
        parse(&self.0.lock().unwrap())
    }
}

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) directory: TempDir,
    pub(crate) ca_pem: String,
    seen: Arc<Mutex<Seen>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<String>,
    heads: String,
    connections: usize,
}

impl Served {
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("https.sock")
    }

    pub(crate) fn outcome(&self, events: Vec<Event>) -> Outcome {
        let seen = self.seen.lock().unwrap();
        Outcome {
            events,
            requests: seen.requests.clone(),
            heads: seen.heads.clone(),
            connections: seen.connections,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a world behind a socket in a new directory.
pub(crate) fn serve(world: World) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let (acceptor, ca_pem) = acceptor(world.certificate);
    let listener = UnixListener::bind(directory.path().join("https.sock")).unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let task = tokio::spawn(accept(
        listener,
        acceptor,
        Arc::new(world),
        Arc::clone(&seen),
    ));
    Served {
        directory,
        ca_pem,
        seen,
        task,
    }
}

async fn accept(
    listener: UnixListener,
    acceptor: TlsAcceptor,
    world: Arc<World>,
    seen: Arc<Mutex<Seen>>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, world, seen) = (acceptor.clone(), Arc::clone(&world), Arc::clone(&seen));
        tokio::spawn(async move {
            // Many tests are about clients that disconnect.
            converse(stream, &acceptor, &world, &seen).await.ok();
        });
    }
}

async fn converse(
    mut stream: UnixStream,
    acceptor: &TlsAcceptor,
    world: &World,
    seen: &Mutex<Seen>,
) -> std::io::Result<()> {
    match world.certificate {
        Certificate::None => {
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await?;
            return stream.shutdown().await;
        }
        Certificate::Cut => {
            let mut hello = [0; 512];
            let _received: usize = stream.read(&mut hello).await?;
            return Ok(());
        }
        Certificate::OldVersion => {
            // A fatal alert: protocol_version (RFC 8446 §6).
            return stream.write_all(&[21, 3, 3, 0, 2, 2, 70]).await;
        }
        Certificate::Sound
        | Certificate::OtherName
        | Certificate::Expired
        | Certificate::NotYetValid
        | Certificate::SelfSigned
        | Certificate::SelfSignedCa
        | Certificate::UnknownIssuer
        | Certificate::IncompleteChain => {}
    }
    let mut stream = acceptor.accept(stream).await?;
    let mut is_first = true;
    loop {
        let key = read_request(&mut stream, seen).await?;
        if std::mem::take(&mut is_first) {
            seen.lock().unwrap().connections += 1;
        }
        let not_found = answer("404 Not Found", &[], b"");
        let without_query = key.split('?').next().unwrap_or_default();
        let keys = [key.as_str(), without_query, "*"];
        let reply = keys.iter().find_map(|key| world.table.get(*key));
        match reply.unwrap_or(&not_found) {
            Reply::Keep(bytes) => stream.write_all(bytes).await?,
            reply => return play(&mut stream, reply).await,
        }
    }
}

/// Reads a request and records it. Returns its key in the table.
async fn read_request<S: tokio::io::AsyncRead + Unpin>(
    stream: &mut S,
    seen: &Mutex<Seen>,
) -> std::io::Result<String> {
    let head = read_head(stream).await?;
    let first = head.lines().next().unwrap_or_default().to_owned();
    let mut words = first.split(' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await?;
    let key = match method {
        "GET" => path.to_owned(),
        _ => format!("{method} {path}"),
    };
    let mut seen = seen.lock().unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    seen.requests
        .push(format!("{key} {body}").trim_end().to_owned());
    seen.heads.push_str(&head);
    Ok(key)
}

async fn play<S: tokio::io::AsyncWrite + Unpin>(
    stream: &mut S,
    reply: &Reply,
) -> std::io::Result<()> {
    match reply {
        Reply::Raw(bytes) | Reply::Keep(bytes) => stream.write_all(bytes).await?,
        Reply::RawThenSilence(bytes) => {
            stream.write_all(bytes).await?;
            stream.flush().await?;
            std::future::pending::<()>().await;
        }
        Reply::Endless(head, body) => {
            stream.write_all(head).await?;
            loop {
                stream.write_all(body).await?;
            }
        }
        Reply::Drip(head, body, pause) => {
            stream.write_all(head).await?;
            loop {
                stream.write_all(body).await?;
                stream.flush().await?;
                tokio::time::sleep(*pause).await;
            }
        }
    }
    stream.shutdown().await
}

async fn read_head<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn acceptor(certificate: Certificate) -> (TlsAcceptor, String) {
    let root = authority("root");
    let stranger = authority("stranger");
    let name = match certificate {
        Certificate::OtherName => "b.example",
        _ => HOST,
    };
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name = common_name(name);
    match certificate {
        Certificate::Expired => params.not_after = rcgen::date_time_ymd(2001, 1, 1),
        Certificate::NotYetValid => params.not_before = rcgen::date_time_ymd(4000, 1, 1),
        Certificate::SelfSignedCa => params.is_ca = ANY_CA,
        _ => {}
    }
    let chain = match certificate {
        Certificate::SelfSigned | Certificate::SelfSignedCa => {
            vec![params.self_signed(&key).unwrap()]
        }
        Certificate::UnknownIssuer => {
            let leaf = params.signed_by(&key, &stranger).unwrap();
            vec![leaf, stranger.as_ref().clone()]
        }
        Certificate::IncompleteChain => vec![params.signed_by(&key, &stranger).unwrap()],
        _ => vec![params.signed_by(&key, &root).unwrap()],
    };
    let chain = chain.iter().map(|link| link.der().clone()).collect();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), root.pem())
}

const ANY_CA: rcgen::IsCa = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);

fn authority(name: &str) -> rcgen::CertifiedIssuer<'static, rcgen::KeyPair> {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.is_ca = ANY_CA;
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertifiedIssuer::self_signed(params, key).unwrap()
}

fn common_name(name: &str) -> rcgen::DistinguishedName {
    let mut names = rcgen::DistinguishedName::new();
    names.push(rcgen::DnType::CommonName, name);
    names
}

/// Writes the files that the gateway puts next to the socket.
pub(crate) fn write_order(directory: &Path, ca_pem: &str, peers: &str) {
    let order = format!(r#"{{"contact":"https://census.example","peers":"{peers}"}}"#);
    std::fs::write(directory.join("order.json"), order).unwrap();
    std::fs::write(directory.join("ca.pem"), ca_pem).unwrap();
}

/// Writes the same files for a list.
pub(crate) fn write_list_order(directory: &Path, ca_pem: &str, list: &ListOrder) {
    let list = serde_json::to_string(list).unwrap();
    let order = format!(r#"{{"contact":"https://census.example","peers":"skip","list":{list}}}"#);
    std::fs::write(directory.join("order.json"), order).unwrap();
    std::fs::write(directory.join("ca.pem"), ca_pem).unwrap();
}
