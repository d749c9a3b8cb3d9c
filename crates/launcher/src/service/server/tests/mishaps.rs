//! An engine that fails, hangs or answers nonsense at some calls: a check ends in a fault of ours,
//! and later ones run again. Containers of others are left alone.

use super::*;
use crate::tests::fake_engine::IMAGE_ID;
use tokio::time::Instant;

impl Running {
    fn engine(&self) -> &FakeEngine {
        &self.launcher.shared.engine
    }

    /// Runs a check to its last frame, and asserts that this took no longer than promised.
    async fn check(&self) -> Frame {
        let before = Instant::now();
        let last = last(&mut self.launch(rand::random()).await).await;
        let took = before.elapsed();
        let longest = self.launcher.shared.settings.launch_max();
        assert!(took <= longest, "{took:?}: {last:?}");
        last
    }

    async fn trouble(&self) -> String {
        let status = self.client.status().await.unwrap();
        status.trouble.unwrap_or_default()
    }

    /// Waits until a check ends as it should and no container is left, which must happen once the
    /// engine works again.
    async fn until_sound(&self, why: &str) {
        for _ in 0..100 {
            let last = self.check().await;
            // The removal goes on after the last frame.
            tokio::time::sleep(Duration::from_secs(10)).await;
            if is_sound(&last) && self.engine().names().is_empty() {
                let status = self.client.status().await.unwrap();
                return assert_eq!((status.running, status.trouble), (0, None), "{why}");
            }
        }
        let left = self.engine().names();
        panic!("{why}: {}, {left:?} stay", self.trouble().await);
    }
}

fn is_sound(last: &Frame) -> bool {
    matches!(last, Frame::End(end) if (end.exit_code, end.killed) == (7, None))
}

/// Asserts how a check may end when this call goes wrong.
fn expect(call: &str, why: &str, last: &Frame) {
    match (call, last) {
        ("create" | "attach" | "start" | "wait", Frame::Fault(fault)) => {
            let ours = [FaultKind::EngineDown, FaultKind::EngineError];
            assert!(ours.contains(&fault.kind), "{why}: {fault:?}");
            assert!(fault.message.starts_with(call), "{why}: {fault:?}");
        }
        // The forced removal kills as well.
        ("kill", Frame::Fault(fault)) => assert_eq!(fault.kind, FaultKind::EngineDown, "{why}"),
        // Not called during a launch, or irrelevant for its end.
        ("version" | "list" | "image" | "volume" | "tag" | "remove", last) => {
            assert!(is_sound(last), "{why}: {last:?}");
        }
        (_, last) => panic!("{why}: {last:?}"),
    }
}

/// One call goes wrong from some time on, and later works again.
#[tokio::test(start_paused = true)] // S40
async fn failed_call_is_a_fault_and_passes() {
    let mishaps = [Mishap::Down, Mishap::Refused, Mishap::Garbled, Mishap::Hang];
    let stories = CALLS
        .into_iter()
        .flat_map(|call| mishaps.map(|mishap| (call, mishap)));
    for (call, mishap) in stories {
        let why = format!("{call} {mishap:?}");
        let running = launcher(Script::Print(7), |_, _| {});
        running.until_sound(&why).await;
        let engine = running.engine();
        engine.break_calls(&[call], mishap);
        if call == "kill" {
            engine.set_script(Script::Silent);
        }
        expect(call, &why, &running.check().await);
        engine.set_script(Script::Print(7));
        let is_of_launches = ["create", "attach", "start", "wait"].contains(&call);
        // Further launches must not get an invalid end either.
        for _ in 0..10 {
            let last = running.check().await;
            assert!(!(is_of_launches && is_sound(&last)), "{why}: {last:?}");
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        // These are called by the supervisor, too.
        if is_of_launches || ["version", "list"].contains(&call) {
            let trouble = running.trouble().await;
            assert!(trouble.starts_with(call), "{why}: {trouble:?}");
        }
        engine.mend_calls();
        running.until_sound(&why).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_slow_with_every_call_still_does_its_work() {
    let running = launcher(Script::Print(7), |_, _| {});
    running.engine().break_calls(&CALLS, Mishap::Slow);
    running.until_sound("slow").await;
    running.engine().set_script(Script::Silent);
    let last = running.check().await;
    let Frame::End(end) = last else {
        panic!("{last:?}");
    };
    assert_eq!((end.exit_code, end.killed), (137, Some(Killed::Deadline)));
}

/// A refusal is not confused with a missing image, so no operator builds an image that exists.
#[tokio::test(start_paused = true)]
async fn an_engine_that_refuses_everything_is_not_said_to_lack_the_image() {
    let running = launcher(Script::Print(7), |_, _| {});
    running.until_sound("before").await;
    running.engine().break_calls(&CALLS, Mishap::Refused);
    let Frame::Fault(fault) = running.check().await else {
        panic!("no fault");
    };
    assert_eq!(fault.kind, FaultKind::EngineError, "{fault:?}");
    tokio::time::sleep(Duration::from_secs(120)).await;
    let trouble = running.trouble().await;
    assert!(trouble.contains("by order of the test"), "{trouble}");
    assert!(!trouble.contains("no image"), "{trouble}");
    running.engine().mend_calls();
    running.engine().set_images(&[]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let trouble = running.trouble().await;
    assert!(trouble.contains("no image"), "{trouble}");
    running.engine().set_images(&[IMAGE_ID]);
    running.until_sound("after").await;
}

#[tokio::test(start_paused = true)]
async fn containers_that_stay_stop_the_checks_before_they_pile_up() {
    let running = launcher(Script::Print(7), |_, _| {});
    running.until_sound("before").await;
    running.engine().break_calls(&["remove"], Mishap::Refused);
    let mut launched = 0;
    while running.trouble().await.is_empty() {
        running.check().await;
        launched += 1;
        assert!(launched < 500, "{} stay", running.engine().names().len());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let trouble = running.trouble().await;
    assert!(trouble.starts_with("remove: "), "{trouble}");
    running.engine().mend_calls();
    running.until_sound("after").await;
}

#[tokio::test(start_paused = true)] // S14
async fn nothing_of_others_is_ever_removed_or_killed() {
    let check = id(7).to_string();
    let of_check = |instance| labels(&[(LABEL_INSTANCE, instance), (LABEL_CHECK, &check)]);
    let others = [
        ("case", of_check("Fedicensus")),
        ("installation", of_check("other")),
        ("nameless", labels(&[(LABEL_CHECK, &check)])),
        ("prefix", of_check("fedicensus2")),
        ("service", labels(&[(LABEL_INSTANCE, "fedicensus")])),
        ("stranger", labels(&[])),
    ];
    let running = launcher(Script::Print(7), |engine, _| {
        for (name, labels) in &others {
            engine.plant(name, labels.clone());
        }
        engine.plant("ours", of_check("fedicensus"));
    });
    assert!(is_sound(&running.check().await));
    assert_eq!(running.client.list().await.unwrap(), []);
    assert!(!running.client.kill(&id(7)).await.unwrap());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(running.engine().names(), others.map(|(name, _)| name));
    assert!(!running.engine().calls().contains(&"kill"));
}
