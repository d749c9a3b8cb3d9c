//! What the launcher promises, tested on the engine itself.

use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bollard::models::{HostConfig, MountPoint, VolumeCreateRequest};
use bollard::query_parameters::{InspectContainerOptions, RemoveVolumeOptions};
use kit::Need;
use launcher::engine::EngineKind;
use launcher::seccomp::MARK;
use launcher::spec::{SELINUX_LEVEL, SeccompProfile};
use launcher::{EgressSource, Frame};
use protocol::container::{FaultKind, Killed};
use tokio::net::UnixStream;

use crate::bench::{
    Bench, PATIENCE, READABLE_IMAGE, Running, VOLUME, check, installation, of_installation,
    patient, read,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_launcher_keeps_its_promises_on_a_real_engine() {
    let Some(socket) = std::env::var_os("FEDICENSUS_TEST_ENGINE") else {
        return kit::skip(
            Need::Engine,
            "FEDICENSUS_TEST_ENGINE names no engine's socket",
        );
    };
    tracing_subscriber::fmt()
        .with_env_filter("launcher=info")
        .with_test_writer()
        .init();
    let bench = std::sync::Arc::new(Bench::new(PathBuf::from(socket)).await);
    let told = tokio::spawn({
        let bench = std::sync::Arc::clone(&bench);
        async move { tell(&bench).await }
    })
    .await;
    bench.clean_up().await;
    told.unwrap();
}

async fn tell(bench: &Bench) {
    streams_and_exit_codes_come_through(bench).await;
    no_check_starts_under_another_profile_than_ours(bench).await;
    no_check_starts_whose_program_can_be_read(bench).await;
    crate::images::no_check_starts_from_an_image_that_was_not_probed(bench).await;
    crate::images::an_image_that_goes_is_a_fault_until_it_comes_again(bench).await;
    the_kernel_refuses_every_call_that_is_not_listed(bench).await;
    memory_pids_and_files_are_limited(bench).await;
    the_egress_directory_is_all_there_is(bench).await;
    no_link_that_a_gateway_plants_leads_out_of_the_container(bench).await;
    no_container_outlives_its_deadline(bench).await;
    a_kill_ends_what_ignores_signals(bench).await;
    a_reader_that_stands_still_holds_nothing(bench).await;
    a_reader_that_goes_takes_its_container_along(bench).await;
    the_engine_was_told_the_whole_specification(bench).await;
    the_reaper_takes_checks_of_its_own_only(bench).await;
    an_engine_that_comes_late_is_found(bench).await;
    what_is_missing_is_a_fault(bench).await;
    a_volume_shows_a_check_its_own_directory(bench).await;
    eight_at_once_all_end_as_they_should(bench).await;
    a_check_leaves_few_lines_in_the_engines_log(bench).await;
    crate::disturbed::a_line_that_breaks_at_every_call_costs_no_place(bench).await;
}

async fn streams_and_exit_codes_come_through(bench: &Bench) {
    let running = bench.launcher("codes", |_| {});
    let hello = running.report("hello").await;
    assert_eq!(hello.stdout, b"out without newline", "{hello:?}");
    assert_eq!(hello.stderr, b"err without newline");
    let end = hello.ended();
    assert_eq!(
        (end.exit_code, end.out_of_memory, end.killed),
        (0, false, None)
    );
    assert_eq!(running.report("seven").await.ended().exit_code, 7);
    let status = running.client.status().await.unwrap();
    println!("{status:?}");
    assert_eq!((status.launches_total, status.trouble), (2, None));
    let environment = running.report("environment").await;
    assert!(
        !environment.text().contains("fedicensus"),
        "{environment:?}"
    );
    bench.until_no_check("codes").await;
    running.shut_down().await;
}

/// The probe's one purpose that settings can't show: `docker inspect` prints the same for a profile
/// that the kernel never received.
// S8
async fn no_check_starts_under_another_profile_than_ours(bench: &Bench) {
    let everything = r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#.to_owned();
    // Ours, with one call too many.
    let ours = SeccompProfile::ours(None).json;
    let with_door = ours.replacen("\"openat\"", "\"openat\",\"bind\"", 1);
    assert_ne!(with_door, ours);
    // Ours, without what threads need.
    let too_narrow = ours.replacen("\"clone\"", "\"getppid\"", 1);
    // Ours, from an earlier version: the tried calls do not distinguish it from today's.
    let mark = format!("\"errnoRet\":{MARK}");
    let former =
        ours.replacen("\"uname\"", "\"sysinfo\"", 1)
            .replacen(&mark, "\"errnoRet\":4000", 1);
    let unmarked = ours.replacen("\"getsid\"", "\"getpgid\"", 1);
    for (name, profile, complaint) in [
        (
            "profile-engine",
            None,
            "which allows socket(AF_INET), socket(AF_INET6)",
        ),
        (
            "profile-none",
            Some(everything),
            "which allows socket(AF_INET), socket(AF_INET6)",
        ),
        ("profile-former", Some(former), "its mark is 4000, not"),
        ("profile-unmarked", Some(unmarked), "its mark is 1, not"),
        ("profile-door", Some(with_door), "which allows bind"),
        (
            "profile-narrow",
            Some(too_narrow),
            "refuses what every check needs: clone (a thread)",
        ),
    ] {
        let profile = profile.map(|json| bench.profile(&format!("{name}-tried"), &json));
        let running = bench.launcher(name, |settings| settings.confinement.seccomp = profile);
        let report = running.report("hello").await;
        assert_eq!(report.fault(), FaultKind::NotConfined, "{name}: {report:?}");
        let fault = report.fault.map(|fault| fault.message).unwrap_or_default();
        println!("{name}: {fault}");
        assert!(fault.contains(complaint), "{name}: {fault}");
        assert_eq!(report.stdout, b"", "{name}: a check has run");
        let status = running.client.status().await.unwrap();
        assert!(status.trouble.is_some(), "{name}: {status:?}");
        running.shut_down().await;
    }
    let running = bench.launcher("profile-ours", |_| {});
    assert_eq!(running.report("hello").await.ended().exit_code, 0);
    running.shut_down().await;
}

/// A process can write its own read-only memory through `/proc/self/mem`, unless its program is
/// unreadable. Otherwise a check's container could run anything.
// S9
async fn no_check_starts_whose_program_can_be_read(bench: &Bench) {
    bench.import(&READABLE_IMAGE, "0755").await;
    let running = bench.launcher("readable", |settings| {
        settings.image = READABLE_IMAGE.clone();
    });
    let report = running.report("hello").await;
    assert_eq!(report.fault(), FaultKind::NotConfined, "{report:?}");
    let fault = report.fault.map(|fault| fault.message).unwrap_or_default();
    println!("readable: {fault}");
    assert!(fault.contains("through /proc/self/mem"), "{fault}");
    assert_eq!(report.stdout, b"", "a check has run");
    running.shut_down().await;
}

/// Tests what the kernel does, not what the profile says. It tries every number except those of
/// calls that are allowed with any arguments.
///
/// The profile is ours with another default action, a trap instead of EPERM: many allowed calls
/// answer EPERM or ENOSYS themselves.
// S8
async fn the_kernel_refuses_every_call_that_is_not_listed(bench: &Bench) {
    if !cfg!(target_arch = "x86_64") {
        kit::skip(
            Need::Engine,
            "the numbers of the calls are known for x86-64 only",
        );
        return;
    }
    let ours = SeccompProfile::ours(None).json;
    let trapping = ours.replacen(
        "\"defaultAction\":\"SCMP_ACT_ERRNO\"",
        "\"defaultAction\":\"SCMP_ACT_TRAP\"",
        1,
    );
    assert_ne!(trapping, ours);
    let profile = bench.profile("calls-trapped", &trapping);
    let running = bench.launcher("calls", |settings| {
        settings.confinement.seccomp = Some(profile);
    });
    let calls = running.report("calls").await;
    assert_eq!(calls.text(), "end\n", "{calls:?}");
    assert_eq!(calls.ended().exit_code, 0);
    // Calls in the conventions of its 32-bit relatives end the process.
    for convention in ["calls32", "callsx32"] {
        let report = running.report(convention).await;
        assert_eq!(report.text(), "", "{report:?}");
        let end = report.ended();
        println!("{convention}: ended with {}", end.exit_code);
        assert!(end.exit_code > 128 && end.killed.is_none(), "{end:?}");
    }
    running.shut_down().await;
}

async fn memory_pids_and_files_are_limited(bench: &Bench) {
    let running = bench.launcher("limits", |_| {});
    let end = running.report("eat").await.ended();
    assert_eq!(
        (end.exit_code, end.out_of_memory, end.killed),
        (137, true, None)
    );
    let threads: u32 = running
        .report("threads")
        .await
        .text()
        .trim()
        .parse()
        .unwrap();
    assert!(threads <= 16, "{threads}");
    let written = running.report("write").await;
    assert!(!written.text().contains("true"), "{}", written.text());
    running.shut_down().await;
}

async fn the_egress_directory_is_all_there_is(bench: &Bench) {
    let running = bench.launcher("egress", |_| {});
    let id = check();
    for other in [id.as_str(), check().as_str()] {
        std::fs::create_dir(running.egress.join(other)).unwrap();
    }
    let path = running.egress.join(id.as_str()).join("https.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&path, everybody).unwrap();
    let answering = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"reached"));
    let report = read(running.launch_as(&id, "egress").await).await;
    assert_eq!(
        report.text(),
        "file https.sock\nsaid reached\n",
        "{report:?}"
    );
    answering.join().unwrap().unwrap();
    running.shut_down().await;
}

/// A compromised gateway owns the directory that contains the checks' egress directories. It can
/// replace one by a link, which a compromised checker would follow.
// S12
async fn no_link_that_a_gateway_plants_leads_out_of_the_container(bench: &Bench) {
    let machine = bench.folder.path().join("machine");
    std::fs::create_dir(&machine).unwrap();
    std::fs::write(machine.join("marker"), b"of the machine").unwrap();
    let running = bench.launcher("planted", |_| {});
    plant(bench, &running, &running.egress, &machine).await;
    running.shut_down().await;
}

/// Puts links to the machine's root and to one of its directories below `egress`, and looks at them
/// from inside.
async fn plant(bench: &Bench, running: &Running, egress: &Path, machine: &Path) {
    let entered_only = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(egress, entered_only).unwrap();
    for target in [Path::new("/"), machine] {
        let id = check();
        std::os::unix::fs::symlink(target, egress.join(id.as_str())).unwrap();
        let report = read(running.launch_as(&id, "planted").await).await;
        assert_eq!(
            report.text(),
            "marker false, foreign false, listed false\n",
            "{}: a link to {}: {report:?}",
            bench.kind,
            target.display()
        );
    }
}

async fn no_container_outlives_its_deadline(bench: &Bench) {
    let mut launch_max = Duration::ZERO;
    let running = bench.launcher("deadline", |settings| {
        settings.deadline = Duration::from_secs(2);
        launch_max = settings.launch_max();
    });
    for behaviour in ["spin", "stay"] {
        let end = running.report(behaviour).await.ended();
        assert_eq!((end.exit_code, end.killed), (137, Some(Killed::Deadline)));
        assert!(!end.out_of_memory);
        println!("{behaviour}: {} ms for a deadline of 2000", end.millis);
        assert!(end.millis >= 2000, "{end:?}");
        // The product's own bound. A reader that waited longer would have failed above.
        assert!(Duration::from_millis(end.millis) <= launch_max, "{end:?}");
    }
    running.shut_down().await;
}

async fn a_kill_ends_what_ignores_signals(bench: &Bench) {
    let running = bench.launcher("kill", |_| {});
    let (id, container) = running.launch("stay").await;
    while !running.client.list().await.unwrap().contains(&id) {
        tokio::time::sleep(patient(Duration::from_millis(50))).await;
    }
    assert!(running.client.kill(&id).await.unwrap());
    let end = read(container).await.ended();
    assert_eq!((end.exit_code, end.killed), (137, Some(Killed::Asked)));
    running.shut_down().await;
}

async fn a_reader_that_stands_still_holds_nothing(bench: &Bench) {
    let running = bench.launcher("still", |settings| {
        settings.deadline = Duration::from_secs(2);
        settings.call_timeout = Duration::from_secs(4);
    });
    let (_id, mut container) = running.launch("flood").await;
    assert!(matches!(container.next().await.unwrap(), Frame::Stderr(_)));
    // The deadline ends it while nothing reads.
    bench.until_no_check("still").await;
    let report = read(container).await;
    println!(
        "flood: {} bytes held back, {:?}",
        report.stderr.len(),
        report.end
    );
    assert_eq!(report.ended().killed, Some(Killed::Deadline));
    assert!(report.stderr.len() < 1 << 20, "back-pressure, not memory");
    let (_id, mut container) = running.launch("flood").await;
    // It runs. Without this line, the container might not exist yet.
    assert!(matches!(container.next().await.unwrap(), Frame::Stderr(_)));
    bench.until_no_check("still").await;
    drop(container);
    running.shut_down().await;
}

async fn a_reader_that_goes_takes_its_container_along(bench: &Bench) {
    let running = bench.launcher("gone", |_| {});
    for behaviour in ["flood", "stay"] {
        let (_id, container) = running.launch(behaviour).await;
        while bench
            .containers(&[&of_installation("gone"), "org.fedicensus.host"])
            .await
            .is_empty()
        {
            tokio::time::sleep(patient(Duration::from_millis(50))).await;
        }
        let before = Instant::now();
        drop(container);
        bench.until_no_check("gone").await;
        println!("{behaviour}: gone {:?} after its reader", before.elapsed());
    }
    running.shut_down().await;
}

async fn the_engine_was_told_the_whole_specification(bench: &Bench) {
    let running = bench.launcher("told", |_| {});
    let (id, container) = running.launch("stay").await;
    let label = format!("org.fedicensus.check={id}");
    // Docker lists a container a moment before it can be inspected.
    let told = loop {
        if let Some(found) = bench.containers(&[&label]).await.pop()
            && let Ok(told) = bench
                .docker
                .inspect_container(&found, None::<InspectContainerOptions>)
                .await
        {
            break told;
        }
        tokio::time::sleep(patient(Duration::from_millis(50))).await;
    };
    let config = told.config.unwrap();
    assert_eq!(config.user.as_deref(), Some("64321:64321"));
    let egress = format!("/egress/{id}");
    assert_eq!(
        config.cmd.unwrap(),
        ["--egress", &egress, "--", "stay.victim.example"]
    );
    assert_eq!((config.tty, config.open_stdin), (Some(false), Some(false)));
    assert_eq!(
        config.labels.unwrap()["org.fedicensus.host"],
        "stay.victim.example"
    );
    let host = told.host_config.unwrap();
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    assert_eq!(host.readonly_rootfs, Some(true));
    assert_eq!(host.cap_drop.as_ref().map(Vec::is_empty), Some(false));
    assert_eq!(host.cap_add.clone().unwrap_or_default(), [""; 0]);
    has_our_security_options(bench, host.security_opt.clone().unwrap());
    assert_eq!(
        (host.memory, host.memory_swap),
        (Some(64 << 20), Some(64 << 20))
    );
    assert_eq!(
        (host.pids_limit, host.nano_cpus),
        (Some(16), Some(500_000_000))
    );
    assert_eq!(host.ipc_mode.as_deref(), Some("none"));
    assert_eq!(
        host.log_config.as_ref().unwrap().typ.as_deref(),
        Some("none")
    );
    assert_eq!(
        (host.auto_remove, host.privileged),
        (Some(false), Some(false))
    );
    told_of_mounts(bench.kind, &host, &told.mounts.unwrap());
    drop(container);
    running.shut_down().await;
}

fn has_our_security_options(bench: &Bench, mut options: Vec<String>) {
    let level = format!("label=level:{SELINUX_LEVEL}");
    if bench.kind == EngineKind::Podman {
        // Podman may leave a label out on a machine without SELinux.
        options.retain(|option| *option != level);
    }
    assert_eq!(
        options,
        match bench.kind {
            EngineKind::Docker => vec![
                "no-new-privileges".to_owned(),
                format!("seccomp={}", SeccompProfile::ours(None).json),
                level,
            ],
            EngineKind::Podman => vec![
                "no-new-privileges".to_owned(),
                format!(
                    "seccomp={}",
                    bench.folder.path().join("told.json").display()
                ),
            ],
        }
    );
}

fn told_of_mounts(kind: EngineKind, host: &HostConfig, mounts: &[MountPoint]) {
    let mut covered: Vec<_> = host.tmpfs.iter().flatten().map(|(path, _)| path).collect();
    covered.sort();
    let further: &[&str] = match kind {
        EngineKind::Docker => &[],
        EngineKind::Podman => &["/etc/hosts"],
    };
    let of_both = ["/dev/mqueue", "/dev/shm"].iter().chain(further);
    let expected: Vec<_> = of_both.chain(&["/run", "/tmp", "/var/tmp"]).collect();
    assert_eq!(covered, expected);
    let egress: Vec<_> = mounts
        .iter()
        .filter(|mount| mount.destination.as_deref() == Some("/egress"))
        .collect();
    assert_eq!(egress.len(), 1);
    assert_eq!(egress[0].rw, Some(false));
}

/// Lines of a check in the engine's log: a hundred thousand checks must not drown what else a
/// machine logs. Docker 20.10 writes nine, 28 five.
const LOG_LINES_MAX: usize = 10;

async fn a_check_leaves_few_lines_in_the_engines_log(bench: &Bench) {
    let engine = UnixStream::connect(&bench.socket).await.unwrap();
    let pid = engine.peer_cred().unwrap().pid().unwrap_or_default();
    let log = std::fs::read_link(format!("/proc/{pid}/fd/2")).unwrap_or_default();
    if !log.is_file() {
        return kit::skip(Need::Privileges, "the engine's log is no file");
    }
    let running = bench.launcher("logged", |_| {});
    assert_eq!(running.report("hello").await.ended().exit_code, 0);
    bench.until_no_check("logged").await;
    let before = std::fs::read(&log).unwrap().len();
    for _ in 0..10 {
        assert_eq!(running.report("hello").await.ended().exit_code, 0);
    }
    bench.until_no_check("logged").await;
    let new = String::from_utf8(std::fs::read(&log).unwrap().split_off(before)).unwrap();
    println!(
        "{} lines of ten checks in {}",
        new.lines().count(),
        log.display()
    );
    assert!(new.lines().count() <= 10 * LOG_LINES_MAX, "{new}");
    assert!(!new.contains("deprecated"), "{new}");
    running.shut_down().await;
}

async fn the_reaper_takes_checks_of_its_own_only(bench: &Bench) {
    let id = check();
    bench
        .leave_behind(&[
            ("org.fedicensus", &installation("reap")),
            ("org.fedicensus.check", id.as_str()),
        ])
        .await;
    bench
        .leave_behind(&[
            ("org.fedicensus", &installation("reap")),
            ("org.fedicensus.service", "gateway"),
        ])
        .await;
    bench
        .leave_behind(&[
            ("org.fedicensus", &installation("other")),
            ("org.fedicensus.check", id.as_str()),
        ])
        .await;
    let running = bench.launcher("reap", |_| {});
    assert_eq!(running.report("hello").await.ended().exit_code, 0);
    assert_eq!(running.client.status().await.unwrap().reaped_total, 1);
    bench.until_no_check("reap").await;
    let service = [&of_installation("reap"), "org.fedicensus.service"];
    assert_eq!(bench.containers(&service).await.len(), 1, "it stays");
    assert_eq!(
        bench.containers(&[&of_installation("other")]).await.len(),
        1
    );
    running.shut_down().await;
}

async fn an_engine_that_comes_late_is_found(bench: &Bench) {
    let socket = bench.folder.path().join("late.sock");
    let egress = bench.folder.path().join("late");
    let running = bench.launcher_at(&socket, bench.settings("late"), egress);
    assert_eq!(running.report("hello").await.fault(), FaultKind::EngineDown);
    std::os::unix::fs::symlink(&bench.socket, &socket).unwrap();
    let start = Instant::now();
    while running.report("hello").await.fault.is_some() {
        assert!(start.elapsed() < patient(PATIENCE));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!("found {:?} after it came", start.elapsed());
    running.shut_down().await;
}

async fn what_is_missing_is_a_fault(bench: &Bench) {
    let running = bench.launcher("image", |settings| {
        "localhost/fedicensus-test-nothing:latest".clone_into(&mut settings.image);
    });
    assert_eq!(
        running.report("hello").await.fault(),
        FaultKind::ImageMissing
    );
    running.shut_down().await;
    let running = bench.launcher("directory", |_| {});
    let report = read(running.launch_as(&check(), "egress").await).await;
    assert_ne!(report.ended().exit_code, 0, "{report:?}");
    assert_eq!(report.text(), "", "{report:?}");
    bench.until_no_check("directory").await;
    running.shut_down().await;
    let running = bench.launcher("volume", |settings| {
        settings.egress = EgressSource::Volume("fedicensus-test-nothing".to_owned());
    });
    // No check of any kind can run without it.
    assert_eq!(running.report("hello").await.fault(), FaultKind::EngineDown);
    running.shut_down().await;
}

async fn a_volume_shows_a_check_its_own_directory(bench: &Bench) {
    let request = VolumeCreateRequest {
        name: Some(VOLUME.clone()),
        labels: Some([("org.fedicensus".to_owned(), "test".to_owned())].into()),
        ..VolumeCreateRequest::default()
    };
    let volume = bench.docker.create_volume(request).await.unwrap();
    let id = check();
    let directory = PathBuf::from(&volume.mountpoint).join(id.as_str());
    if std::fs::create_dir(&directory).is_ok() {
        std::fs::write(directory.join("order.json"), b"{}").unwrap();
        let machine = bench.folder.path().join("machine");
        let running = bench.launcher("volume", |settings| {
            settings.egress = EgressSource::Volume(VOLUME.clone());
        });
        let report = read(running.launch_as(&id, "egress").await).await;
        assert_eq!(report.text(), "file order.json\n", "{report:?}");
        plant(bench, &running, Path::new(&volume.mountpoint), &machine).await;
        running.shut_down().await;
        bench.until_gone(&[&of_installation("volume")]).await;
    } else {
        kit::skip(
            Need::Privileges,
            "the engine's volume is not for us to write",
        );
    }
    bench
        .docker
        .remove_volume(&VOLUME, None::<RemoveVolumeOptions>)
        .await
        .unwrap();
}

async fn eight_at_once_all_end_as_they_should(bench: &Bench) {
    let running = bench.launcher("many", |_| {});
    let start = Instant::now();
    for _ in 0..5 {
        let all = (0..8).map(|_| running.report("seven"));
        for report in futures_util::future::join_all(all).await {
            assert_eq!(report.ended().exit_code, 7, "{report:?}");
        }
    }
    println!("40 containers, 8 at once: {:?}", start.elapsed());
    running.shut_down().await;
    bench.until_gone(&[&of_installation("many")]).await;
}
