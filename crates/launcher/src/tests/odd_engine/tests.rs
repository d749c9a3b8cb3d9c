use super::*;
use crate::client::{Frame, LauncherClient};
use crate::engine::bollard::BollardEngine;
use crate::engine::transport::{ANSWER_BYTES_MAX, LIST_BYTES_MAX};
use crate::service::server::Launcher;
use crate::settings::Settings;
use crate::wire::{End, FaultKind, Killed, LaunchFault, Status};
use protocol::{CheckId, Host};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the buffers of a socket pair hold in addition.
const SLACK_BYTES: u64 = 1024 * 1024;

const CALLS: [Call; 10] = [
    Call::Version,
    Call::List,
    Call::Image,
    Call::Volume,
    Call::Create,
    Call::Attach,
    Call::Start,
    Call::Wait,
    Call::Kill,
    Call::Remove,
];

const JSON: &str = "application/json";

/// What may go wrong with any call.
const MISHAPS: [Mishap; 14] = [
    Mishap::Never,
    Mishap::Cut,
    Mishap::NoHttp,
    Mishap::Answer(500, JSON, "{\"message\":\"by order of the test\"}"),
    Mishap::Answer(500, JSON, "no JSON"),
    Mishap::Answer(503, "text/html", ""),
    Mishap::Answer(200, JSON, "{\"garbage"),
    Mishap::Answer(200, "text/html", "<html>a proxy's page</html>"),
    Mishap::Answer(302, JSON, ""),
    Mishap::CutBody,
    Mishap::HalfBody,
    Mishap::EndlessHead,
    Mishap::EndlessBody(200),
    Mishap::EndlessBody(500),
];

/// What else may go wrong with a stream.
const STREAMS: [Mishap; 7] = [
    Mishap::Stream(b"\x01\0\0\0\xff\xff\xff\xff", Then::Flood),
    Mishap::Stream(b"\x01\0\0\0\xff\xff\xff\xff", Then::Silence),
    Mishap::Stream(b"\x01\0\0\0\0\0\0\x05ou", Then::Silence),
    Mishap::Stream(b"\x01\0\0\0\0\0\0\x05ou", Then::End),
    Mishap::Stream(b"\x01\0\0\0\0", Then::End),
    Mishap::Stream(b"\x09\0\0\0\0\0\0\x01x", Then::Silence),
    Mishap::Stream(b"no frames at all, and no end either", Then::Flood),
];

struct Running {
    engine: OddEngine,
    client: LauncherClient,
    settings: Settings,
}

#[derive(Debug)]
enum Last {
    End(End),
    Fault(LaunchFault),
}

impl Running {
    fn new() -> Self {
        let engine = OddEngine::new();
        let settings = Settings {
            checks_max: 1,
            ..Settings::default()
        };
        let launcher = Launcher::new(settings.clone(), BollardEngine::new(&engine.socket));
        let client = LauncherClient::in_memory(&launcher);
        tokio::spawn(async move { launcher.keep(CancellationToken::new()).await });
        Self {
            engine,
            client,
            settings,
        }
    }

    /// Launches a check, reads it to its end, and asserts that this took no longer than promised.
    async fn check(&self, behaviour: &str) -> Last {
        let host = Host::parse(&format!("{behaviour}.example")).unwrap();
        let before = Instant::now();
        let id = CheckId::from_random(rand::random());
        let mut container = self.client.launch(&id, &host).await.unwrap();
        loop {
            let last = match container.next().await.unwrap() {
                Frame::Stdout(_) | Frame::Stderr(_) => continue,
                Frame::End(end) => Last::End(end),
                Frame::Fault(fault) => Last::Fault(fault),
            };
            let took = before.elapsed();
            assert!(took <= self.settings.launch_max(), "{took:?}: {last:?}");
            return last;
        }
    }

    async fn status(&self) -> Status {
        self.client.status().await.unwrap()
    }

    /// Waits until a check ends as it should, which must happen once the engine is sound again.
    async fn until_sound(&self, why: &str) {
        let before = Instant::now();
        loop {
            let last = self.check("seven").await;
            if matches!(last, Last::End(End { exit_code: 7, .. })) {
                break;
            }
            let waited = before.elapsed();
            assert!(waited < Duration::from_secs(300), "{why}: still {last:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for _ in 0..1000 {
            if self.engine.containers().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let left = self.engine.containers();
        assert!(left.is_empty(), "{why}: {left:?} stay");
        let status = self.status().await;
        assert_eq!((status.running, status.trouble), (0, None), "{why}");
    }
}

/// Asserts how a check may end when this call goes wrong in any way except being late.
fn expect(call: Call, mishap: Mishap, why: &str, last: &Last) {
    if let (Mishap::Stream(_, Then::Silence | Then::Flood), Last::End(end)) = (mishap, last) {
        // It might be a checker's flood or silence, except for the exit code: the container had
        // ended, and its output had not.
        let told = (end.exit_code, end.killed);
        return assert_eq!(told, (7, Some(Killed::Deadline)), "{why}");
    }
    match (call, last) {
        // Not called during a launch, or irrelevant for its end.
        (
            Call::Version | Call::List | Call::Image | Call::Volume | Call::Remove,
            Last::End(end),
        ) => assert_eq!((end.exit_code, end.killed), (7, None), "{why}"),
        (Call::Create | Call::Attach | Call::Start | Call::Wait, Last::Fault(fault)) => {
            let ours = [FaultKind::EngineDown, FaultKind::EngineError];
            assert!(ours.contains(&fault.kind), "{why}: {fault:?}");
            let named = format!("{call:?}").to_lowercase();
            assert!(fault.message.starts_with(&named), "{why}: {fault:?}");
        }
        // The forced removal kills as well.
        (Call::Kill, Last::Fault(fault)) => {
            assert_eq!(fault.kind, FaultKind::EngineDown, "{why}: {fault:?}");
        }
        (_, last) => panic!("{why}: {last:?}"),
    }
}

/// How the status's trouble begins. `None` if checks continue.
fn said(call: Call) -> Option<&'static str> {
    match call {
        Call::Version => Some("version: "),
        Call::List => Some("list: "),
        Call::Create => Some("create: "),
        Call::Attach => Some("attach: "),
        Call::Start => Some("start: "),
        Call::Wait => Some("wait: "),
        // Called at the start only, or about a single container.
        Call::Image | Call::Volume | Call::Kill | Call::Remove => None,
    }
}

fn longest(call: Call) -> u64 {
    let listing = matches!(call, Call::List | Call::Volume);
    let bound = if listing {
        LIST_BYTES_MAX
    } else {
        ANSWER_BYTES_MAX
    };
    bound.saturating_add(SLACK_BYTES)
}

/// One call goes wrong from some time on, and later works again.
async fn story(call: Call, mishap: Mishap) {
    let why = format!("{call:?} {mishap:?}");
    let running = Running::new();
    running.until_sound(&why).await;
    running.engine.go_wrong(call, mishap);
    let behaviour = if call == Call::Kill { "stay" } else { "seven" };
    let last = running.check(behaviour).await;
    expect(call, mishap, &why, &last);
    let taken = running.engine.take_endless_bytes();
    // A stream is passed on, never buffered.
    let held = !matches!(mishap, Mishap::Stream(..));
    assert!(
        !held || taken <= longest(call),
        "{why}: {taken} bytes were taken"
    );
    // Further launches must not get an invalid end either.
    for _ in 0..10 {
        let last = running.check("seven").await;
        if matches!(call, Call::Create | Call::Attach | Call::Start | Call::Wait) {
            let clean = matches!(last, Last::End(End { killed: None, .. }));
            assert!(!clean, "{why}: {last:?}");
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    if let Some(named) = said(call) {
        let trouble = running.status().await.trouble.unwrap_or_default();
        let probe = trouble.starts_with("the probe") && matches!(mishap, Mishap::Stream(..));
        assert!(trouble.starts_with(named) || probe, "{why}: {trouble:?}");
    }
    running.engine.be_sound();
    running.until_sound(&why).await;
}

/// Runs all stories before it fails for any.
async fn tell(stories: impl IntoIterator<Item = (Call, Mishap)>) {
    let mut failed = Vec::new();
    for (call, mishap) in stories {
        if tokio::spawn(story(call, mishap)).await.is_err() {
            failed.push((call, mishap));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_with_a_call_is_a_fault_and_passes() {
    let strange = |mishap| {
        let unread = [Mishap::CutBody, Mishap::HalfBody, Mishap::EndlessBody(200)];
        matches!(mishap, Mishap::Answer(200, ..)) || unread.contains(&mishap)
    };
    // A success of these calls has no body, so a strange success is still a success.
    let silent = [Call::Start, Call::Kill, Call::Remove];
    let stories = CALLS
        .into_iter()
        .flat_map(|call| MISHAPS.map(|mishap| (call, mishap)))
        .filter(|(call, mishap)| !(strange(*mishap) && silent.contains(call)));
    tell(stories).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_wrong_is_a_fault_and_passes() {
    tell(STREAMS.map(|mishap| (Call::Attach, mishap))).await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_slow_with_every_call_still_does_its_work() {
    let running = Running::new();
    for call in CALLS {
        running
            .engine
            .go_wrong(call, Mishap::Late(Duration::from_secs(4)));
    }
    running.until_sound("slow").await;
    let last = running.check("stay").await;
    let Last::End(end) = last else {
        panic!("{last:?}");
    };
    assert_eq!((end.exit_code, end.killed), (137, Some(Killed::Deadline)));
}

#[tokio::test(start_paused = true)]
async fn an_exit_code_that_is_none_is_a_fault() {
    let running = Running::new();
    running.until_sound("before").await;
    for body in [
        "{\"StatusCode\":-1}",
        "{\"StatusCode\":0,\"Error\":{\"Message\":\"lost\"}}",
        "{\"StatusCode\":137,\"Error\":{\"Message\":\"lost\"}}",
        "{\"StatusCode\":\"0\"}",
        "{}",
    ] {
        running
            .engine
            .go_wrong(Call::Wait, Mishap::Answer(200, JSON, body));
        let last = running.check("seven").await;
        assert!(matches!(last, Last::Fault(_)), "{body}: {last:?}");
        running.engine.be_sound();
        running.until_sound(body).await;
    }
}

/// An answer without an id, or with an id that would form another path, must not reach the call
/// that removes by force.
#[tokio::test(start_paused = true)]
async fn an_id_that_is_none_is_never_asked_for() {
    let running = Running::new();
    running.until_sound("before").await;
    for body in [
        "{}",
        "{\"Id\":\"\"}",
        "{\"Id\":\"c9/../victim\"}",
        "{\"Id\":\"victim?x\"}",
    ] {
        running
            .engine
            .go_wrong(Call::Create, Mishap::Answer(201, JSON, body));
        let before = running.engine.calls().len();
        let last = running.check("seven").await;
        assert!(matches!(last, Last::Fault(_)), "{body}: {last:?}");
        let calls = running.engine.calls().split_off(before);
        assert!(!calls.contains(&Call::Remove), "{body}: {calls:?}");
    }
    running.engine.be_sound();
    running.until_sound("after").await;
}

/// A refusal is not confused with a missing image, so no operator builds an image that exists.
#[tokio::test(start_paused = true)]
async fn an_engine_that_refuses_everything_is_not_said_to_lack_the_image() {
    let running = Running::new();
    running.until_sound("before").await;
    for call in CALLS {
        running.engine.go_wrong(
            call,
            Mishap::Answer(500, JSON, "{\"message\":\"disk full\"}"),
        );
    }
    let Last::Fault(fault) = running.check("seven").await else {
        panic!("no fault");
    };
    assert_eq!(fault.kind, FaultKind::EngineError, "{fault:?}");
    tokio::time::sleep(Duration::from_secs(120)).await;
    let trouble = running.status().await.trouble.unwrap_or_default();
    assert!(
        trouble.contains("disk full") && !trouble.contains("no image"),
        "{trouble}"
    );
    let missing = Mishap::Answer(404, JSON, "{\"message\":\"No such image\"}");
    running.engine.be_sound();
    running.engine.go_wrong(Call::Image, missing);
    running.engine.go_wrong(Call::Create, missing);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let trouble = running.status().await.trouble.unwrap_or_default();
    assert!(trouble.contains("no image"), "{trouble}");
    running.engine.be_sound();
    running.until_sound("after").await;
}

#[tokio::test(start_paused = true)]
async fn containers_that_stay_stop_the_checks_before_they_pile_up() {
    let running = Running::new();
    running.until_sound("before").await;
    running.engine.go_wrong(
        Call::Remove,
        Mishap::Answer(500, JSON, "{\"message\":\"busy\"}"),
    );
    let mut launched: usize = 0;
    while running.status().await.trouble.is_none() {
        running.check("seven").await;
        launched = launched.saturating_add(1);
        assert!(
            launched < 500,
            "{} containers",
            running.engine.containers().len()
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let trouble = running.status().await.trouble.unwrap_or_default();
    assert!(
        trouble.starts_with("remove: ") && trouble.contains("busy"),
        "{trouble}"
    );
    running.engine.be_sound();
    running.until_sound("after").await;
}

#[tokio::test(start_paused = true)]
async fn nothing_of_others_is_ever_removed_or_killed() {
    let check = CheckId::from_random(7).to_string();
    let others = [
        ("stranger", json!({})),
        ("unlabelled", Value::Null),
        ("service", json!({"org.fedicensus": "fedicensus"})),
        (
            "installation",
            json!({"org.fedicensus": "other", "org.fedicensus.check": check}),
        ),
        (
            "prefix",
            json!({"org.fedicensus": "fedicensus2", "org.fedicensus.check": check}),
        ),
        (
            "case",
            json!({"org.fedicensus": "Fedicensus", "org.fedicensus.check": check}),
        ),
        ("nameless", json!({"org.fedicensus.check": check})),
    ];
    let running = Running::new();
    for (id, labels) in &others {
        running.engine.plant(id, labels);
    }
    let ours = json!({"org.fedicensus": "fedicensus", "org.fedicensus.check": check});
    running.engine.plant("ours", &ours);
    assert!(matches!(running.check("seven").await, Last::End(_)));
    assert_eq!(running.client.list().await.unwrap(), []);
    assert!(!running.client.kill(&CheckId::from_random(7)).await.unwrap());
    tokio::time::sleep(Duration::from_secs(600)).await;
    let mut names: Vec<_> = others.iter().map(|(id, _)| (*id).to_owned()).collect();
    names.sort();
    assert_eq!(running.engine.containers(), names);
    assert!(!running.engine.calls().contains(&Call::Kill));
}

#[tokio::test(start_paused = true)]
async fn a_kill_comes_through_in_the_middle_of_a_flood() {
    let running = Running::new();
    running.until_sound("before").await;
    for reading in [true, false] {
        let id = CheckId::from_random(rand::random());
        let host = Host::parse("flood.example").unwrap();
        let mut container = running.client.launch(&id, &host).await.unwrap();
        container.next().await.unwrap();
        let before = Instant::now();
        assert!(running.client.kill(&id).await.unwrap());
        let last = loop {
            match container.next().await.unwrap() {
                Frame::Stdout(_) | Frame::Stderr(_) if reading => {}
                // Reads only now and then: the end waits a while for a slow reader.
                Frame::Stdout(_) | Frame::Stderr(_) => {
                    tokio::time::sleep(Duration::from_secs(1)).await
                }
                last @ (Frame::End(_) | Frame::Fault(_)) => break last,
            }
        };
        let Frame::End(end) = last else {
            panic!("{last:?}");
        };
        assert_eq!((end.exit_code, end.killed), (137, Some(Killed::Asked)));
        assert!(
            before.elapsed() < Duration::from_secs(10),
            "{:?}",
            before.elapsed()
        );
    }
    running.until_sound("after").await;
}

/// Invariant I9: output that is not read stays with the engine, and the launcher does not buffer
/// it.
#[tokio::test(start_paused = true)]
async fn a_flood_that_nobody_reads_stays_with_the_engine() {
    let running = Running::new();
    running.until_sound("before").await;
    let flood = Mishap::Stream(b"\x01\0\0\0\xff\xff\xff\xff", Then::Flood);
    running.engine.go_wrong(Call::Attach, flood);
    let host = Host::parse("stay.example").unwrap();
    let id = CheckId::from_random(rand::random());
    let container = running.client.launch(&id, &host).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let drawn = running.engine.take_endless_bytes();
    println!("drawn from a flood that nobody reads: {drawn} bytes");
    assert!((1..SLACK_BYTES).contains(&drawn), "{drawn} bytes");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(running.engine.take_endless_bytes(), 0);
    assert_eq!(
        running.status().await.running,
        0,
        "the deadline frees the place"
    );
    drop(container);
    running.engine.be_sound();
    running.until_sound("after").await;
}
