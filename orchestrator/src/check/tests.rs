use std::path::{Path, PathBuf};
use std::sync::Arc;

use census::time::Calendar;
use gateway::GatewayClient;
use launcher::LauncherClient;
use launcher::wire::{FaultKind, FrameKind, LaunchFault};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::*;
use crate::clock::{Dice, SystemClock};
use crate::level::Bounds;
use crate::places::Places;
use crate::under_way::UnderWay;

const HELLO: &[u8] = b"{\"hello\":{\"protocol\":1,\"checker\":\"0.1.0\"}}\n";

/// Answers each connection's first line, and keeps it open until the other end is done.
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

/// A census whose launcher answers every launch so.
struct Rig {
    tools: Tools,
    record: Record,
    _store: store::Store,
    dir: tempfile::TempDir,
}

impl Rig {
    fn new(places: Places) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = store::open(&dir.path().join("census.db")).unwrap();
        let gateway = dir.path().join("gateway.sock");
        part(
            &gateway,
            b"{\"ready\":{\"address\":\"192.0.2.1\",\"fresh\":true}}\n".to_vec(),
        );
        let host = Host::parse("a.example.org").unwrap();
        Self {
            tools: Tools {
                gateway: GatewayClient::new(gateway),
                launcher: LauncherClient::socket("/nonexistent"),
                writer: store.writer(),
                door: crate::door::tests::fresh(&store),
                clock: Arc::new(SystemClock),
                dice: Arc::new(Dice::seeded(1)),
                calendar: Calendar::REAL,
                places,
                contact: "".into(),
                peers_every: 3,
                meters: Arc::default(),
            },
            record: Record::discovered(host, Timestamp(0), Timestamp(0)),
            _store: store,
            dir,
        }
    }

    fn launcher(&mut self, name: &str, answer: Vec<u8>) {
        let path: PathBuf = self.dir.path().join(name);
        part(&path, answer);
        self.tools.launcher = LauncherClient::socket(path);
    }

    fn gateway(&mut self, name: &str, answer: &[u8]) {
        let path: PathBuf = self.dir.path().join(name);
        part(&path, answer.to_vec());
        self.tools.gateway = GatewayClient::new(path);
    }

    async fn check(&self) -> Ended {
        self.check_among(&UnderWay::default(), Class::New).await
    }

    async fn check_among(&self, under_way: &UnderWay, class: Class) -> Ended {
        let check = Check::new(&self.record, &self.tools, None);
        run(&check, &mut under_way.enter(class), &self.tools).await
    }

    fn allowed(&self) -> u32 {
        self.tools.places.allowed().0
    }
}

#[tokio::test]
async fn containers_that_come_up_let_more_run_at_once_and_those_that_do_not_fewer() {
    let (least, most) = (1, 8);
    let mut rig = Rig::new(Places::new(Bounds { least, most }));
    // They come up, and are ended by something that is not the engine's.
    let up = [
        frame(FrameKind::Stdout, HELLO),
        frame(FrameKind::Stdout, b"more, which is no second start"),
        fault(FaultKind::BadRequest),
    ];
    rig.launcher("well.sock", up.concat());
    for _ in 0..4 {
        rig.check().await;
    }
    assert_eq!(rig.allowed(), 1, "each start counts once");
    rig.check().await;
    assert_eq!(rig.allowed(), 2);
    rig.launcher("ill.sock", fault(FaultKind::EngineError));
    for _ in 0..2 {
        assert!(matches!(rig.check().await, Ended::Fault(Fault::Launch(_))));
    }
    assert_eq!(rig.allowed(), 1);
}

/// Else whoever makes its checks fail would slow the census down.
#[tokio::test]
async fn what_a_host_may_have_brought_about_leaves_the_places_as_they_are() {
    let (least, most) = (2, 8);
    let mut rig = Rig::new(Places::new(Bounds { least, most }));
    rig.launcher(
        "well.sock",
        [
            frame(FrameKind::Stdout, HELLO),
            fault(FaultKind::BadRequest),
        ]
        .concat(),
    );
    for _ in 0..3 {
        // Two at a time: who does not use its places gets no more.
        tokio::join!(rig.check(), rig.check());
    }
    assert_eq!(rig.allowed(), 3);
    let breach = frame(FrameKind::Stdout, b"no event\n");
    rig.launcher("breach.sock", breach);
    for _ in 0..4 {
        rig.check().await;
    }
    assert_eq!(rig.allowed(), 3);
}

#[tokio::test]
async fn dead_hosts_that_are_looked_up_need_no_place_until_some_of_them_answer() {
    let mut rig = Rig::new(Places::fixed(1));
    let under_way = UnderWay::default();
    let held_by = |count: u32| {
        let _opening: Vec<_> = (0..count).map(|_| under_way.enter(Class::Dead)).collect();
        under_way.room(1000).under_way.dead
    };
    rig.gateway(
        "late.sock",
        b"{\"deferred\":{\"why\":\"group_pace\",\"retry_after_ms\":9}}\n",
    );
    for _ in 0..100 {
        rig.check_among(&under_way, Class::Dead).await;
    }
    assert_eq!(held_by(64), 64, "our own paces say nothing of a host");
    rig.gateway(
        "nowhere.sock",
        b"{\"unreachable\":{\"reason\":\"no_such_name\",\"detail\":\"\",\"families\":[],\"fresh\":true}}\n",
    );
    for _ in 0..200 {
        rig.check_among(&under_way, Class::Dead).await;
    }
    assert_eq!(held_by(64), 2);
    rig.gateway(
        "ready.sock",
        b"{\"ready\":{\"address\":\"192.0.2.1\",\"fresh\":true}}\n",
    );
    for _ in 0..64 {
        rig.check_among(&under_way, Class::Dead).await;
    }
    assert!(held_by(64) > 50);
}

/// Whether one more would wait.
async fn is_room_to_wait(places: &Places) -> bool {
    tokio::select! {
        biased;
        place = places.take_unless_crowded() => place.is_some(),
        () = std::future::ready(()) => true,
    }
}

/// Else a crowd of names that comes to life at once would keep the living waiting for minutes.
#[tokio::test]
async fn a_crowd_that_waits_for_places_turns_others_away_and_no_living_host() {
    let rig = Rig::new(Places::fixed(1));
    let (under_way, places) = (UnderWay::default(), &rig.tools.places);
    let taken = places.take().await;
    let mut crowd = tokio::task::JoinSet::new();
    while is_room_to_wait(places).await {
        let places = places.clone();
        crowd.spawn(async move { drop(places.take().await) });
        tokio::task::yield_now().await;
    }
    for class in [Class::Dead, Class::New, Class::Retry] {
        let ended = rig.check_among(&under_way, class).await;
        let is_full = matches!(
            ended,
            Ended::Deferred {
                why: Deferral::Full,
                ..
            }
        );
        assert!(is_full, "{class:?}: {ended:?}");
    }
    let room = async {
        drop(taken);
        crowd.join_all().await
    };
    let (living, _crowd) = tokio::join!(rig.check_among(&under_way, Class::Living), room);
    assert!(
        matches!(living, Ended::Fault(Fault::Launcher(_))),
        "{living:?}"
    );
}
