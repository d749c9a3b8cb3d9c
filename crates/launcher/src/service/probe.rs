//! Are the limits in force? A container examines its own limits and reports them (invariant I1).
//!
//! [`judge`] is a pure function. It takes the report of the checker image's `--probe` and returns
//! the missing limits: those that are required, without which no check may run, and those that only
//! cause a warning.

use protocol::ProbeReport;
use protocol::probe::CALLS_TRIED;

use crate::container::confinement::Confinement;
use crate::container::seccomp::MARK;
use crate::engine::{EngineKind, Info};

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Judgement {
    /// Required limits that are not in force, each with what the probe found.
    pub(crate) missing: Vec<String>,
    /// Missing limits that are not required.
    pub(crate) warnings: Vec<String>,
}

/// Interfaces that an isolated network namespace may have. Besides `lo`, the kernel creates them in
/// every new namespace once their modules are loaded. They have no address and no route, and no
/// process inside may configure them.
const INTERFACES_OF_NONE: [&str; 11] = [
    "lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0",
    "ip6gre0", "teql0",
];

/// Advice on a kernel that starts without the control group for memory.
const NO_MEMORY_GROUP: &str = "this machine's kernel runs without the control group for memory: add `cgroup_enable=memory` to its command line \
(on a Raspberry Pi, to the one line of /boot/firmware/cmdline.txt) and reboot; `docker info` must then print no warning about memory";

/// Advice on an engine of root's that could limit, as far as it says, and did not.
const ROOTS_ENGINE: &str = "see what `docker info` warns about";

/// Advice on limits that rootless engines lack by default.
const DELEGATION: &str = "a rootless engine needs them delegated: put `[Service]` and `Delegate=cpu memory pids` into \
/etc/systemd/system/user@.service.d/delegate.conf, then `systemctl daemon-reload`, and `systemctl restart user@UID.service` with the id of the engine's user, which ends all that this user runs, or reboot";

/// Another reason why a container of Podman's may lack limits.
const GROUPS_OF_PODMAN: &str =
    "; Podman must make control groups: no `cgroups=\"disabled\"` in containers.conf";

/// Advice for a Docker that does not apply our profile.
const SECCOMP_DOCKER: &str = "Docker 20.10.10 or newer, on a kernel with seccomp, applies the profile that the launcher sends: `docker info` must \
list seccomp among its security options";

/// Advice for Podman, which takes a profile only as a file.
const SECCOMP_PODMAN: &str = "Podman takes the profile only from a file on its own machine: write it there with \
`fedicensus seccomp-profile > FILE`, again after each update, and set FEDICENSUS_SECCOMP_PATH to the file's whole path";

/// Advice on an image that was not built like ours.
const PROGRAM: &str = "in the checker's image it must be root's, executable and not readable (mode 0111), as `Containerfile.checker` builds it: \
build the image again, and keep the modes when you copy it";

/// Advice for an engine that writes its machine's names and addresses into every container.
const NAMES: &str = "with Podman, put `[containers]`, `base_hosts_file=\"none\"` and `host_containers_internal_ip=\"none\"` into \
~/.config/containers/containers.conf";

/// Tolerance for CPU shares, which the kernel keeps as two whole numbers of microseconds.
const CPU_TOLERANCE: f64 = 0.01;

/// Compares what a probe found with the configured limits.
pub(crate) fn judge(
    report: &ProbeReport,
    asked: &Confinement,
    kind: EngineKind,
    info: &Info,
) -> Judgement {
    let mut found = Judgement::default();
    control_groups(
        report,
        asked,
        &control_groups_advice(kind, info),
        &mut found,
    );
    privileges(report, asked, &mut found);
    surroundings(report, &mut found);
    if !report.names_told.is_empty() {
        found.warnings.push(format!(
            "names: checks can read {} in /etc/hosts; {NAMES}",
            report.names_told.join(", ")
        ));
    }
    if report.nofile > u64::from(asked.nofile) {
        let why = match kind {
            EngineKind::Docker => "",
            EngineKind::Podman => " (Podman ignores this one up to 5.4)",
        };
        found.warnings.push(format!(
            "open files: {} are allowed instead of {}{why}; the checker lowers them itself",
            report.nofile, asked.nofile
        ));
    }
    found
}

/// Advice for an operator whose engine lacks required limits, and warned so when it created the
/// container.
pub(crate) fn advice(
    missing: &[String],
    warnings: &[String],
    kind: EngineKind,
    info: &Info,
) -> String {
    let begins = |words: &[&str]| {
        missing
            .iter()
            .any(|limit| words.iter().any(|word| limit.starts_with(word)))
    };
    let mut advice = format!("limits are not in force: {}", missing.join("; "));
    if !warnings.is_empty() {
        advice.push_str("; the engine says: ");
        advice.push_str(warnings.join(" ").trim_end_matches('.'));
    }
    if begins(&["memory", "pids"]) {
        advice.push_str(". Memory and pids: ");
        advice.push_str(&control_groups_advice(kind, info));
    }
    if begins(&["seccomp"]) {
        advice.push_str(". Seccomp: ");
        advice.push_str(match kind {
            EngineKind::Docker => SECCOMP_DOCKER,
            EngineKind::Podman => SECCOMP_PODMAN,
        });
    }
    if begins(&["program"]) {
        advice.push_str(". Program: ");
        advice.push_str(PROGRAM);
    }
    advice
}

/// Advice for an operator whose engine does not enforce control group limits, or refuses to.
pub(crate) fn control_groups_advice(kind: EngineKind, info: &Info) -> String {
    match kind {
        EngineKind::Podman => format!("{DELEGATION}{GROUPS_OF_PODMAN}"),
        EngineKind::Docker if info.is_rootless => DELEGATION.to_owned(),
        EngineKind::Docker if info.lacks_memory_group => NO_MEMORY_GROUP.to_owned(),
        EngineKind::Docker => ROOTS_ENGINE.to_owned(),
    }
}

fn control_groups(report: &ProbeReport, asked: &Confinement, advice: &str, found: &mut Judgement) {
    require(
        at_most(report.memory_max_bytes, u64::from(asked.memory_bytes)),
        format!(
            "memory: {:?} instead of {} bytes",
            report.memory_max_bytes, asked.memory_bytes
        ),
        found,
    );
    require(
        at_most(report.pids_max, u64::from(asked.pids_max)),
        format!("pids: {:?} instead of {}", report.pids_max, asked.pids_max),
        found,
    );
    match report.swap_max_bytes {
        Some(0) => {}
        Some(bytes) => found
            .missing
            .push(format!("memory: {bytes} bytes of swap in addition")),
        // Kernels without swap accounting can't limit swap, and do not report that.
        None => found
            .warnings
            .push("swap: it can't be limited here; turn it off on this machine".to_owned()),
    }
    let cpu_asked = f64::from(asked.cpu_milli) / 1000.0;
    if report
        .cpu_max
        .is_none_or(|cpus| cpus > cpu_asked + CPU_TOLERANCE)
    {
        found.warnings.push(format!(
            "cpu: {:?} instead of {cpu_asked}: checks may take all CPUs; {advice}",
            report.cpu_max
        ));
    }
}

fn privileges(report: &ProbeReport, asked: &Confinement, found: &mut Judgement) {
    require(
        (report.uid, report.gid) == (asked.user, asked.group),
        format!(
            "user: {}:{} instead of {}:{}",
            report.uid, report.gid, asked.user, asked.group
        ),
        found,
    );
    require(
        no_bits(&report.capabilities) && no_bits(&report.bounding),
        format!(
            "capabilities: {} and {} in the bounding set instead of none",
            report.capabilities, report.bounding
        ),
        found,
    );
    require(
        report.no_new_privileges,
        "no-new-privileges is not set".to_owned(),
        found,
    );
    require(
        report.seccomp == 2,
        format!("seccomp: mode {} instead of 2, a filter", report.seccomp),
        found,
    );
    system_calls(report, found);
}

/// Checks the system call filter. The engine's own profile is a filter too, and so is our profile
/// of an earlier version. Ours is recognised by the calls that it refuses and by its mark.
fn system_calls(report: &ProbeReport, found: &mut Judgement) {
    let allowed: Vec<_> = CALLS_TRIED
        .into_iter()
        .filter(|call| !report.calls_refused.iter().any(|refused| refused == call))
        .collect();
    require(
        allowed.is_empty(),
        format!(
            "seccomp: a profile other than ours, which allows {}",
            allowed.join(", ")
        ),
        found,
    );
    require(
        report.calls_missing.is_empty(),
        format!(
            "seccomp: a profile that refuses what every check needs: {}",
            report.calls_missing.join(", ")
        ),
        found,
    );
    if allowed.is_empty() {
        // Without this mark the profile is a different one.
        require(
            report.profile_mark == Some(MARK),
            format!(
                "seccomp: not this version's profile: its mark is {}, not {MARK}",
                report
                    .profile_mark
                    .map_or("missing".to_owned(), |mark| mark.to_string())
            ),
            found,
        );
    }
}

fn surroundings(report: &ProbeReport, found: &mut Judgement) {
    require(
        report.read_only_root,
        "the root is not read-only".to_owned(),
        found,
    );
    let (memory, places): (Vec<_>, Vec<_>) = report
        .writable
        .iter()
        .map(String::as_str)
        .partition(|path| path.starts_with("/proc/"));
    require(
        places.is_empty(),
        format!("files can be written in {}", places.join(", ")),
        found,
    );
    require(
        memory.is_empty(),
        format!(
            "program: a check could change its own text through {}",
            memory.join(", ")
        ),
        found,
    );
    let interfaces: Vec<_> = report
        .interfaces
        .iter()
        .map(String::as_str)
        .filter(|name| !INTERFACES_OF_NONE.contains(name))
        .collect();
    require(
        interfaces.is_empty() && report.routes == 0 && report.addresses_outside_loopback == 0,
        format!(
            "network: interfaces {interfaces:?}, {} routes, {} addresses instead of none",
            report.routes, report.addresses_outside_loopback
        ),
        found,
    );
    require(
        report.egress_files.is_empty(),
        format!(
            "{} files in the egress directory of a container without one",
            report.egress_files.len()
        ),
        found,
    );
}

fn require(in_force: bool, otherwise: String, found: &mut Judgement) {
    if !in_force {
        found.missing.push(otherwise);
    }
}

fn at_most(found: Option<u64>, asked: u64) -> bool {
    found.is_some_and(|found| found <= asked)
}

fn no_bits(hexadecimal: &str) -> bool {
    !hexadecimal.is_empty() && hexadecimal.bytes().all(|digit| digit == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> ProbeReport {
        ProbeReport {
            uid: 64321,
            gid: 64321,
            capabilities: "0000000000000000".to_owned(),
            bounding: "0000000000000000".to_owned(),
            no_new_privileges: true,
            seccomp: 2,
            calls_refused: CALLS_TRIED.map(str::to_owned).to_vec(),
            calls_missing: Vec::new(),
            profile_mark: Some(MARK),
            memory_max_bytes: Some(64 << 20),
            swap_max_bytes: Some(0),
            pids_max: Some(16),
            cpu_max: Some(0.5),
            nofile: 64,
            read_only_root: true,
            writable: Vec::new(),
            interfaces: vec!["lo".to_owned(), "sit0".to_owned()],
            routes: 0,
            addresses_outside_loopback: 0,
            egress_files: Vec::new(),
            names_told: Vec::new(),
        }
    }

    /// Expects this number of missing limits, and warnings that begin with these words.
    fn check(change: impl FnOnce(&mut ProbeReport), missing: &[&str], warnings: &[&str]) {
        let mut report = sound();
        change(&mut report);
        let found = judge(
            &report,
            &Confinement::default(),
            EngineKind::Docker,
            &Info::default(),
        );
        let starts = |list: &[String], expect: &[&str]| {
            list.len() == expect.len()
                && list
                    .iter()
                    .zip(expect)
                    .all(|(is, should)| is.starts_with(should))
        };
        assert!(
            starts(&found.missing, missing) && starts(&found.warnings, warnings),
            "{report:?} is judged {found:?}, not {missing:?} {warnings:?}"
        );
    }

    #[test]
    fn a_sound_container_passes() {
        check(|_| {}, &[], &[]);
    }

    #[test]
    fn every_required_limit_is_required() {
        check(|r| r.memory_max_bytes = None, &["memory"], &[]);
        check(
            |r| r.memory_max_bytes = Some((64 << 20) + 1),
            &["memory"],
            &[],
        );
        check(|r| r.swap_max_bytes = Some(1), &["memory"], &[]);
        check(|r| r.pids_max = None, &["pids"], &[]);
        check(|r| r.pids_max = Some(17), &["pids"], &[]);
        check(|r| r.uid = 0, &["user"], &[]);
        check(|r| r.gid = 0, &["user"], &[]);
        check(
            |r| r.capabilities = "0000000000000001".to_owned(),
            &["capabilities"],
            &[],
        );
        check(
            |r| r.bounding = "00000000a80425fb".to_owned(),
            &["capabilities"],
            &[],
        );
        check(|r| r.bounding.clear(), &["capabilities"], &[]);
        check(|r| r.no_new_privileges = false, &["no-new-privileges"], &[]);
        check(|r| r.seccomp = 0, &["seccomp"], &[]);
        for call in CALLS_TRIED {
            let allow = |r: &mut ProbeReport| r.calls_refused.retain(|refused| refused != call);
            let expect = format!("seccomp: a profile other than ours, which allows {call}");
            check(allow, &[&expect], &[]);
        }
        check(
            |r| r.calls_missing.push("clone (a thread)".to_owned()),
            &["seccomp: a profile that refuses what every check needs: clone (a thread)"],
            &[],
        );
        for other in [None, Some(1), Some(MARK - 1), Some(MARK + 1)] {
            check(
                |r| r.profile_mark = other,
                &["seccomp: not this version's profile"],
                &[],
            );
        }
        check(|r| r.read_only_root = false, &["the root"], &[]);
        check(
            |r| r.writable = vec!["/tmp".to_owned()],
            &["files can be written in /tmp"],
            &[],
        );
        check(
            |r| r.writable = vec!["/proc/self/mem".to_owned()],
            &["program: a check could change its own text through /proc/self/mem"],
            &[],
        );
        check(|r| r.interfaces.push("eth0".to_owned()), &["network"], &[]);
        check(|r| r.routes = 1, &["network"], &[]);
        check(|r| r.addresses_outside_loopback = 1, &["network"], &[]);
        check(
            |r| r.egress_files.push("https.sock".to_owned()),
            &["1 files"],
            &[],
        );
    }

    #[test]
    fn optional_limits_are_said() {
        check(|r| r.cpu_max = None, &[], &["cpu"]);
        check(|r| r.cpu_max = Some(2.0), &[], &["cpu"]);
        check(|r| r.nofile = 524_288, &[], &["open files"]);
        check(|r| r.swap_max_bytes = None, &[], &["swap"]);
        check(|r| r.names_told.push("machine".to_owned()), &[], &["names"]);
    }

    /// The advice on this limit of an engine whose kernel can limit everything.
    fn of(limit: &str, kind: EngineKind, is_rootless: bool) -> String {
        let info = Info {
            is_rootless,
            ..Info::default()
        };
        advice(&[limit.to_owned()], &[], kind, &info)
    }

    #[test]
    fn missing_control_groups_come_with_the_way_out_of_their_cause() {
        let podman = |limit| of(limit, EngineKind::Podman, true);
        assert!(podman("memory: None").contains("Delegate=cpu memory pids"));
        // A user with lingering enabled is never logged out, and keeps the delegation that systemd
        // gave at boot.
        assert!(podman("memory: None").contains("restart user@UID.service"));
        assert!(podman("pids: None").contains("containers.conf"));
        assert!(!podman("seccomp: mode 0").contains("Delegate"));
        let rootless = of("pids: None", EngineKind::Docker, true);
        assert!(rootless.contains("Delegate="), "{rootless}");
        assert!(!rootless.contains("containers.conf"), "{rootless}");
        let rootful = of("pids: None", EngineKind::Docker, false);
        assert!(!rootful.contains("Delegate="), "{rootful}");
    }

    /// As Docker tells on a Raspberry Pi.
    #[test]
    fn a_kernel_without_the_memory_group_is_named() {
        let without_memory = Info {
            lacks_memory_group: true,
            ..Info::default()
        };
        let warning = "Your kernel does not support memory limit capabilities.".to_owned();
        let missing = ["memory: None".to_owned()];
        let advice = advice(&missing, &[warning], EngineKind::Docker, &without_memory);
        for expect in [
            "the engine says: Your kernel does not support memory limit",
            "cgroup_enable=memory",
            "/boot/firmware/cmdline.txt",
        ] {
            assert!(advice.contains(expect), "{advice}");
        }
        assert!(!advice.contains("Delegate"), "{advice}");
    }

    #[test]
    fn a_program_that_can_be_read_comes_with_the_way_out() {
        let advice = of("program: x", EngineKind::Docker, false);
        assert!(advice.contains("(mode 0111)"), "{advice}");
        assert!(!advice.contains("Seccomp:"), "{advice}");
    }

    #[test]
    fn a_missing_profile_comes_with_the_way_out_for_its_engine() {
        let podman = of("seccomp: another profile", EngineKind::Podman, true);
        assert!(
            podman.contains("fedicensus seccomp-profile > FILE"),
            "{podman}"
        );
        assert!(podman.contains("FEDICENSUS_SECCOMP_PATH"), "{podman}");
        let docker = of("seccomp: mode 0", EngineKind::Docker, false);
        assert!(docker.contains("20.10.10"), "{docker}");
        assert!(!docker.contains("SECCOMP_PATH"), "{docker}");
        assert!(!of("pids: None", EngineKind::Podman, true).contains("Seccomp:"));
    }
}
