//! A sound engine behind a disturbed line: every n-th connection to it is refused, broken off or
//! delayed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use launcher::Settings;
use protocol::container::FaultKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};

use crate::bench::{Bench, PATIENCE, Running, of_installation, patient};

/// Each call of the launcher has its own connection, so a launch has six.
const SWEPT: [usize; 6] = [2, 3, 4, 5, 6, 7];

const PLACES: usize = 4;

#[derive(Debug, Clone, Copy)]
enum Disturbance {
    Status500,
    Cut,
    Late,
}

/// Disturbs every n-th connection, or none if n is zero.
struct Line {
    nth: Arc<AtomicUsize>,
}

impl Line {
    fn new(socket: &Path, engine: &Path, disturbance: Disturbance) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let nth = Arc::new(AtomicUsize::new(0));
        let engine = engine.to_owned();
        let every = Arc::clone(&nth);
        tokio::spawn(async move {
            let mut count: usize = 0;
            while let Ok((stream, _)) = listener.accept().await {
                count += 1;
                let nth = every.load(Ordering::SeqCst);
                let disturbed = (nth > 0 && count.is_multiple_of(nth)).then_some(disturbance);
                tokio::spawn(pass(stream, engine.clone(), disturbed));
            }
        });
        Self { nth }
    }
}

async fn pass(mut stream: UnixStream, engine: PathBuf, disturbed: Option<Disturbance>) {
    match disturbed {
        Some(Disturbance::Cut) => return,
        Some(Disturbance::Status500) => {
            // Reads first: closing a socket with unread bytes loses what was written to it.
            let mut request = vec![0; 64 * 1024];
            if stream.read(&mut request).await.unwrap_or(0) == 0 {
                return;
            }
            let answer = b"HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 24\r\n\r\n{\"message\":\"disturbed!\"}";
            stream.write_all(answer).await.ok();
            return;
        }
        Some(Disturbance::Late) => tokio::time::sleep(Duration::from_millis(1500)).await,
        None => {}
    }
    let mut far = UnixStream::connect(engine).await.unwrap();
    copy_bidirectional(&mut stream, &mut far).await.ok();
}

/// Whatever happens on the line, a check ends as usual or with a fault of ours, no container is
/// left, and no slot is lost.
pub(crate) async fn a_line_that_breaks_at_every_call_costs_no_place(bench: &Bench) {
    for disturbance in [Disturbance::Status500, Disturbance::Cut, Disturbance::Late] {
        let name = format!("line-{disturbance:?}").to_lowercase();
        let socket = bench.folder.path().join(format!("{name}.sock"));
        let line = Line::new(&socket, &bench.socket, disturbance);
        let settings = Settings {
            checks_max: PLACES,
            backoff_max: Duration::from_secs(1),
            sweep_interval: Duration::from_secs(1),
            ..bench.settings(&name)
        };
        let running = bench.launcher_at(&socket, settings, bench.folder.path().join(&name));
        assert_eq!(running.report("seven").await.ended().exit_code, 7);
        let (mut ends, mut faults) = (0, 0);
        for nth in SWEPT {
            line.nth.store(nth, Ordering::SeqCst);
            let all = (0..PLACES).map(|_| running.report("seven"));
            for report in futures_util::future::join_all(all).await {
                if let Some(fault) = &report.fault {
                    let ours = [FaultKind::EngineDown, FaultKind::EngineError];
                    assert!(ours.contains(&fault.kind), "{nth}: {report:?}");
                    faults += 1;
                } else {
                    let end = report.ended();
                    assert_eq!((end.exit_code, end.killed), (7, None), "{nth}: {report:?}");
                    ends += 1;
                }
            }
            line.nth.store(0, Ordering::SeqCst);
            until_all_places_work(&running, &name).await;
        }
        bench.until_no_check(&name).await;
        let status = running.client.status().await.unwrap();
        assert_eq!((status.running, status.trouble), (0, None), "{name}");
        println!("{name}: {ends} checks ended, {faults} were faults");
        running.shut_down().await;
        bench.until_gone(&[&of_installation(&name)]).await;
    }
}

/// Uses all slots at once: none of them is lost.
async fn until_all_places_work(running: &Running, name: &str) {
    let start = Instant::now();
    loop {
        let all = (0..PLACES).map(|_| running.report("seven"));
        let reports = futures_util::future::join_all(all).await;
        if reports.iter().all(|report| report.fault.is_none()) {
            return;
        }
        assert!(start.elapsed() < patient(PATIENCE), "{name}: {reports:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
