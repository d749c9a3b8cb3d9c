use std::time::Duration;

use super::*;
use crate::engine::Chunk;
use crate::tests::fake_engine::{FakeEngine, IMAGE_ID, Mishap, Script};
use protocol::{CheckId, Host};
use tokio::io::DuplexStream;

struct Ran {
    outcome: Outcome,
    seconds: u64,
    container: Option<Created>,
    printed: Vec<u8>,
}

fn spec(settings: &Settings) -> Spec {
    Spec::check(
        settings,
        IMAGE_ID,
        &CheckId::from_random(5),
        &Host::parse("a.example").unwrap(),
    )
}

async fn ran(engine: &FakeEngine, signals: &Signals) -> Ran {
    let settings = Settings::default();
    let mut frames = FrameWriter::new(Vec::new());
    let mut container = None;
    let before = Instant::now();
    let outcome = run(
        engine,
        &settings,
        &spec(&settings),
        signals,
        &mut frames,
        &mut container,
    )
    .await;
    let seconds = before.elapsed().as_secs();
    frames.flush().await.unwrap();
    Ran {
        outcome,
        seconds,
        container,
        printed: frames.into_inner(),
    }
}

async fn passed_to(reader: DuplexStream, engine: &FakeEngine, signals: &Signals) -> Outcome {
    let settings = Settings::default();
    let (mut frames, mut container) = (FrameWriter::new(reader), None);
    let spec = spec(&settings);
    run(
        engine,
        &settings,
        &spec,
        signals,
        &mut frames,
        &mut container,
    )
    .await
}

fn end(exit_code: i64, out_of_memory: bool, killed: Option<Killed>, seconds: u64) -> Outcome {
    Outcome::End(End {
        exit_code,
        out_of_memory,
        killed,
        millis: seconds.saturating_mul(1000),
    })
}

#[tokio::test(start_paused = true)]
async fn a_container_is_attached_before_it_starts_and_waited_for_after_its_output() {
    let engine = FakeEngine::new(Script::Print(7));
    let ran = ran(&engine, &Signals::default()).await;
    assert_eq!(ran.outcome, end(7, false, None, 0));
    assert_eq!(engine.calls(), ["create", "attach", "start", "wait"]);
    assert_eq!(ran.printed, b"\x01\0\0\0\x03out\x02\0\0\0\x03err");
}

#[tokio::test(start_paused = true)]
async fn what_comes_late_is_passed_on() {
    let engine = FakeEngine::new(Script::Late(50));
    let ran = ran(&engine, &Signals::default()).await;
    assert_eq!(ran.outcome, end(0, false, None, 50));
    assert!(ran.printed.ends_with(b"\x01\0\0\0\x04late"));
}

#[tokio::test(start_paused = true)]
async fn exit_137_that_we_did_not_cause_is_out_of_memory() {
    let engine = FakeEngine::new(Script::Print(137));
    let ran = ran(&engine, &Signals::default()).await;
    assert_eq!(ran.outcome, end(137, true, None, 0));
}

#[tokio::test(start_paused = true)]
async fn no_check_outlives_its_deadline() {
    for script in [Script::Silent, Script::Stay, Script::Late(70)] {
        let engine = FakeEngine::new(script);
        let ran = ran(&engine, &Signals::default()).await;
        let exit_code = if script == Script::Late(70) { 0 } else { 137 };
        let expect = end(exit_code, false, Some(Killed::Deadline), 65);
        assert_eq!(ran.outcome, expect, "{script:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stands_still_does_not_hold_a_flood_beyond_its_deadline() {
    let engine = FakeEngine::new(Script::Flood);
    let (near, _far) = tokio::io::duplex(16);
    let outcome = passed_to(near, &engine, &Signals::default()).await;
    assert_eq!(outcome, end(137, false, Some(Killed::Deadline), 65));
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_ended_when_asked() {
    let engine = FakeEngine::new(Script::Flood);
    let (near, mut far) = tokio::io::duplex(4096);
    let signals = Signals::default();
    let asked = signals.asked.clone();
    let work = passed_to(near, &engine, &signals);
    let reading = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        asked.cancel();
        tokio::io::copy(&mut far, &mut tokio::io::sink()).await
    };
    tokio::select! {
        outcome = work => assert_eq!(outcome, end(137, false, Some(Killed::Asked), 3)),
        _ = reading => panic!("the writer is held until the end"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_whose_reader_has_gone_is_killed() {
    let engine = FakeEngine::new(Script::Flood);
    let (near, far) = tokio::io::duplex(16);
    drop(far);
    let outcome = passed_to(near, &engine, &Signals::default()).await;
    assert_eq!(outcome, Outcome::Gone);
    assert!(engine.calls().contains(&"kill"));
}

#[tokio::test(start_paused = true)]
async fn a_launcher_that_ends_blames_itself() {
    let engine = FakeEngine::new(Script::Silent);
    let signals = Signals::default();
    signals.ending.cancel();
    assert_eq!(
        ran(&engine, &signals).await.outcome,
        Outcome::Fault(ending())
    );
    assert!(engine.calls().contains(&"kill"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_at_any_call_is_a_fault_and_never_an_end() {
    for (nth, call) in ["create", "attach", "start", "wait"].iter().enumerate() {
        for (mishap, kind) in [
            (Mishap::Down, FaultKind::EngineDown),
            (Mishap::Refused, FaultKind::EngineError),
            (Mishap::Garbled, FaultKind::EngineError),
        ] {
            let engine = FakeEngine::new(Script::Print(0));
            engine.go_wrong(nth, mishap);
            let ran = ran(&engine, &Signals::default()).await;
            let Outcome::Fault(fault) = ran.outcome else {
                panic!("{call} {mishap:?}: {:?}", ran.outcome);
            };
            assert_eq!(fault.kind, kind, "{call}");
            assert!(fault.message.starts_with(call), "{}", fault.message);
            assert_eq!(ran.container.is_some(), nth > 0, "{call}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_hangs_at_any_call_holds_nobody() {
    let settings = Settings::default();
    for nth in 0..6 {
        for script in [Script::Print(0), Script::Silent] {
            let engine = FakeEngine::new(script);
            engine.go_wrong(nth, Mishap::Hang);
            let ran = ran(&engine, &Signals::default()).await;
            assert!(
                ran.seconds <= settings.launch_max().as_secs(),
                "{nth} {script:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_kill_that_fails_is_no_end_of_waiting() {
    for mishap in [Mishap::Down, Mishap::Refused, Mishap::Hang] {
        let engine = FakeEngine::new(Script::Silent);
        // create, attach, start, then the kill: the output never ended, so `wait` was not called.
        engine.go_wrong(3, mishap);
        let ran = ran(&engine, &Signals::default()).await;
        let Outcome::Fault(fault) = ran.outcome else {
            panic!("{mishap:?}: {:?}", ran.outcome);
        };
        assert_eq!(fault.kind, FaultKind::EngineDown, "the wait found no end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_image_is_told_from_other_refusals_by_asking() {
    let engine = FakeEngine::new(Script::Print(0));
    engine.set_images(&[]);
    let ran = ran(&engine, &Signals::default()).await;
    assert!(
        matches!(&ran.outcome, Outcome::Fault(fault) if fault.kind == FaultKind::ImageMissing),
        "{:?}",
        ran.outcome
    );
}

#[test]
fn an_engines_words_are_bounded_and_escaped() {
    let error = EngineError::Refused {
        call: "create",
        source: format!("\u{1b}[2J{}", "x".repeat(10_000)).into(),
    };
    let message = fault(&error).message;
    assert!(message.len() <= MESSAGE_BYTES_MAX + '…'.len_utf8());
    assert!(
        message.starts_with("create: the engine refused: \\x1b[2Jx"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn chunks_of_an_engine_that_breaks_are_kept_and_the_break_is_a_fault() {
    let output: Output = Box::pin(futures_util::stream::iter([
        Ok(Chunk::Stdout("whole".into())),
        Err(EngineError::Down {
            call: "attach",
            source: "reset".into(),
        }),
    ]));
    let mut frames = FrameWriter::new(Vec::new());
    assert!(matches!(
        pass_on(output, &mut frames).await,
        Passed::Broken(_)
    ));
    assert_eq!(frames.into_inner(), b"\x01\0\0\0\x05whole");
}
