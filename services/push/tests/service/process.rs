//! The process as a whole: its socket, its database and its end.

use push::process::{ENDPOINT_KEYS_MAX, Node, Settings, renew, rotate, run};
use push::storage::sqlite::{Limits, Sqlite};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;

struct Process {
    folder: TempDir,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl Process {
    async fn start(folder: TempDir) -> Self {
        let shutdown = CancellationToken::new();
        let (settings, until) = (settings(&folder), shutdown.clone());
        let running =
            tokio::spawn(async move { run(settings, Node::Push, now(), until).await.unwrap() });
        let process = Self {
            folder,
            shutdown,
            running,
        };
        process.connect().await;
        process
    }

    async fn connect(&self) -> UnixStream {
        let socket = self.folder.path().join("http.sock");
        let connecting = async {
            loop {
                match UnixStream::connect(&socket).await {
                    Ok(stream) => return stream,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        timeout(PATIENCE, connecting).await.unwrap()
    }

    async fn client(&self) -> Client<UnixStream> {
        Client::over(self.connect().await, None).await
    }

    async fn subscribed(&self) -> (Client<UnixStream>, String) {
        let mut client = self.client().await;
        client.hello("").await;
        let endpoint = client.register(None).await;
        (client, endpoint)
    }

    async fn send(&self, endpoint: &str) -> StatusCode {
        let (path, headers) = (path(endpoint), [("ttl", "60")]);
        let sent = ask_over(self.connect().await, "POST", path, &headers, b"");
        sent.await.status
    }

    async fn stop(self) -> TempDir {
        self.shutdown.cancel();
        timeout(PATIENCE, self.running).await.unwrap().unwrap();
        self.folder
    }
}

fn settings(folder: &TempDir) -> Settings {
    Settings {
        socket: folder.path().join("http.sock"),
        endpoint_socket: folder.path().join("endpoint.sock"),
        nodes: folder.path().to_owned(),
        database: database(folder),
        origin: ORIGIN.to_owned(),
        rules: Rules::AUTOPUSH,
        bounds: Bounds::within(768 * 1024 * 1024),
        contact: "mailto:census@example".to_owned(),
        changes: folder.path().join("changes"),
        services: PushServices::default(),
        daemon: folder.path().join("nobody.sock"),
    }
}

fn database(folder: &TempDir) -> PathBuf {
    folder.path().join("push.db")
}

#[tokio::test]
async fn a_stop_loses_neither_what_was_sent_nor_keys_nor_users() {
    let process = Process::start(tempfile::tempdir().unwrap()).await;
    let (mut client, endpoint) = process.subscribed().await;
    assert_eq!(process.send(&endpoint).await, StatusCode::CREATED);
    let sent = client.heard().await;

    let folder = process.stop().await;
    assert_eq!(client.closed().await.0, 1012);

    let process = Process::start(folder).await;
    let mut again = process.client().await;
    again.hello(&client.uaid).await;
    assert_eq!(again.uaid, client.uaid);
    assert_eq!(again.heard().await, sent);
    again.acknowledge(&sent).await;
    assert_eq!(process.send(&endpoint).await, StatusCode::CREATED);
    assert_ne!(again.heard().await, sent);
}

#[tokio::test] // S50
async fn failed_second_start_keeps_connected_clients_messages() {
    let process = Process::start(tempfile::tempdir().unwrap()).await;
    let (mut client, endpoint) = process.subscribed().await;
    let settings = settings(&process.folder);
    let second = run(settings, Node::Push, now(), CancellationToken::new());
    let refused = second.await.unwrap_err().to_string();
    assert!(refused.contains("another process listens"), "{refused}");
    assert_eq!(process.send(&endpoint).await, StatusCode::CREATED);
    assert_eq!(client.heard().await["channelID"], CHANNEL);
}

#[tokio::test]
async fn new_keys_keep_old_endpoints_until_all_keys_are_renewed() {
    let process = Process::start(tempfile::tempdir().unwrap()).await;
    let (client, endpoint) = process.subscribed().await;

    let folder = process.stop().await;
    assert_eq!(rotate(&database(&folder)).unwrap(), 2);
    let process = Process::start(folder).await;
    assert_eq!(process.send(&endpoint).await, StatusCode::CREATED);

    let folder = process.stop().await;
    let removed = renew(&database(&folder)).unwrap();
    assert_eq!((removed.users, removed.messages), (1, 1));
    let process = Process::start(folder).await;
    assert_eq!(process.send(&endpoint).await, StatusCode::NOT_FOUND);
    let mut again = process.client().await;
    again.hello(&client.uaid).await;
    assert_ne!(again.uaid, client.uaid, "a browser subscribes again then");
}

#[test]
fn a_further_key_takes_the_place_of_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(&folder);
    let storage = Sqlite::open(&database, Limits::ORDINARY).unwrap();
    for keys in 1..=ENDPOINT_KEYS_MAX {
        assert_eq!(rotate(&database).unwrap(), keys);
    }
    let former = storage.secret("endpoint_keys", b"").unwrap();
    assert_eq!(rotate(&database).unwrap(), ENDPOINT_KEYS_MAX);
    let keys = storage.secret("endpoint_keys", b"").unwrap();
    let (_new, kept) = keys.split_at(1 + keys.iter().position(|byte| *byte == b',').unwrap());
    assert!(former.starts_with(kept) && keys.len() == former.len());
}

/// The engine restarts nothing, but reports a part that fails its check as unhealthy.
#[tokio::test]
async fn a_running_process_passes_its_health_check() {
    let process = Process::start(tempfile::tempdir().unwrap()).await;
    drop(process.connect().await);
    let socket = process.folder.path().join("http.sock");
    local_socket::http::health(&socket).await.unwrap();
}

#[tokio::test]
async fn expired_data_is_removed() {
    let process = Process::start(tempfile::tempdir().unwrap()).await;
    let _connected = process.subscribed().await;
    let folder = process.stop().await;
    let expire = "UPDATE users SET expires_s = 1";
    let expired = rusqlite::Connection::open(database(&folder)).unwrap();
    expired.execute_batch(expire).unwrap();
    let process = Process::start(folder).await;
    let swept = async {
        let users = "SELECT count(*) FROM users";
        while expired.query_row(users, [], |row| row.get(0)) != Ok(0_i64) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, swept).await.unwrap();
    process.stop().await;
}

#[tokio::test]
async fn metrics_count_what_became_of_messages() {
    let process = Process::start(tempfile::tempdir().unwrap()).await;
    let (_client, endpoint) = process.subscribed().await;
    process.send(&endpoint).await;
    process.send(&format!("{ORIGIN}/wpush/v1/none")).await;
    let page = ask_over(process.connect().await, "GET", "/metrics", &[], b"").await;
    for line in [
        "fedicensus_push_connections 1",
        "fedicensus_push_messages_total{outcome=\"direct\"} 1",
        "fedicensus_push_messages_total{outcome=\"refused\"} 1",
        "fedicensus_push_messages_total{outcome=\"stored\"} 0",
    ] {
        let is_there = page.body.lines().any(|found| found == line);
        assert!(is_there, "{line}: {}", page.body);
    }
}
