use std::path::PathBuf;

use axum::Router;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::*;
use crate::endpoint::fernet::Keys;
use crate::serve::clients::slots::Slots;
use crate::serve::{Bounds, Settings, converse, public};
use crate::session::Rules;
use crate::storage::sqlite::{Limits, Sqlite};

const CHANNEL: &str = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";

const PATIENCE: Duration = Duration::from_secs(20);

/// Places of the service: 10 for each network.
const PLACES: usize = 160;

const NOW_MS: i64 = 1_800_000_000_000;

type Socket = WebSocketStream<DuplexStream>;

fn service() -> (Arc<Service>, tempfile::TempDir) {
    bounded(Bounds::within(768 * 1024 * 1024))
}

fn bounded(bounds: Bounds) -> (Arc<Service>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let storage = Sqlite::open(&folder.path().join("push.db"), Limits::ORDINARY).unwrap();
    let settings = Settings {
        origin: "https://push.example".to_owned(),
        nodes: PathBuf::new(),
        node: "here".to_owned(),
        keys: Keys::parse(&Keys::text_of(&[1; 32])).unwrap(),
        registration_keys: vec!["key".to_owned()],
        rules: Rules::AUTOPUSH,
        bounds,
    };
    let now = Arc::new(|| NOW_MS);
    let mut service = Service::new(settings, Arc::new(storage), None, now).unwrap();
    service.slots = Slots::new(PLACES);
    (Arc::new(service), folder)
}

async fn connect(router: Router) -> Socket {
    connect_from("", router).await.unwrap()
}

/// Connects from an address; `None` if it is refused.
async fn connect_from(address: &str, router: Router) -> Option<Socket> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(converse(theirs, router));
    let mut request = "ws://push.example/".into_client_request().unwrap();
    let address = address.parse().unwrap();
    request.headers_mut().insert("x-real-ip", address);
    let (socket, _) = client_async(request, ours).await.ok()?;
    Some(socket)
}

async fn say(socket: &mut Socket, message: Value) {
    let text = Frame::text(message.to_string());
    socket.send(text).await.unwrap();
}

async fn heard(socket: &mut Socket) -> Value {
    let frame = timeout(PATIENCE, socket.next()).await.unwrap();
    serde_json::from_str(frame.unwrap().unwrap().to_text().unwrap()).unwrap()
}

async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap();
}

async fn greeted(service: &Arc<Service>) -> (Socket, Uaid) {
    let mut socket = connect(public(Arc::clone(service))).await;
    say(&mut socket, json!({"messageType": "hello"})).await;
    let uaid = heard(&mut socket).await["uaid"].clone();
    (socket, Uaid::parse(uaid.as_str().unwrap()).unwrap())
}

/// Registers twenty channels without waiting for answers. Returns them.
async fn register_many(socket: &mut Socket) -> Vec<String> {
    let number = |number| format!("d9b74644-4f97-46aa-b8fa-9393985cd6{number}");
    let channels: Vec<String> = (10..30).map(number).collect();
    for channel in &channels {
        say(socket, register(channel)).await;
    }
    channels
}

fn register(channel: &str) -> Value {
    json!({"messageType": "register", "channelID": channel})
}

#[tokio::test]
async fn what_a_client_has_not_acknowledged_takes_room_and_gives_it_back() {
    let (service, _folder) = service();
    let free = || service.clients.free_bytes();
    let all = free();
    let (mut socket, uaid) = greeted(&service).await;
    for version in ["a", "b", "c"] {
        until(|| service.clients.push(uaid, Notification::sample(version))).await;
        assert_eq!(heard(&mut socket).await["version"], version);
    }
    assert_eq!(free(), all - 3 * direct_bytes(&Notification::sample("a")));
    let updates = ["a", "b"].map(|version| json!({"channelID": CHANNEL, "version": version}));
    let acknowledged = json!({"messageType": "ack", "updates": updates});
    say(&mut socket, acknowledged).await;
    until(|| free() == all - direct_bytes(&Notification::sample("c"))).await;
    drop(socket);
    until(|| free() == all).await;
}

/// The clock stands still: both connections are of the same millisecond.
#[tokio::test]
async fn the_end_of_a_former_connection_leaves_the_current_one() {
    let (service, _folder) = service();
    let (mut former, uaid) = greeted(&service).await;
    say(&mut former, register(CHANNEL)).await;
    assert_eq!(heard(&mut former).await["status"], 200);
    let mut current = connect(public(Arc::clone(&service))).await;
    let hello = json!({"messageType": "hello", "uaid": uaid.to_string()});
    say(&mut current, hello).await;
    assert_eq!(heard(&mut current).await["uaid"], uaid.to_string());
    // The former connection's stream ends after everything else.
    while let Some(Ok(_)) = former.next().await {}
    let user = service.storage.call(move |storage| storage.get_user(uaid));
    let node = user.await.unwrap().unwrap().node;
    assert_eq!(node.as_deref(), Some("here"));
}

fn closed(service: &Service, code: &str) -> u64 {
    service.meters.closes(code)
}

#[tokio::test]
async fn requests_that_do_not_wait_for_answers_are_answered_in_order() {
    let (service, _folder) = service();
    let (mut socket, _) = greeted(&service).await;
    for channel in register_many(&mut socket).await {
        let answer = heard(&mut socket).await;
        assert_eq!(answer["channelID"], channel.as_str());
        assert_eq!(answer["status"], 200);
    }
}

#[tokio::test]
async fn what_a_client_said_before_it_closed_counts() {
    let (service, _folder) = service();
    let (mut socket, uaid) = greeted(&service).await;
    register_many(&mut socket).await;
    socket.close(None).await.unwrap();
    until(|| service.connected.is_empty()).await;
    let channels = service.storage.call(move |storage| storage.channels(uaid));
    assert_eq!(channels.await.unwrap().len(), 20);
}

/// What it sends would lie in the web server's memory.
#[tokio::test] // S31
async fn client_that_reads_no_answers_is_read_and_closed() {
    let (service, _folder) = service();
    let (mut socket, _) = greeted(&service).await;
    let register = register(CHANNEL).to_string();
    let sending = async { while socket.send(Frame::text(register.as_str())).await.is_ok() {} };
    timeout(PATIENCE, sending).await.unwrap();
    assert_eq!(closed(&service, "1008"), 1);
}

#[tokio::test] // S31
async fn client_that_sends_endlessly_is_closed() {
    let (service, _folder) = service();
    let (mut socket, _) = greeted(&service).await;
    let pings = async {
        while socket.send(Frame::Ping(vec![1].into())).await.is_ok() {
            // Pongs are read, so that it is the number that counts.
            let _pong = socket.next().await;
        }
    };
    timeout(PATIENCE, pings).await.unwrap();
    assert_eq!(closed(&service, "1008"), 1);
}

/// The beginning of a text of 30 000 bytes, as a client sends it.
fn part_of_a_frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![0x81, 0xfe, 0x75, 0x30, 0, 0, 0, 0];
    frame.resize(bytes, b' ');
    frame
}

#[tokio::test] // S31
async fn client_that_holds_most_of_all_is_closed_first() {
    let (service, _folder) = bounded(Bounds {
        clients: 10,
        held_bytes: 40_000,
    });
    let mut sockets = Vec::new();
    for bytes in [5000, 25_000, 20_000] {
        let (mut socket, _) = greeted(&service).await;
        let part = part_of_a_frame(bytes);
        let held = service.held.total();
        socket.get_mut().write_all(&part).await.unwrap();
        until(|| service.held.total() > held + bytes - 4096 || closed(&service, "1008") > 0).await;
        sockets.push(socket);
    }
    let [small, large, middle] = &mut sockets[..] else {
        panic!("three clients");
    };
    assert!(large.next().await.unwrap().unwrap().is_close());
    assert_eq!(closed(&service, "1008"), 1);
    for socket in [small, middle] {
        let rest = vec![b' '; 30_008 - 5000];
        socket.get_mut().write_all(&rest).await.ok();
        // Spaces are no message: it was read to its end.
        let frame = socket.next().await.unwrap().unwrap();
        assert!(frame.is_close(), "{frame:?}");
    }
    assert_eq!(closed(&service, "1011"), 2);
}

#[tokio::test]
async fn a_service_that_stops_tells_its_clients_so() {
    let (service, _folder) = service();
    let (mut socket, _) = greeted(&service).await;
    let told = async {
        let Frame::Close(Some(frame)) = socket.next().await.unwrap().unwrap() else {
            panic!("no close frame");
        };
        assert_eq!(u16::from(frame.code), 1012);
        while let Some(Ok(_)) = socket.next().await {}
    };
    timeout(PATIENCE, async { tokio::join!(service.dismiss(), told) })
        .await
        .unwrap();
}

#[tokio::test] // S33
async fn strangers_do_not_get_the_last_places() {
    let (service, _folder) = service();
    let [old, young] = [1, 2].map(|byte| Uaid::from_random([byte; 16]));
    for (uaid, made_ms) in [(old, NOW_MS - 24 * 60 * 60 * 1000), (young, NOW_MS - 1)] {
        let user = User {
            made_ms,
            ..User::connected(uaid, service.settings.node.clone(), made_ms)
        };
        let added = service.storage.call(move |s| s.add_user(&user)).await;
        assert!(added.unwrap());
    }
    let hello = async |address: &str, uaid: Option<Uaid>| {
        let mut socket = connect_from(address, public(Arc::clone(&service))).await?;
        let uaid = uaid.map(|uaid| uaid.to_string());
        say(&mut socket, json!({"messageType": "hello", "uaid": uaid})).await;
        let frame = timeout(PATIENCE, socket.next()).await.unwrap();
        if let Frame::Close(frame) = frame.unwrap().unwrap() {
            return Some(Err(u16::from(frame.unwrap().code)));
        }
        Some(Ok(socket))
    };
    let mut clients = Vec::new();
    // The last of its share are not for a network's strangers, and there is nothing beyond it.
    for number in 0..9 {
        let address = format!("2001:db8:0:{number}::1");
        clients.push(hello(&address, None).await.unwrap().unwrap());
    }
    for uaid in [None, Some(young)] {
        assert_eq!(hello("2001:db8::1", uaid).await.unwrap().unwrap_err(), 1013);
        until(|| service.connected.len() == clients.len()).await;
    }
    clients.push(hello("2001:db8::1", Some(old)).await.unwrap().unwrap());
    assert!(hello("2001:db8::1", Some(old)).await.is_none());
    let node = service.storage.call(move |s| s.get_user(young)).await;
    assert_eq!(node.unwrap().unwrap().node, None, "it is not connected");
    // Neither are the last of all.
    for number in 10..144 {
        let address = format!("10.{}.0.1", number % 16);
        clients.push(hello(&address, None).await.unwrap().unwrap());
    }
    assert_eq!(hello("192.0.2.1", None).await.unwrap().unwrap_err(), 1013);
    clients.push(hello("192.0.2.1", Some(old)).await.unwrap().unwrap());
    // Each place is given back.
    drop(clients);
    until(|| service.connected.is_empty()).await;
    hello("2001:db8::1", None).await.unwrap().unwrap();
}

/// Behind a TLS proxy that the web server does not know, all clients have its address.
#[test]
fn one_address_for_all_may_have_all_places() {
    let slots = Slots::new(PLACES);
    let address = Some([172, 18, 0, 1].into());
    let taken: Vec<_> = (0..PLACES).map_while(|_| slots.take(address)).collect();
    assert_eq!(taken.len(), PLACES);
    assert!(slots.take(address).is_none());
}
