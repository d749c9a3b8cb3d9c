mod holds;
mod images;
mod mishaps;
mod properties;

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::client::{ClientError, Container, Frame, LauncherClient};
use crate::service::launch::UNENDED_IN_A_ROW_MAX;
use crate::tests::fake_engine::{CALLS, FakeEngine, Mishap, REPORT, Script, labels};
use crate::wire::FaultKind;
use crate::wire::{End, Killed};
use kit::labelled;
use protocol::CheckId;
use tokio::io::AsyncReadExt as _;

fn id(number: u128) -> CheckId {
    CheckId::from_random(number)
}

struct Running {
    launcher: Launcher<FakeEngine>,
    client: LauncherClient,
    shutdown: CancellationToken,
    keeping: JoinHandle<Result<(), LaunchFault>>,
}

fn launcher(script: Script, change: impl FnOnce(&FakeEngine, &mut Settings)) -> Running {
    let engine = FakeEngine::new(script);
    let mut settings = Settings {
        checks_max: 2,
        ..Settings::default()
    };
    change(&engine, &mut settings);
    let launcher = Launcher::new(settings, engine);
    let shutdown = CancellationToken::new();
    let keeping = tokio::spawn({
        let (launcher, shutdown) = (launcher.clone(), shutdown.clone());
        async move { launcher.keep(shutdown).await }
    });
    Running {
        client: LauncherClient::in_memory(&launcher),
        launcher,
        shutdown,
        keeping,
    }
}

async fn last(container: &mut Container) -> Frame {
    loop {
        match container.next().await.unwrap() {
            Frame::Stdout(_) | Frame::Stderr(_) => {}
            last @ (Frame::End(_) | Frame::Fault(_)) => return last,
        }
    }
}

async fn kind(container: &mut Container) -> Option<FaultKind> {
    match last(container).await {
        Frame::Fault(fault) => Some(fault.kind),
        Frame::Stdout(_) | Frame::Stderr(_) | Frame::End(_) => None,
    }
}

fn probes(engine: &FakeEngine) -> usize {
    let specs = engine.specs();
    specs.iter().filter(|spec| spec.argv == ["--probe"]).count()
}

impl Running {
    async fn launch(&self, number: u128) -> Container {
        self.client
            .launch(&id(number), &labelled("a"))
            .await
            .unwrap()
    }

    /// Waits until only this number of containers is left.
    async fn containers(&self, expect: usize) {
        for _ in 0..1000 {
            if self.launcher.shared.engine.names().len() == expect {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{:?}", self.launcher.shared.engine.names());
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_runs_from_request_to_end_and_its_container_goes() {
    let running = launcher(Script::Print(0), |_, _| {});
    let mut container = running.launch(1).await;
    assert_eq!(container.next().await.unwrap(), Frame::Stdout("out".into()));
    assert_eq!(container.next().await.unwrap(), Frame::Stderr("err".into()));
    assert!(matches!(container.next().await.unwrap(), Frame::End(_)));
    assert!(matches!(container.next().await, Err(ClientError::Over)));
    running.containers(0).await;
    let status = running.client.status().await.unwrap();
    assert_eq!((status.running, status.launches_total), (0, 1));
    assert_eq!(status.engine.as_deref(), Some("Docker 0 (API 1.41)"));
    assert_eq!(status.trouble, None);
}

#[tokio::test(start_paused = true)]
async fn a_check_is_never_launched_twice_at_once() {
    let running = launcher(Script::Silent, |_, _| {});
    let _first = running.launch(1).await;
    running.containers(1).await;
    let mut second = running.launch(1).await;
    assert_eq!(kind(&mut second).await, Some(FaultKind::BadRequest));
    assert_eq!(running.launcher.shared.engine.names().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn places_are_bounded_and_come_back() {
    let running = launcher(Script::Silent, |_, _| {});
    let mut first = running.launch(1).await;
    let _second = running.launch(2).await;
    running.containers(2).await;
    assert_eq!(
        kind(&mut running.launch(3).await).await,
        Some(FaultKind::Full)
    );
    let mut ids = running.client.list().await.unwrap();
    ids.sort();
    assert_eq!(ids, [id(1), id(2)]);
    assert!(running.client.kill(&id(1)).await.unwrap());
    let Frame::End(end) = last(&mut first).await else {
        panic!("no end");
    };
    assert_eq!((end.exit_code, end.killed), (137, Some(Killed::Asked)));
    assert!(!end.out_of_memory, "we did it");
    let _third = running.launch(3).await;
    running.containers(2).await;
    assert!(!running.client.kill(&id(1)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn removals_that_hang_are_bounded_too() {
    let running = launcher(Script::Print(0), |_, settings| settings.checks_max = 1);
    assert_eq!(kind(&mut running.launch(100).await).await, None);
    running.containers(0).await;
    let engine = &running.launcher.shared.engine;
    engine.break_calls(&["remove"], Mishap::Hang);
    let mut full = 0;
    for number in 0..10 {
        let mut container = running.launch(number).await;
        full += usize::from(kind(&mut container).await == Some(FaultKind::Full));
    }
    assert_eq!(full, 10 - CONTAINERS_PER_SLOT);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_goes_takes_its_container_along() {
    for script in [Script::Silent, Script::Flood, Script::Stay] {
        let running = launcher(script, |_, _| {});
        let container = running.launch(1).await;
        running.containers(1).await;
        drop(container);
        let before = tokio::time::Instant::now();
        running.containers(0).await;
        assert!(before.elapsed() < Duration::from_secs(1), "{script:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stands_still_gets_the_end_at_a_frames_start() {
    let running = launcher(Script::Flood, |_, _| {});
    let mut container = running.launch(1).await;
    // Past the deadline, but still within the time for the last frame.
    tokio::time::sleep(Duration::from_secs(68)).await;
    assert!(matches!(
        last(&mut container).await,
        Frame::End(End {
            killed: Some(Killed::Deadline),
            ..
        })
    ));
    running.containers(0).await;
}

#[tokio::test(start_paused = true)] // S15
async fn a_reader_that_never_reads_holds_nothing() {
    let running = launcher(Script::Flood, |_, _| {});
    let _container = running.launch(1).await;
    tokio::time::sleep(Duration::from_secs(80)).await;
    running.containers(0).await;
    assert_eq!(running.client.status().await.unwrap().running, 0);
    assert!(!running.client.kill(&id(1)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_all_checks_and_waits_for_their_removal() {
    let running = launcher(Script::Silent, |_, _| {});
    let mut container = running.launch(1).await;
    running.containers(1).await;
    running.shutdown.cancel();
    running.keeping.await.unwrap().unwrap();
    assert_eq!(kind(&mut container).await, Some(FaultKind::EngineDown));
    assert!(running.launcher.shared.engine.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_being_made_at_the_shutdown_is_waited_for_and_removed() {
    let creation = ["version", "list", "image", "volume"].len();
    let running = launcher(Script::Silent, |engine, _| {
        engine.go_wrong(creation, Mishap::Slow);
    });
    let engine = &running.launcher.shared.engine;
    while engine.calls().last() != Some(&"create") {
        tokio::task::yield_now().await;
    }
    running.shutdown.cancel();
    running.keeping.await.unwrap().unwrap();
    assert!(engine.calls().contains(&"remove"), "{:?}", engine.calls());
    assert!(engine.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn requests_are_bounded_in_length_and_time() {
    let running = launcher(Script::Print(0), |_, _| {});
    let answer = async |bytes: Vec<u8>| {
        let (mut near, far) = tokio::io::duplex(4096);
        let serving = running.launcher.serve_connection(far);
        let asking = async {
            near.write_all(&bytes).await.unwrap();
            let mut answer = Vec::new();
            near.read_to_end(&mut answer).await.unwrap();
            serde_json::from_slice::<Answer>(&answer).unwrap()
        };
        tokio::join!(serving, asking).1
    };
    let mut long = br#"{"list":{}}"#.to_vec();
    long.resize(REQUEST_BYTES_MAX, b' ');
    long.push(b'\n');
    for bytes in [
        b"no json\n".to_vec(),
        b"{\"list\":{\"image\":\"evil\"}}\n".to_vec(),
        b"{\"list\":{}}\n{\"list\":{}}\n".to_vec(),
        b"{\"launch\":{\"check\":\"../../etc\",\"host\":\"a.example\"}}\n".to_vec(),
        b"{\"launch\":{\"check\":\"00000000000000000000000000000001\",\"host\":\"--probe\"}}\n"
            .to_vec(),
        b"{\"list\":{}}".to_vec(),
        long,
    ] {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let answer = answer(bytes).await;
        assert!(
            matches!(&answer, Answer::Fault(fault) if fault.kind == FaultKind::BadRequest),
            "{text:?}: {answer:?}"
        );
    }
    let listed = answer(b"{\"list\":{}}\n".to_vec()).await;
    assert_eq!(listed, Answer::List { checks: Vec::new() });
}

#[tokio::test(start_paused = true)]
async fn checks_wait_for_an_engine_that_is_down_and_go_on_when_it_is_back() {
    let running = launcher(Script::Print(0), |engine, _| {
        engine.break_calls(&CALLS, Mishap::Down);
    });
    assert_eq!(
        kind(&mut running.launch(1).await).await,
        Some(FaultKind::EngineDown)
    );
    tokio::time::sleep(Duration::from_secs(600)).await;
    let calls = running.launcher.shared.engine.calls().len();
    assert!(calls < 20, "{calls} calls in ten minutes: no back-off");
    running.launcher.shared.engine.mend_calls();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(kind(&mut running.launch(2).await).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_engine_lost_in_the_middle_is_looked_for_at_once() {
    let running = launcher(Script::Print(0), |_, _| {});
    assert_eq!(kind(&mut running.launch(1).await).await, None);
    let engine = &running.launcher.shared.engine;
    engine.break_calls(&CALLS, Mishap::Down);
    assert_eq!(
        kind(&mut running.launch(2).await).await,
        Some(FaultKind::EngineDown)
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(running.client.status().await.unwrap().trouble.is_some());
}

#[tokio::test(start_paused = true)] // S7
async fn nothing_is_launched_where_limits_are_not_in_force() {
    let unlimited = REPORT.replace(r#""pids_max":16"#, r#""pids_max":null"#);
    for report in [
        unlimited.as_str(),
        "\n",
        "{}\n",
        "fedicensus-checker: no such option\n",
    ] {
        let running = launcher(Script::Print(0), |engine, _| engine.set_report(report));
        let mut container = running.launch(1).await;
        assert_eq!(
            kind(&mut container).await,
            Some(FaultKind::NotConfined),
            "{report}"
        );
        assert!(
            running.launcher.shared.engine.names().is_empty(),
            "the probe's is removed"
        );
        assert_eq!(running.launcher.shared.engine.specs()[0].argv, ["--probe"]);
        assert!(
            running
                .launcher
                .shared
                .engine
                .specs()
                .iter()
                .all(|spec| spec.egress.is_none())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_required_is_said() {
    let report = REPORT.replace(r#""cpu_max":0.5"#, r#""cpu_max":null"#);
    let running = launcher(Script::Print(0), |engine, _| engine.set_report(&report));
    assert_eq!(kind(&mut running.launch(1).await).await, None);
    let status = running.client.status().await.unwrap();
    assert!(status.warnings[0].starts_with("cpu"), "{status:?}");
}

/// Otherwise each check would treat it as its own failure and be retried at once.
#[tokio::test(start_paused = true)]
async fn what_keeps_every_check_from_running_is_no_single_launchs_error() {
    type Change = (&'static str, fn(&FakeEngine));
    let changes: [Change; 2] = [
        ("the engine has no volume", |engine| {
            engine.set_volume(false);
        }),
        // version, list, image, volume, create.
        ("by order of the test", |engine| {
            engine.go_wrong(4, Mishap::Refused);
        }),
    ];
    for (message, change) in changes {
        let running = launcher(Script::Print(0), |engine, _| change(engine));
        let Frame::Fault(fault) = last(&mut running.launch(1).await).await else {
            panic!("no fault");
        };
        assert_eq!(fault.kind, FaultKind::EngineDown, "{fault:?}");
        assert!(fault.message.contains(message), "{fault:?}");
        running.launcher.shared.engine.set_volume(true);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(kind(&mut running.launch(2).await).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_alone_is_refused_stays_that_launchs_error() {
    let running = launcher(Script::Print(0), |_, _| {});
    assert_eq!(kind(&mut running.launch(1).await).await, None);
    running.containers(0).await;
    running.launcher.shared.engine.go_wrong(0, Mishap::Refused);
    assert_eq!(
        kind(&mut running.launch(2).await).await,
        Some(FaultKind::EngineError)
    );
    assert_eq!(kind(&mut running.launch(3).await).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_a_crash_left_behind_is_reaped_at_the_start() {
    let ours = labels(&[
        (LABEL_INSTANCE, "fedicensus"),
        (LABEL_CHECK, id(9).as_str()),
    ]);
    let running = launcher(Script::Print(0), |engine, _| engine.plant("left", ours));
    assert_eq!(kind(&mut running.launch(1).await).await, None);
    running.containers(0).await;
    assert_eq!(running.client.status().await.unwrap().reaped_total, 1);
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_fails_is_made_up_for_by_the_sweep() {
    let running = launcher(Script::Print(0), |_, _| {});
    assert_eq!(kind(&mut running.launch(1).await).await, None);
    running.containers(0).await;
    // create, attach, start, wait, remove.
    running.launcher.shared.engine.go_wrong(4, Mishap::Refused);
    assert_eq!(kind(&mut running.launch(2).await).await, None);
    running.containers(1).await;
    tokio::time::sleep(Duration::from_secs(130)).await;
    running.containers(0).await;
}

#[tokio::test]
async fn the_server_has_a_socket_for_everybody_in_its_folder_and_for_one_launcher() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("launcher.sock");
    // What a killed launcher leaves behind.
    drop(tokio::net::UnixListener::bind(&path).unwrap());
    let settings = Settings {
        socket: path.clone(),
        ..Settings::default()
    };
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(serve(
        settings.clone(),
        FakeEngine::new(Script::Print(5)),
        shutdown.clone(),
    ));
    let client = LauncherClient::socket(&path);
    while client.status().await.is_err() {
        tokio::task::yield_now().await;
    }
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    let mut container = client.launch(&id(1), &labelled("a")).await.unwrap();
    assert!(matches!(
        last(&mut container).await,
        Frame::End(End { exit_code: 5, .. })
    ));
    let second = serve(settings, FakeEngine::default(), shutdown.clone()).await;
    assert!(matches!(second, Err(ServeError::Bind(BindError::InUse(_)))));
    shutdown.cancel();
    serving.await.unwrap().unwrap();
    assert!(!path.exists());
}

/// Otherwise eight of them would end the census for good.
#[tokio::test(start_paused = true)]
async fn left_over_containers_that_can_not_be_removed_keep_no_check_from_running() {
    let left = |number: u128| {
        let check = id(1000 + number).to_string();
        labels(&[(LABEL_INSTANCE, "fedicensus"), (LABEL_CHECK, &check)])
    };
    // Two slots, four removals for each.
    let running = launcher(Script::Print(0), |engine, _| {
        for number in 0..8 {
            let name = format!("a dead one, {number}");
            engine.plant(&name, left(number));
            engine.set_removal(&name, Some(Mishap::Refused));
        }
        engine.plant("left", left(8));
    });
    for number in 1..4 {
        assert_eq!(kind(&mut running.launch(number).await).await, None);
        running.containers(8).await;
        tokio::time::sleep(Duration::from_secs(130)).await;
    }
    assert_eq!(running.client.status().await.unwrap().trouble, None);
    assert_eq!(running.client.status().await.unwrap().reaped_total, 1);
}

/// A compromised checker chooses the moment of its end; an engine that loses the end of an output
/// does so for every check.
#[tokio::test(start_paused = true)]
async fn the_engine_is_probed_for_several_outputs_without_end_in_a_row_and_for_none_alone() {
    let running = launcher(Script::Unended(0), |_, _| {});
    let engine = &running.launcher.shared.engine;
    let probes = || probes(engine);
    let mut number = 0;
    let mut check = async |script| {
        engine.set_script(script);
        number += 1;
        let Frame::End(end) = last(&mut running.launch(number).await).await else {
            panic!("no end");
        };
        running.containers(0).await;
        assert_eq!(end.exit_code, 0);
        end.killed
    };
    for _ in 0..UNENDED_IN_A_ROW_MAX {
        for _ in 0..2 {
            assert_eq!(check(Script::Unended(0)).await, Some(Killed::Deadline));
        }
        assert_eq!(check(Script::Print(0)).await, None);
    }
    assert_eq!(probes(), 1, "the one at the start");
    for _ in 0..UNENDED_IN_A_ROW_MAX {
        check(Script::Unended(0)).await;
    }
    // The supervisor pauses between two probes.
    tokio::time::sleep(Duration::from_secs(2)).await;
    check(Script::Print(0)).await;
    assert_eq!(probes(), 2);
}
