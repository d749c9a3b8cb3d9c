use std::path::{Path, PathBuf};
use std::sync::Arc;

use census::class::Class;
use census::time::Calendar;
use gateway::GatewayClient;
use launcher::LauncherClient;
use launcher::wire::FrameKind;
use protocol::Host;
use protocol::container::{FaultKind, LaunchFault};
use protocol::egress::Wish;
use protocol::order::AskPeers;
use scheduler::command::Start;
use scheduler::event::{CheckNumber, SlotDemand, Trigger};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::Receiver;

use super::*;
use crate::check::slot_queue::{Signal, SlotQueue};
use crate::ground::clock::{Random, SystemClock};

/// Answers each connection's first line, and keeps it open until the other end closes.
fn part(path: &Path, answer: Vec<u8>) {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answer.clone()));
        }
    });
}

async fn serve(stream: UnixStream, answer: Vec<u8>) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    stream.write_all(&answer).await.unwrap();
    while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {}
}

fn frame(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut frame = vec![kind.byte()];
    frame.extend(length.to_be_bytes());
    frame.extend(payload);
    frame
}

fn fault(kind: FaultKind) -> Vec<u8> {
    let message = "as the test wants it".to_owned();
    let fault = LaunchFault { kind, message };
    frame(FrameKind::Fault, &serde_json::to_vec(&fault).unwrap())
}

/// A census whose launcher gives every launch the same answer.
struct Rig {
    services: Services,
    signals: Receiver<Signal>,
    _store: store::Store,
    dir: tempfile::TempDir,
}

#[derive(Debug, PartialEq, Eq)]
enum Signalled {
    Opened(SlotDemand),
    FirstOutput,
}

#[derive(Clone, Copy)]
enum Slot {
    Granted,
    TurnedAway,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = store::open(&dir.path().join("census.db")).unwrap();
        let gateway = dir.path().join("gateway.sock");
        part(
            &gateway,
            b"{\"ready\":{\"address\":\"192.0.2.1\",\"fresh\":true}}\n".to_vec(),
        );
        let (slots, signals) = SlotQueue::new();
        Self {
            services: Services {
                gateway: GatewayClient::new(gateway),
                second_gateway: None,
                launcher: LauncherClient::socket("/nonexistent"),
                writer: store.writer(),
                gate: crate::admit::gate::tests::fresh(&store),
                clock: Arc::new(SystemClock),
                random: Arc::new(Random::seeded(1)),
                calendar: Calendar::REAL,
                slots,
                contact: "".into(),
                seeds: Arc::default(),
                peers_every: 3,
                meters: Arc::default(),
            },
            signals,
            _store: store,
            dir,
        }
    }

    fn launcher(&mut self, name: &str, answer: Vec<u8>) {
        let path: PathBuf = self.dir.path().join(name);
        part(&path, answer);
        self.services.launcher = LauncherClient::socket(path);
    }

    fn gateway(&mut self, name: &str, answer: &[u8]) {
        let path: PathBuf = self.dir.path().join(name);
        part(&path, answer.to_vec());
        self.services.gateway = GatewayClient::new(path);
    }

    async fn check(&mut self, slot: Slot) -> (Result<CheckOutcome, Fault>, Vec<Signalled>) {
        let start = Start {
            check: CheckNumber(7),
            host: Host::parse("a.example.org").unwrap(),
            class: Class::New,
            wish: Wish::default(),
            peers: AskPeers::Skip,
            trigger: Trigger::Scheduled,
        };
        let check = Check::new(start, &self.services, None);
        let mut signalled = Vec::new();
        let mut running = std::pin::pin!(run(&check, &self.services));
        let mut ended = None;
        loop {
            // Signals that were sent before the end are in the queue when the check ends.
            let signal = match &ended {
                Some(_) => self.signals.try_recv().ok(),
                None => tokio::select! {
                    biased;
                    signal = self.signals.recv() => signal,
                    outcome = &mut running => {
                        ended = Some(outcome);
                        continue;
                    }
                },
            };
            let Some(signal) = signal else {
                return (ended.unwrap(), signalled);
            };
            match (signal, slot) {
                (Signal::Opened { demand, grant, .. }, Slot::Granted) => {
                    signalled.push(Signalled::Opened(demand));
                    grant.send(()).ok();
                }
                (Signal::Opened { demand, .. }, Slot::TurnedAway) => {
                    signalled.push(Signalled::Opened(demand));
                }
                (Signal::FirstOutput { .. }, _) => signalled.push(Signalled::FirstOutput),
                (Signal::SlotWanted { .. }, _) => panic!("no reading"),
            }
        }
    }
}

fn is_engine(ended: &Result<CheckOutcome, Fault>) -> bool {
    ended.as_ref().unwrap_err().for_scheduler().is_engine
}

#[tokio::test]
async fn a_container_signals_its_first_output_once_and_one_that_does_not_come_up_never() {
    let mut rig = Rig::new();
    let up = [
        frame(FrameKind::Stdout, format!("{}\n", kit::HELLO).as_bytes()),
        frame(FrameKind::Stdout, b"more, which is no second start"),
        fault(FaultKind::BadRequest),
    ];
    rig.launcher("well.sock", up.concat());
    let (ended, signalled) = rig.check(Slot::Granted).await;
    let opened = Signalled::Opened(SlotDemand::One);
    assert_eq!(signalled, [opened, Signalled::FirstOutput]);
    assert!(!is_engine(&ended), "{ended:?}");
    rig.launcher("ill.sock", fault(FaultKind::EngineError));
    let (ended, signalled) = rig.check(Slot::Granted).await;
    assert_eq!(signalled, [Signalled::Opened(SlotDemand::One)]);
    assert!(is_engine(&ended), "{ended:?}");
}

/// Otherwise anyone could slow the census down by making its checks fail.
#[tokio::test]
async fn what_a_host_may_have_caused_is_no_fault_of_the_engine() {
    let mut rig = Rig::new();
    rig.launcher("breach.sock", frame(FrameKind::Stdout, b"no event\n"));
    let (ended, _) = rig.check(Slot::Granted).await;
    assert!(!is_engine(&ended), "{ended:?}");
}

#[tokio::test]
async fn only_what_was_learned_of_a_host_is_signalled() {
    let mut rig = Rig::new();
    rig.gateway(
        "late.sock",
        b"{\"deferred\":{\"why\":\"group_pace\",\"retry_after_ms\":9}}\n",
    );
    let (_, signalled) = rig.check(Slot::Granted).await;
    assert_eq!(signalled, [], "our own paces show nothing about a host");
    rig.gateway(
        "nowhere.sock",
        b"{\"unreachable\":{\"reason\":\"no_such_name\",\"detail\":\"\",\"families\":[],\"fresh\":true}}\n",
    );
    let (_, signalled) = rig.check(Slot::Granted).await;
    assert_eq!(signalled, [Signalled::Opened(SlotDemand::None)]);
}

#[tokio::test]
async fn a_check_that_is_turned_away_is_deferred() {
    let mut rig = Rig::new();
    let (ended, signalled) = rig.check(Slot::TurnedAway).await;
    assert_eq!(signalled, [Signalled::Opened(SlotDemand::One)]);
    let expect = CheckOutcome::Deferred {
        why: Deferral::Full,
        retry_after: SLOT_WAIT_MAX,
    };
    assert_eq!(ended.unwrap(), expect);
}
