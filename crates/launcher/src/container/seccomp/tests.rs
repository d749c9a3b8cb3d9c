use super::*;
use std::collections::BTreeSet;

/// The first words of a group's reason: what needs the calls.
const NEEDED_BY: [&str; 4] = ["checker", "probe", "runtime", "rare"];

/// Calls that must be refused under any condition: access to other processes, to rare parts of the
/// kernel, to other namespaces, or to a program to execute.
const NEVER: &str = "accept accept4 acct add_key bind bpf chdir chmod chown chroot clock_settime creat delete_module execveat fanotify_init \
fchmod fchmodat fchown fchownat finit_module fork fsconfig fsmount fsopen fspick ftruncate get_mempolicy init_module inotify_add_watch \
inotify_init inotify_init1 io_destroy io_setup io_submit io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load \
kexec_load keyctl kill landlock_create_ruleset link linkat listen mbind memfd_create memfd_secret migrate_pages mkdir mkdirat mknod mknodat \
modify_ldt mount mount_setattr move_mount move_pages mq_open msgget name_to_handle_at open_by_handle_at open_tree perf_event_open personality \
pidfd_getfd pidfd_open pidfd_send_signal pivot_root pkey_mprotect process_madvise process_vm_readv process_vm_writev ptrace quotactl reboot \
remap_file_pages rename renameat renameat2 request_key rmdir rt_sigqueueinfo rt_tgsigqueueinfo seccomp semget sendmmsg sendmsg set_mempolicy setdomainname \
setgid setgroups sethostname setns setpgid setresgid setresuid setsid setuid shmat shmget signalfd signalfd4 socketcall swapoff swapon symlink \
symlinkat sysfs syslog timer_create tkill truncate umount2 unlink unlinkat unshare userfaultfd uselib vfork vhangup vmsplice wait4 waitid";

/// Calls that are allowed only with certain arguments: the conditions of each group that lists the
/// call.
const GUARDED: [(&str, &str); 15] = [
    ("socket", "[[0 = 1, 1 & 15 = 1]]"),
    ("socketpair", "[[0 = 1, 1 & 15 = 1]]"),
    ("getsockopt", "[[1 = 1, 2 = 4]]"),
    ("recvfrom", "[[3 = 0]]"),
    ("sendto", "[[3 = 16384]]"),
    // All bits except FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME and, in the first condition, the
    // lowest.
    ("futex", "[[1 & 4294966910 = 0], [1 & 4294966911 = 9]]"),
    // ARCH_SET_FS.
    ("arch_prctl", "[[0 = 4098]]"),
    // All bits except O_CLOEXEC and O_NONBLOCK.
    ("pipe2", "[[1 & 4294440959 = 0]]"),
    ("fcntl", "[[1 = 1030], [1 <= 4]]"),
    ("prlimit64", "[[0 = 0]]"),
    ("prctl", "[[0 = 15]]"),
    ("tgkill", "[[0 = 1]]"),
    ("mmap", "[[2 & 4 = 0]]"),
    ("mprotect", "[[2 & 4 = 0]]"),
    // CLONE_THREAD out of CLONE_THREAD, all of CLONE_NEW…, CLONE_PTRACE and CLONE_VFORK.
    ("clone", "[[0 & 2114150400 = 65536]]"),
];

fn condition(argument: &Value) -> String {
    let (index, value) = (&argument["index"], &argument["value"]);
    match argument["op"].as_str().unwrap() {
        "SCMP_CMP_EQ" => format!("{index} = {value}"),
        "SCMP_CMP_LE" => format!("{index} <= {value}"),
        "SCMP_CMP_MASKED_EQ" => format!("{index} & {value} = {}", argument["valueTwo"]),
        other => panic!("{other}"),
    }
}

fn conditions(group: &Value) -> String {
    let arguments = group["args"].as_array().unwrap();
    let all: Vec<_> = arguments.iter().map(condition).collect();
    format!("[{}]", all.join(", "))
}

fn profile(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn groups(profile: &Value) -> &Vec<Value> {
    profile["syscalls"].as_array().unwrap()
}

fn names(group: &Value) -> impl Iterator<Item = &str> {
    let names = group["names"].as_array().unwrap();
    names.iter().map(|name| name.as_str().unwrap())
}

#[test]
fn what_is_not_listed_is_refused_and_no_other_convention_of_calls_is_a_door() {
    let profile = profile(PROFILE);
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    for architecture in profile["archMap"].as_array().unwrap() {
        assert_eq!(architecture["subArchitectures"], Value::Array(Vec::new()));
    }
    let keys: Vec<_> = profile.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["archMap", "defaultAction", "syscalls"]);
}

#[test]
fn every_group_has_a_reason_and_every_call_one_group_unless_its_arguments_tell() {
    let profile = profile(PROFILE);
    let mut seen = BTreeSet::new();
    for group in groups(&profile) {
        let reason = group["comment"].as_str().unwrap();
        let (who, why) = reason.split_once(": ").unwrap();
        assert!(NEEDED_BY.contains(&who) && !why.is_empty(), "{reason}");
        for name in names(group) {
            let is_new = seen.insert(name.to_owned());
            // Otherwise a condition would have no effect.
            let by_arguments = ["fcntl", "futex"].contains(&name);
            assert!(is_new || by_arguments, "{name} is listed twice");
        }
    }
}

#[test]
fn what_no_check_may_ever_call_is_not_listed() {
    let profile = profile(PROFILE);
    for group in groups(&profile) {
        for name in names(group) {
            let never = NEVER.split_whitespace().any(|never| never == name);
            assert!(!never, "{name} must stay refused");
        }
    }
}

#[test] // S8
fn risky_calls_are_guarded_by_their_argument() {
    let profile = profile(PROFILE);
    assert_eq!(0x1_0000 | 0x7e02_0000 | 0x2000 | 0x4000, 2_114_150_400);
    for (call, expect) in GUARDED {
        let listing = groups(&profile).iter();
        let listing = listing.filter(|group| names(group).any(|name| name == call));
        let found: Vec<_> = listing.map(conditions).collect();
        assert_eq!(format!("[{}]", found.join(", ")), expect, "{call}");
    }
    let guarded = groups(&profile)
        .iter()
        .filter(|group| group["args"].is_array());
    for name in guarded.flat_map(names) {
        assert!(GUARDED.iter().any(|(call, _)| *call == name), "{name}");
    }
    // A filter can't see flags in memory, so the call is reported as missing.
    let clone3 = groups(&profile)
        .iter()
        .find(|group| names(group).any(|name| name == "clone3"));
    assert_eq!(clone3.unwrap()["action"], "SCMP_ACT_ERRNO");
    assert_eq!(clone3.unwrap()["errnoRet"], 38);
}

/// FNV-1a over the profile as Docker receives it, without the mark.
fn checksum(profile: &Value) -> u64 {
    let mut rest = profile.clone();
    for group in rest["syscalls"].as_array_mut().unwrap() {
        let group = group.as_object_mut().unwrap();
        group.remove("comment");
        if group["names"][0] == "getsid" {
            group.remove("errnoRet").unwrap();
        }
    }
    let text = rest.to_string();
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Error numbers end at 4095, and the kernel itself uses none over 1000.
fn right_mark(profile: &Value) -> u64 {
    (checksum(profile) % 3000).saturating_add(1000)
}

#[test] // S8
fn the_profile_carries_the_mark_of_its_content() {
    let profile = profile(PROFILE);
    let right = right_mark(&profile);
    let marked: Vec<_> = groups(&profile)
        .iter()
        .filter(|group| names(group).any(|name| name == "getsid"))
        .map(|group| (group["action"].as_str().unwrap(), &group["errnoRet"]))
        .collect();
    assert!(
        marked == [("SCMP_ACT_ERRNO", &Value::from(right))] && u64::from(MARK) == right,
        "the mark of this profile is {right}: write it into seccomp.json and seccomp.rs, not {marked:?} and {MARK}"
    );
}

#[test]
fn a_change_of_anything_but_a_comment_changes_the_mark() {
    let before = right_mark(&profile(PROFILE));
    for (from, to, changes) in [
        ("\"uname\"", "\"sysinfo\"", true),
        ("\"value\": 4098", "\"value\": 4099", true),
        ("\"SCMP_ARCH_X86_64\"", "\"SCMP_ARCH_X86\"", true),
        (
            "\"defaultAction\": \"SCMP_ACT_ERRNO\"",
            "\"defaultAction\": \"SCMP_ACT_LOG\"",
            true,
        ),
        ("chance, for TLS", "chance", false),
    ] {
        let changed = PROFILE.replacen(from, to, 1);
        assert_ne!(changed, PROFILE, "{from}");
        assert_eq!(right_mark(&profile(&changed)) != before, changes, "{from}");
    }
}

#[test]
fn docker_gets_the_same_without_the_reasons() {
    let mut with = profile(PROFILE);
    for group in with["syscalls"].as_array_mut().unwrap() {
        group.as_object_mut().unwrap().remove("comment").unwrap();
    }
    assert_eq!(profile(&inline()), with);
}

#[test]
fn a_check_is_held_by_our_profile_unless_told_otherwise() {
    let ours = crate::container::confinement::Confinement::default()
        .seccomp
        .unwrap();
    assert_eq!(ours, SeccompProfile::ours(None));
    assert_eq!(ours.json, inline());
}
