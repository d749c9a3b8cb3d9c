//! Which image checks start from when the image's name moves to another image, and how often the
//! probe runs.

use super::*;
use crate::container::spec::Spec;
use crate::tests::fake_engine::{IMAGE_ID, Mishap};

const OTHER: &str = "sha256:2";

impl Running {
    async fn image_of(&self, number: u128) -> String {
        assert_eq!(kind(&mut self.launch(number).await).await, None);
        let specs = self.launcher.shared.engine.specs();
        let of_check = |spec: &&Spec| spec.labels.get(LABEL_CHECK) == Some(&id(number).to_string());
        specs.iter().find(of_check).unwrap().image.clone()
    }

    async fn sweep(&self) {
        let interval = self.launcher.shared.settings.sweep_interval;
        tokio::time::sleep(interval.saturating_mul(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_starts_from_the_image_that_was_probed_whatever_has_its_name() {
    let running = launcher(Script::Print(0), |_, _| {});
    let engine = &running.launcher.shared.engine;
    assert_eq!(running.image_of(1).await, IMAGE_ID);
    engine.set_images(&[IMAGE_ID, OTHER]);
    assert_eq!(running.image_of(2).await, IMAGE_ID, "not probed yet");
    running.sweep().await;
    assert_eq!(probes(engine), 2);
    assert_eq!(running.image_of(3).await, OTHER);
}

#[tokio::test(start_paused = true)]
async fn an_image_whose_probe_fails_takes_no_place_of_one_that_is_there() {
    let running = launcher(Script::Print(0), |_, _| {});
    let engine = &running.launcher.shared.engine;
    assert_eq!(running.image_of(1).await, IMAGE_ID);
    engine.set_readable(&[OTHER]);
    engine.set_images(&[IMAGE_ID, OTHER]);
    running.sweep().await;
    assert_eq!(running.image_of(2).await, IMAGE_ID);
    let status = running.client.status().await.unwrap();
    assert_eq!(status.trouble, None);
    assert!(
        status.warnings[0].contains("through /proc/self/mem"),
        "{status:?}"
    );
    let probed = probes(engine);
    running.sweep().await;
    assert_eq!(probes(engine), probed, "each image is probed once");
    // The former image is removed.
    engine.set_images(&[OTHER]);
    let Frame::Fault(fault) = last(&mut running.launch(3).await).await else {
        panic!("no fault");
    };
    assert_eq!(fault.kind, FaultKind::ImageMissing);
    assert!(fault.message.contains("is another one"), "{fault:?}");
    running.sweep().await;
    let mut refused = running.launch(4).await;
    assert_eq!(kind(&mut refused).await, Some(FaultKind::NotConfined));
    engine.set_readable(&[]);
    running.sweep().await;
    assert_eq!(running.image_of(5).await, OTHER);
}

/// This covers every call to the engine, including the probe's.
#[tokio::test(start_paused = true)]
async fn a_call_that_fails_once_keeps_a_new_image_out_for_no_hour() {
    for call in 0..16 {
        let running = launcher(Script::Print(0), |_, _| {});
        let engine = &running.launcher.shared.engine;
        assert_eq!(running.image_of(1).await, IMAGE_ID);
        engine.set_images(&[IMAGE_ID, OTHER]);
        engine.go_wrong(call, Mishap::Refused);
        for _ in 0..3 {
            running.sweep().await;
        }
        assert_eq!(running.image_of(2).await, OTHER, "call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_goes_is_a_fault_that_says_what_to_do() {
    let running = launcher(Script::Print(0), |_, _| {});
    assert_eq!(running.image_of(1).await, IMAGE_ID);
    running.launcher.shared.engine.set_images(&[]);
    let Frame::Fault(fault) = last(&mut running.launch(2).await).await else {
        panic!("no fault");
    };
    assert_eq!(fault.kind, FaultKind::ImageMissing);
    let remedy = "localhost/fedicensus-checker:latest: build it";
    assert!(fault.message.contains(remedy), "{fault:?}");
    running.sweep().await;
    let trouble = running.client.status().await.unwrap().trouble;
    assert!(trouble.is_some_and(|trouble| trouble.contains(remedy)));
    running.launcher.shared.engine.set_images(&[OTHER]);
    running.sweep().await;
    assert_eq!(running.image_of(3).await, OTHER);
}

/// Between two sweeps, an engine may come back with other settings and the same version.
#[tokio::test(start_paused = true)]
async fn an_engine_that_seems_the_same_is_probed_every_hour() {
    let running = launcher(Script::Print(0), |_, _| {});
    assert_eq!(running.image_of(1).await, IMAGE_ID);
    let unlimited = REPORT.replace(r#""pids_max":16"#, r#""pids_max":null"#);
    let engine = &running.launcher.shared.engine;
    engine.set_report(&unlimited);
    tokio::time::sleep(Duration::from_mins(62)).await;
    let mut refused = running.launch(2).await;
    assert_eq!(kind(&mut refused).await, Some(FaultKind::NotConfined));
}

#[tokio::test(start_paused = true)]
async fn a_report_without_its_end_is_lost_output_and_tried_again() {
    let running = launcher(Script::Print(0), |engine, _| engine.set_report("{\"uid\":"));
    let Frame::Fault(fault) = last(&mut running.launch(1).await).await else {
        panic!("no fault");
    };
    assert!(fault.message.starts_with("output lost"), "{fault:?}");
    running.launcher.shared.engine.set_report(&REPORT);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(running.image_of(2).await, IMAGE_ID);
}
