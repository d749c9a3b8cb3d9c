//! Nothing blocks the launcher: not an engine that never answers, not a stalled reader, not a
//! request that never ends. In the end every slot and registry entry is free again, and no
//! container is left.

use super::super::*;
use crate::client::{Frame, LauncherClient};
use crate::tests::fake_engine::{FakeEngine, Mishap, Script};
use kit::labelled;
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::time::Instant;

/// The calls of a successful launch, and of the start before it: version, list, image, volume, the
/// probe's six and tag.
const CALLS: usize = 17;

struct Running {
    launcher: Launcher<FakeEngine>,
    client: LauncherClient,
}

fn launcher(script: Script) -> Running {
    let settings = Settings {
        checks_max: 1,
        ..Settings::default()
    };
    let launcher = Launcher::new(settings, FakeEngine::new(script));
    let keeping = launcher.clone();
    tokio::spawn(async move { keeping.keep(CancellationToken::new()).await });
    Running {
        client: LauncherClient::in_memory(&launcher),
        launcher,
    }
}

fn id(number: u128) -> CheckId {
    CheckId::from_random(number)
}

fn launch_line() -> Vec<u8> {
    let request = Request::Launch {
        check: id(1),
        host: labelled("a"),
    };
    let mut line = serde_json::to_vec(&request).unwrap();
    line.push(b'\n');
    line
}

impl Running {
    fn engine(&self) -> &FakeEngine {
        &self.launcher.shared.engine
    }

    /// Launches, reads to the last frame, and returns how long that took.
    async fn launch(&self, number: u128) -> (Frame, Duration) {
        let before = Instant::now();
        let mut container = self
            .client
            .launch(&id(number), &labelled("a"))
            .await
            .unwrap();
        loop {
            let frame = container.next().await.unwrap();
            if matches!(frame, Frame::End(_) | Frame::Fault(_)) {
                return (frame, before.elapsed());
            }
            // Not at once: paused time does not advance while a flood is read as fast as it
            // arrives.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until nothing of any check is left.
    async fn until_free(&self, why: &str) {
        let shared = &self.launcher.shared;
        let before = Instant::now();
        loop {
            let free = shared.slots.is_idle()
                && shared.connections.is_empty()
                && self.engine().names().is_empty();
            if free {
                return;
            }
            assert!(
                before.elapsed() < Duration::from_secs(600),
                "{why}: {:?}, {} connections, containers {:?}",
                shared.slots,
                shared.connections.len(),
                self.engine().names()
            );
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn until_at_work(&self, why: &str) {
        let before = Instant::now();
        loop {
            let (last, _) = self.launch(u128::MAX).await;
            if matches!(last, Frame::End(_)) {
                return self.until_free(why).await;
            }
            assert!(
                before.elapsed() < Duration::from_secs(600),
                "{why}: {last:?}"
            );
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn connect(&self, bytes: usize) -> DuplexStream {
        let (near, far) = tokio::io::duplex(bytes);
        self.launcher.spawn_connection(far);
        near
    }
}

/// Each call in turn, and each pair of calls, never gets an answer.
#[tokio::test(start_paused = true)] // S15
async fn calls_that_never_answer_cost_time_and_nothing_else() {
    for first in 0..CALLS {
        for second in first..CALLS {
            let why = format!("calls {first} and {second}");
            let running = launcher(Script::Print(0));
            running.engine().go_wrong(first, Mishap::Hang);
            running.engine().go_wrong(second, Mishap::Hang);
            let longest = running.launcher.shared.settings.launch_max();
            for number in 0..3 {
                let (last, took) = running.launch(number).await;
                assert!(took <= longest, "{why}: {took:?} until {last:?}");
            }
            running.until_at_work(&why).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn kills_that_never_answer_cost_time_and_nothing_else() {
    for script in [Script::Silent, Script::Stay, Script::Flood] {
        for nth in 0..7 {
            let why = format!("{script:?}, call {nth}");
            let running = launcher(script);
            running.launcher.shared.settled().await;
            running.engine().go_wrong(nth, Mishap::Hang);
            let (last, took) = running.launch(1).await;
            let longest = running.launcher.shared.settings.launch_max();
            assert!(took <= longest, "{why}: {took:?} until {last:?}");
            running.until_free(&why).await;
        }
    }
}

/// For every prefix of a request, whether or not the client still listens.
#[tokio::test(start_paused = true)]
async fn a_connection_may_end_anywhere() {
    let line = launch_line();
    for script in [Script::Print(0), Script::Silent, Script::Flood] {
        let running = launcher(script);
        running.launcher.shared.settled().await;
        for cut in 0..=line.len() {
            let mut near = running.connect(4096);
            near.write_all(&line[..cut]).await.unwrap();
            drop(near);
            running.until_free(&format!("{script:?} {cut}")).await;
        }
        for seconds in [0, 1, 64, 65, 66, 70] {
            let mut near = running.connect(4096);
            near.write_all(&line).await.unwrap();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            drop(near);
            running
                .until_free(&format!("{script:?} after {seconds} s"))
                .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_by_bytes_is_given_up() {
    let running = launcher(Script::Print(0));
    let mut near = running.connect(4096);
    let before = Instant::now();
    let mut answer = Vec::new();
    let (mut reader, mut writer) = tokio::io::split(&mut near);
    let slowly = async {
        for byte in launch_line() {
            writer.write_all(&[byte]).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        read = reader.read_to_end(&mut answer) => {
            read.unwrap();
        }
        () = slowly => panic!("a byte a second is served"),
    }
    assert!(
        before.elapsed() <= REQUEST_WAIT_MAX,
        "{:?}",
        before.elapsed()
    );
    assert!(String::from_utf8_lossy(&answer).contains("no request came"));
    assert_eq!(running.engine().specs().len(), 1, "the probe alone");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_is_given_up() {
    let running = launcher(Script::Print(0));
    running.launcher.shared.settled().await;
    let mut standing = Vec::new();
    for request in [&b"{\"status\":{}}\n"[..], b"{\"list\":{}}\n", b"rubbish\n"] {
        let mut near = running.connect(16);
        near.write_all(request).await.unwrap();
        standing.push(near);
    }
    running.until_free("nobody reads").await;
}

/// The reader has stalled, so only the kill can end the container before its deadline.
#[tokio::test(start_paused = true)]
async fn a_kill_frees_the_place_of_a_flood_that_nobody_reads() {
    let running = launcher(Script::Flood);
    running.launcher.shared.settled().await;
    let _standing = running.client.launch(&id(1), &labelled("a")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = Instant::now();
    assert!(running.client.kill(&id(1)).await.unwrap());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(running.client.status().await.unwrap().running, 0);
    running.until_free("killed").await;
    let longest = running.launcher.shared.settings.call_timeout;
    assert!(before.elapsed() <= longest.saturating_add(Duration::from_secs(2)));
}

/// Invariant I9: during a flood, a launch holds one chunk and what is in the pipe to its reader.
#[tokio::test(start_paused = true)] // S15
async fn unread_flood_holds_a_few_chunks() {
    let running = launcher(Script::Flood);
    running.launcher.shared.settled().await;
    let standing = running.client.launch(&id(1), &labelled("a")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let chunks = running.engine().flooded_chunks();
    println!("drawn from a flood that nobody reads: {chunks} chunks of 32 KiB");
    assert!((1..=3).contains(&chunks), "{chunks} chunks of 32 KiB");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(running.engine().flooded_chunks(), chunks);
    running.until_free("the deadline").await;
    drop(standing);
}

/// Ten thousand silent connections: only a bounded number is served at once, and all end.
#[tokio::test(start_paused = true)]
async fn ten_thousand_connections_that_say_nothing_pass_by() {
    const CONNECTIONS: usize = 10_000;
    /// Connections open at once: below the usual limit on a process's descriptors.
    const OPEN_MAX: usize = 400;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("launcher.sock");
    let listener = local_socket::bind(&path, SOCKET_MODE).unwrap();
    let running = launcher(Script::Print(0));
    let accepting = running.launcher.clone();
    tokio::spawn(async move { accepting.accept(listener).await });
    running.launcher.shared.settled().await;
    let most = CONTAINERS_PER_SLOT.saturating_add(OTHER_CONNECTIONS_MAX);
    let mut open = std::collections::VecDeque::new();
    for _ in 0..CONNECTIONS {
        open.push_back(UnixStream::connect(&path).await.unwrap());
        assert!(running.launcher.shared.connections.len() <= most);
        if open.len() == OPEN_MAX {
            // The answer, after at most five seconds for all connections before it, is that no
            // request came.
            let mut answer = Vec::new();
            let mut oldest = open.pop_front().unwrap();
            oldest.read_to_end(&mut answer).await.unwrap();
            assert!(String::from_utf8_lossy(&answer).contains("no request came"));
        }
    }
    drop(open);
    running.until_free("they are gone").await;
    let client = LauncherClient::socket(&path);
    assert_eq!(client.status().await.unwrap().running, 0);
    let mut container = client.launch(&id(1), &labelled("a")).await.unwrap();
    while !matches!(container.next().await.unwrap(), Frame::End(_)) {}
}
