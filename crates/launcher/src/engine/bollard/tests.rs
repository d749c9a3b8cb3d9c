use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::engine::transport::{ANSWER_BYTES_MAX, LIST_BYTES_MAX};
use crate::settings::Settings;
use bollard::models::ContainerWaitResponse;
use protocol::{CheckId, Host};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

const CALLS: [&str; 12] = [
    "version", "list", "image", "volumes", "info", "tag", "create", "attach", "start", "wait",
    "kill", "remove",
];

/// More than any bound on an answer: a reader that takes this much has no bound.
const ENDLESS_BYTES: u64 = 32 * 1024 * 1024;

/// What the buffers of a socket pair hold in addition to what was read.
const SLACK_BYTES: u64 = 1024 * 1024;

const UPGRADED: &[u8] = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

const JSON: &str = "application/json";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    End,
    Silence,
    Flood,
}

/// An engine's socket that answers every request in the same way.
struct Socket {
    _folder: tempfile::TempDir,
    engine: BollardEngine,
    state: Arc<Mutex<State>>,
}

struct State {
    answer: Vec<u8>,
    then: Then,
    /// Bytes that the last flood has sent.
    flooded_bytes: u64,
    requests: Vec<String>,
}

impl Socket {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let version = r#"{"Version":"0","ApiVersion":"1.41"}"#;
        let state = Arc::new(Mutex::new(State {
            answer: answer(200, JSON, version),
            then: Then::End,
            flooded_bytes: 0,
            requests: Vec::new(),
        }));
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        let engine = BollardEngine::new(path);
        let identity = engine.identify().await.unwrap();
        assert_eq!(identity.to_string(), "Docker 0 (API 1.41)");
        Self {
            _folder: folder,
            engine,
            state,
        }
    }

    fn set(&self, answer: &[u8], then: Then) {
        let mut state = self.state.lock().unwrap();
        state.answer = answer.to_vec();
        state.then = then;
        state.flooded_bytes = 0;
    }

    fn flooded_bytes(&self) -> u64 {
        self.state.lock().unwrap().flooded_bytes
    }

    /// Makes a call and returns its result as text. `None` if there is none within a minute.
    async fn call(&self, call: &str) -> Option<Result<String, EngineError>> {
        let result = result(&self.engine, call);
        tokio::time::timeout(Duration::from_mins(1), result)
            .await
            .ok()
    }
}

async fn serve(mut stream: UnixStream, state: Arc<Mutex<State>>) {
    let mut request = Vec::new();
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap();
    let (answer, then) = {
        let mut state = state.lock().unwrap();
        state
            .requests
            .push(String::from_utf8(line.to_vec()).unwrap());
        (state.answer.clone(), state.then)
    };
    stream.write_all(&answer).await.ok();
    let chunk = vec![b'a'; 64 * 1024];
    let mut given: u64 = 0;
    while then == Then::Flood && given < ENDLESS_BYTES {
        let Ok(count) = stream.write(&chunk).await else {
            return;
        };
        given = given.saturating_add(u64::try_from(count).unwrap());
        state.lock().unwrap().flooded_bytes = given;
    }
    if then == Then::End {
        stream.shutdown().await.ok();
    }
    // Until the client disconnects: what it sent and nobody read would break the connection.
    while stream.read(&mut [0; 1024]).await.unwrap_or(0) > 0 {}
}

fn answer(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nLocation: /elsewhere\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

async fn result(engine: &BollardEngine, call: &str) -> Result<String, EngineError> {
    let id = ContainerId("c1".to_owned());
    Ok(match call {
        "version" => engine.identify().await?.to_string(),
        "list" => format!("{:?}", engine.list(&[]).await?),
        "image" => format!("{:?}", engine.image_id("sha256:1").await?),
        "info" => format!("{:?}", engine.info().await?),
        "tag" => {
            let name = Settings::default().probed_image();
            format!("{:?}", engine.tag("sha256:1", &name).await?)
        }
        "volumes" => engine.volume_present("egress").await?.to_string(),
        "create" => {
            let host = Host::parse("a.example").unwrap();
            let check = CheckId::from_random(1);
            let spec = Spec::check(&Settings::default(), "i", &check, &host);
            engine.create(&spec).await?.id.to_string()
        }
        "attach" => {
            let mut output = engine.attach(&id).await?;
            while let Some(chunk) = output.next().await {
                chunk?;
            }
            "ended".to_owned()
        }
        "start" => format!("{:?}", engine.start(&id).await?),
        "wait" => engine.wait(&id).await?.to_string(),
        "kill" => format!("{:?}", engine.kill(&id).await?),
        "remove" => format!("{:?}", engine.remove(&id).await?),
        other => panic!("no call {other}"),
    })
}

/// Asserts that a call has no result after this answer: an error that names the call or, if the
/// engine keeps silent, nothing. At most its bound is read.
async fn check_fails(socket: &Socket, call: &str, answer: &[u8], then: Then) {
    socket.set(answer, then);
    let why = format!("{call} {:?} {then:?}", String::from_utf8_lossy(answer));
    match socket.call(call).await {
        Some(Ok(result)) => panic!("{why}: {result}"),
        Some(Err(error)) => {
            // A refused removal is followed by a list, which shows whether the container is gone.
            let by_list = call == "remove" && error.to_string().starts_with("list");
            assert!(
                by_list || error.to_string().starts_with(call),
                "{why}: {error}"
            );
        }
        None => assert_eq!(then, Then::Silence, "{why}"),
    }
    let bound = match call {
        "list" | "volumes" => LIST_BYTES_MAX,
        _ => ANSWER_BYTES_MAX,
    };
    let taken = socket.flooded_bytes();
    let bound = bound.saturating_add(SLACK_BYTES);
    assert!(taken <= bound, "{why}: {taken} bytes");
}

#[tokio::test(start_paused = true)] // S40
async fn wrong_or_endless_answer_is_an_error_within_its_bound() {
    let head = |status| format!("HTTP/1.1 {status} X\r\nContent-Type: {JSON}\r\n");
    let cut = (head(200) + "Content-Length: 100\r\n\r\n{\"Status").into_bytes();
    let endless = |status| (head(status) + "\r\n{\"message\":\"").into_bytes();
    let never_right = [
        (Vec::new(), Then::Silence),
        (Vec::new(), Then::End),
        (b"\x16\x03\x01SSH-2.0-odd\r\n\r\n".to_vec(), Then::End),
        (answer(500, JSON, "{\"message\":\"busy\"}"), Then::End),
        (answer(500, JSON, "no JSON"), Then::End),
        (answer(503, "text/html", ""), Then::End),
        (answer(302, JSON, ""), Then::End),
        (b"HTTP/1.1 200 OK\r\nX: ".to_vec(), Then::Flood),
        (endless(500), Then::Flood),
    ];
    // A success of some calls has no body, so a strange success is still a success.
    let right_without_body = [
        (answer(200, JSON, "{\"garbage"), Then::End),
        (
            answer(200, "text/html", "<html>a proxy's page</html>"),
            Then::End,
        ),
        (cut.clone(), Then::End),
        (cut, Then::Silence),
        (endless(200), Then::Flood),
    ];
    let socket = Socket::open().await;
    for call in CALLS {
        for (answer, then) in &never_right {
            check_fails(&socket, call, answer, *then).await;
        }
        if !["tag", "start", "kill", "remove"].contains(&call) {
            for (answer, then) in &right_without_body {
                check_fails(&socket, call, answer, *then).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_wrong_has_no_end() {
    let socket = Socket::open().await;
    for (bytes, then) in [
        (&b"\x01\0\0\0\xff\xff\xff\xff"[..], Then::Silence),
        (b"\x01\0\0\0\0\0\0\x05ou", Then::Silence),
        (b"\x01\0\0\0\0\0\0\x05ou", Then::End),
        (b"\x01\0\0\0\0", Then::End),
        (b"\x09\0\0\0\0\0\0\x01x", Then::Silence),
        (b"no frames at all, and no end either", Then::Flood),
    ] {
        check_fails(&socket, "attach", &[UPGRADED, bytes].concat(), then).await;
    }
}

/// Invariant I9: the client does not buffer output that is not read.
#[tokio::test(start_paused = true)]
async fn output_that_is_not_read_stays_with_the_engine() {
    let socket = Socket::open().await;
    let flood = [UPGRADED, b"\x01\0\0\0\xff\xff\xff\xff"].concat();
    socket.set(&flood, Then::Flood);
    let id = ContainerId("c1".to_owned());
    let mut output = socket.engine.attach(&id).await.unwrap();
    output.next().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let taken = socket.flooded_bytes();
    assert!((1..SLACK_BYTES).contains(&taken), "{taken} bytes");
}

#[tokio::test(start_paused = true)]
async fn right_answers_are_understood() {
    let socket = Socket::open().await;
    for (call, status, body, expect) in [
        ("image", 200, r#"{"Id":"sha256:0"}"#, r#"Some("sha256:0")"#),
        ("image", 404, r#"{"message":"No such image"}"#, "None"),
        (
            "volumes",
            200,
            r#"{"Volumes":[{"Name":"egress","Driver":"local","Mountpoint":"/v","Labels":{},"Scope":"local","Options":{}}]}"#,
            "true",
        ),
        ("create", 201, r#"{"Id":"c1","Warnings":[]}"#, "c1"),
        ("start", 204, "", "()"),
        ("wait", 200, r#"{"StatusCode":7}"#, "7"),
        ("kill", 204, "", "()"),
        ("remove", 204, "", "()"),
        // A state that the client does not know, as Podman reports it.
        (
            "list",
            200,
            r#"[{"Id":"c1","Labels":null,"State":"stopped"}]"#,
            r#"[Listed { id: ContainerId("c1"), labels: {} }]"#,
        ),
    ] {
        socket.set(&answer(status, JSON, body), Then::End);
        let result = socket.call(call).await.unwrap();
        assert_eq!(result.unwrap(), expect, "{call}");
    }
    let stream = [UPGRADED, b"\x01\0\0\0\0\0\0\x03out"].concat();
    socket.set(&stream, Then::End);
    let result = socket.call("attach").await.unwrap();
    assert_eq!(result.unwrap(), "ended");
}

/// An id that would form another path must not reach the call that removes by force.
#[tokio::test(start_paused = true)]
async fn an_exit_code_or_an_id_that_is_none_is_an_error() {
    let socket = Socket::open().await;
    for (call, body) in [
        ("wait", "{\"StatusCode\":-1}"),
        (
            "wait",
            "{\"StatusCode\":0,\"Error\":{\"Message\":\"lost\"}}",
        ),
        (
            "wait",
            "{\"StatusCode\":137,\"Error\":{\"Message\":\"lost\"}}",
        ),
        ("wait", "{\"StatusCode\":\"0\"}"),
        ("wait", "{}"),
        ("create", "{}"),
        ("create", "{\"Id\":\"\"}"),
        ("create", "{\"Id\":\"c9/../victim\"}"),
        ("create", "{\"Id\":\"victim?x\"}"),
    ] {
        check_fails(&socket, call, &answer(200, JSON, body), Then::End).await;
    }
}

fn answered(code: i64) -> Option<Result<ContainerWaitResponse, Error>> {
    Some(Ok(ContainerWaitResponse {
        status_code: code,
        error: None,
    }))
}

#[test]
fn an_exit_code_is_no_error_of_the_engine() {
    assert_eq!(exit_code(answered(0)).unwrap(), 0);
    let seven = Error::DockerContainerWaitError {
        error: String::new(),
        code: 7,
    };
    assert_eq!(exit_code(Some(Err(seven))).unwrap(), 7);
}

#[test]
fn a_wait_without_an_exit_code_is_our_fault() {
    assert!(matches!(exit_code(None), Err(EngineError::Down { .. })));
    assert!(matches!(
        exit_code(answered(-1)),
        Err(EngineError::Garbled { .. })
    ));
}

#[test]
fn a_wait_that_went_wrong_is_no_exit_code() {
    let message = Some("lost".to_owned());
    let nought = Ok(ContainerWaitResponse {
        status_code: 0,
        error: Some(bollard::models::ContainerWaitExitError { message }),
    });
    let seven = Err(Error::DockerContainerWaitError {
        error: "lost".to_owned(),
        code: 7,
    });
    for lost in [nought, seven] {
        let answer = exit_code(Some(lost));
        assert!(matches!(answer, Err(EngineError::Refused { .. })));
    }
}

#[test]
fn an_id_that_is_more_than_one_is_refused() {
    assert!(container_id("0123456789abcdef".to_owned()).is_ok());
    for text in ["", "../images/x", "a?force=1", "a/b", "a b", "ä"] {
        assert!(container_id(text.to_owned()).is_err(), "{text:?}");
    }
}

#[test]
fn labels_are_encoded_as_a_part_of_a_query() {
    assert_eq!(
        encoded(r#"{"a":["b.c=d&e"]}"#),
        "%7B%22a%22%3A%5B%22b.c%3Dd%26e%22%5D%7D"
    );
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_an_engine_that_is_down() {
    let engine = BollardEngine::new("/nonexistent/engine.sock");
    let missing = engine.identify().await.unwrap_err();
    let said = missing.to_string();
    assert!(matches!(missing, EngineError::NoSocket { .. }), "{said}");
    for expect in ["no engine at /nonexistent/engine.sock", "ENGINE_SOCKET"] {
        assert!(said.contains(expect), "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let instead = BollardEngine::new(folder.path()).identify().await;
    let said = instead.unwrap_err().to_string();
    assert!(
        said.contains("it is a folder, which Docker makes"),
        "{said}"
    );
    assert!(matches!(
        engine.list(&[]).await,
        Err(EngineError::Down { .. })
    ));
}

/// Engines announce that paths without a version will go, and refuse versions that are too old.
#[tokio::test(start_paused = true)]
async fn every_request_has_the_chosen_version_before_its_path() {
    let socket = Socket::open().await;
    for call in CALLS {
        let _fails = socket.call(call).await;
    }
    let requests = socket.state.lock().unwrap().requests.clone();
    assert!(requests.len() >= CALLS.len(), "{requests:?}");
    for request in requests {
        let path = request.split(' ').nth(1).unwrap();
        assert!(
            path.starts_with("/v1.41/") || path == "/version",
            "{request}"
        );
    }
}

#[test]
fn the_engine_takes_the_version_or_is_named() {
    let spoken = |newest: &str, oldest: &str| {
        spoken(&SystemVersion {
            api_version: Some(newest.to_owned()),
            min_api_version: Some(oldest.to_owned()),
            ..SystemVersion::default()
        })
    };
    let ours = API_DEFAULT_VERSION.to_string();
    for (newest, oldest, expect) in [
        ("1.41", "1.12", "1.41"),
        ("1.51", "1.24", "1.51"),
        ("1.99", "1.40", ours.as_str()),
        ("1.44", "", "1.44"),
    ] {
        assert_eq!(spoken(newest, oldest).unwrap().to_string(), expect);
    }
    let error = spoken("1.99", "1.98").unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("takes versions 1.98 to 1.99"), "{source}");
}
