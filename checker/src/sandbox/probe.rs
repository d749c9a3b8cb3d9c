//! `--probe`: which limits this process finds in force on itself.
//!
//! Reads `/proc` and `/sys/fs/cgroup`, tries a few writes and a few system calls, and gives a
//! [`ProbeReport`]. A limit that can't be read is reported as not in force, so that a container
//! never seems better confined than it is.

mod calls;

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use protocol::ProbeReport;
use protocol::limits::EGRESS_MOUNT;
use protocol::probe::REPORT_LIST_MAX;
use rustix::process::{Resource, getrlimit};

/// Longest file of `/proc` that is read. `mounts` of a container takes 5 KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Directories that could be writable in a container of either engine.
const WRITABLE_TRIED: [&str; 7] = [
    "/",
    "/tmp",
    "/run",
    "/var/tmp",
    "/dev/shm",
    "/dev/mqueue",
    EGRESS_MOUNT,
];

/// A process's own memory as a file. Writing to it changes even read-only mappings, the program's
/// code included. It belongs to root if the program may be executed and not read, as in our image.
const OWN_MEMORY: &str = "/proc/self/mem";

/// A v1 limit from here on means "unlimited": the kernel writes the largest multiple of a page.
const V1_UNLIMITED: u64 = 1 << 62;

/// Where control groups are mounted.
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// Names in `/etc/hosts` of every machine.
const COMMON_NAMES: [&str; 7] = [
    "localhost",
    "ip6-localhost",
    "ip6-loopback",
    "ip6-localnet",
    "ip6-mcastprefix",
    "ip6-allnodes",
    "ip6-allrouters",
];

pub fn probe() -> ProbeReport {
    let status = read(Path::new("/proc/self/status"));
    let groups = Groups::of(&read(Path::new("/proc/self/cgroup")));
    ProbeReport {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        capabilities: field(&status, "CapEff:").to_owned(),
        bounding: field(&status, "CapBnd:").to_owned(),
        no_new_privileges: field(&status, "NoNewPrivs:") == "1",
        seccomp: field(&status, "Seccomp:").parse().unwrap_or(0),
        calls_refused: calls::refused(),
        calls_missing: calls::missing(),
        profile_mark: calls::profile_mark(),
        memory_max_bytes: groups.memory(),
        swap_max_bytes: groups.swap(),
        pids_max: groups.number("pids", "pids.max", "pids.max"),
        cpu_max: groups.cpus(),
        nofile: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        read_only_root: root_is_read_only(&read(Path::new("/proc/mounts"))),
        writable: writable(),
        interfaces: interfaces(&read(Path::new("/proc/net/dev"))),
        routes: routes(
            &read(Path::new("/proc/net/route")),
            &read(Path::new("/proc/net/ipv6_route")),
        ),
        addresses_outside_loopback: addresses_outside_loopback(),
        egress_files: names_in(Path::new(EGRESS_MOUNT)),
        names_told: names_told(
            &read(Path::new("/etc/hosts")),
            read(Path::new("/proc/sys/kernel/hostname")).trim(),
        ),
    }
}

fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_absent) => String::new(),
    }
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_default().trim()
}

/// The control groups of this process, by controller; the empty name is the unified hierarchy.
struct Groups(Vec<(String, String)>);

impl Groups {
    fn of(cgroup: &str) -> Self {
        let lines = cgroup.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?))
        });
        Self(
            lines
                .flat_map(|(controllers, path)| {
                    controllers
                        .split(',')
                        .map(move |controller| (controller.to_owned(), path.to_owned()))
                })
                .collect(),
        )
    }

    /// The content of a control file, in either version. A container sees its own group either at
    /// the mount's root or at the path that the group has outside.
    fn file(&self, controller: &str, v1: &str, v2: &str) -> Option<String> {
        let root = Path::new(CGROUP_ROOT);
        let path_of = |name: &str| {
            let group = self.0.iter().find(|(group, _)| group == name);
            group.map(|(_, path)| path.trim_start_matches('/'))
        };
        let mut tried: Vec<PathBuf> = Vec::new();
        if let Some(path) = path_of("") {
            tried.push(root.join(path).join(v2));
        }
        tried.push(root.join(v2));
        if let Some(path) = path_of(controller) {
            // `cpu` and `cpuacct` are mounted together, with links for each.
            tried.push(root.join(controller).join(path).join(v1));
        }
        tried.push(root.join(controller).join(v1));
        let found = tried.iter().map(|path| read(path));
        let mut found = found.filter(|content| !content.is_empty());
        found.next().map(|content| content.trim().to_owned())
    }

    fn number(&self, controller: &str, v1: &str, v2: &str) -> Option<u64> {
        let number = self.file(controller, v1, v2)?.parse().ok()?;
        (number < V1_UNLIMITED).then_some(number)
    }

    fn memory(&self) -> Option<u64> {
        self.number("memory", "memory.limit_in_bytes", "memory.max")
    }

    /// Swap alone: cgroup v1 limits memory and swap together.
    fn swap(&self) -> Option<u64> {
        let v1 = "memory.memsw.limit_in_bytes";
        let found = self.number("memory", v1, "memory.swap.max")?;
        let is_v1 = self.file("memory", "absent", "memory.swap.max").is_none();
        if is_v1 {
            Some(found.saturating_sub(self.memory()?))
        } else {
            Some(found)
        }
    }

    fn cpus(&self) -> Option<f64> {
        let quota = self.file("cpu", "cpu.cfs_quota_us", "cpu.max")?;
        let period = self.file("cpu", "cpu.cfs_period_us", "absent");
        cpus_of(&quota, period.as_deref())
    }
}

/// CPUs of `cpu.max` (`50000 100000`), or of a quota and a period.
fn cpus_of(quota: &str, period: Option<&str>) -> Option<f64> {
    let (quota, period) = match quota.split_once(' ') {
        Some(both) => both,
        None => (quota, period?),
    };
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// The last mount over `/` counts.
fn root_is_read_only(mounts: &str) -> bool {
    let mut roots = mounts.lines().filter_map(|line| {
        let mut parts = line.split(' ').skip(1);
        (parts.next()? == "/").then(|| parts.nth(1))?
    });
    roots
        .next_back()
        .is_some_and(|options| options.split(',').any(|option| option == "ro"))
}

fn writable() -> Vec<String> {
    let tried = WRITABLE_TRIED.iter().filter(|directory| {
        let path = Path::new(directory).join(format!(".probe-{}", std::process::id()));
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let is_writable = created.is_ok();
        if is_writable {
            // A file that is left behind is still reported as a writable path.
            fs::remove_file(&path).ok();
        }
        is_writable
    });
    let memory = OpenOptions::new().write(true).open(OWN_MEMORY).is_ok();
    tried
        .copied()
        .chain(memory.then_some(OWN_MEMORY))
        .map(str::to_owned)
        .collect()
}

fn interfaces(dev: &str) -> Vec<String> {
    let names = dev.lines().filter_map(|line| line.split_once(':'));
    names
        .map(|(name, _)| name.trim().to_owned())
        .take(REPORT_LIST_MAX)
        .collect()
}

fn routes(ipv4: &str, ipv6: &str) -> u64 {
    let outside = |name: Option<&str>| name.is_some_and(|name| name != "lo");
    let ipv4 = ipv4.lines().skip(1);
    let ipv4 = ipv4.filter(|line| outside(line.split_whitespace().next()));
    let ipv6 = ipv6.lines();
    let ipv6 = ipv6.filter(|line| outside(line.split_whitespace().next_back()));
    u64::try_from(ipv4.count().saturating_add(ipv6.count())).unwrap_or(u64::MAX)
}

/// IPv6 addresses are listed by interface. IPv4 addresses are local entries of the routing trie,
/// loopback's included.
fn addresses_outside_loopback() -> u64 {
    let ipv6 = read(Path::new("/proc/net/if_inet6"));
    let trie = read(Path::new("/proc/net/fib_trie"));
    let ipv6 = ipv6
        .lines()
        .filter(|line| line.split_whitespace().next_back() != Some("lo"));
    let count = ipv6.count().saturating_add(local_ipv4(&trie).len());
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The host addresses outside 127/8 in a routing trie.
fn local_ipv4(trie: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut last = "";
    for line in trie.lines() {
        if let Some(address) = line.trim().strip_prefix("|-- ") {
            last = address;
        }
        let is_own = line.contains("/32 host LOCAL") && !last.starts_with("127.");
        if is_own && !found.contains(&last) {
            found.push(last);
        }
    }
    found
}

fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    names
        .map(|name| name.to_string_lossy().into_owned())
        .take(REPORT_LIST_MAX)
        .collect()
}

/// The names in `/etc/hosts` that are neither common nor the container's own.
fn names_told(hosts: &str, own: &str) -> Vec<String> {
    let lines = hosts
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let names = lines.flat_map(|line| line.split_whitespace().skip(1));
    names
        .filter(|name| !COMMON_NAMES.contains(name) && *name != own)
        .map(str::to_owned)
        .take(REPORT_LIST_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_controller_in_both_versions() {
        let groups = Groups::of("4:cpu,cpuacct:/docker/x\n2:memory:/docker/y\n0::/z\n");
        let path = |name: &str| {
            let found = groups.0.iter().find(|(group, _)| group == name);
            found.map(|(_, path)| path.as_str())
        };
        assert_eq!(path("cpu"), Some("/docker/x"));
        assert_eq!(path("memory"), Some("/docker/y"));
        assert_eq!(path(""), Some("/z"));
    }

    #[test]
    fn cpu_shares_are_read_in_both_versions() {
        assert_eq!(cpus_of("50000 100000", None), Some(0.5));
        assert_eq!(cpus_of("max 100000", None), None);
        assert_eq!(cpus_of("50000", Some("100000")), Some(0.5));
        assert_eq!(cpus_of("-1", Some("100000")), None);
        assert_eq!(cpus_of("50000", None), None);
    }

    #[test]
    fn the_last_mount_over_the_root_counts() {
        let writable = "overlay / overlay rw,relatime 0 0\n";
        let read_only = "overlay / overlay ro,relatime 0 0\nproc /proc proc rw 0 0\n";
        assert!(!root_is_read_only(writable));
        assert!(root_is_read_only(read_only));
        assert!(!root_is_read_only(&format!("{read_only}{writable}")));
        assert!(!root_is_read_only(""));
    }

    #[test]
    fn the_loopback_alone_is_no_network() {
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 0 0\n";
        assert_eq!(interfaces(dev), ["lo"]);
        let lo6 = "00000000000000000000000000000001 80 0 00 0 ffffffff 1 0 80200001 lo\n";
        assert_eq!(routes("Iface\tDestination\n", lo6), 0);
        assert_eq!(routes("Iface\tDestination\neth0\t00000000\n", lo6), 1);
        let trie = "Local:\n  |-- 127.0.0.1\n     /32 host LOCAL\n";
        assert!(local_ipv4(trie).is_empty());
        let trie = "Local:\n  |-- 10.0.0.2\n     /32 host LOCAL\n  |-- 10.0.0.255\n     /32 link BROADCAST\n";
        assert_eq!(local_ipv4(trie), ["10.0.0.2"]);
    }

    #[test]
    fn a_machines_names_are_told_from_a_containers_own() {
        let own = "127.0.0.1 localhost ip6-localhost # also: here\n127.0.0.1\tcheck\n";
        assert_eq!(names_told(own, "check"), [""; 0]);
        let podmans = format!("{own}203.0.113.2 host.containers.internal\n127.0.1.1 rootless\n");
        let told = ["host.containers.internal", "rootless"];
        assert_eq!(names_told(&podmans, "check"), told);
    }

    #[test]
    fn a_probe_is_a_report_that_can_be_read() {
        let report = probe();
        assert_eq!(report.capabilities.len(), 16);
        let text = serde_json::to_vec(&report).unwrap();
        assert_eq!(ProbeReport::parse(&text).unwrap(), report);
    }
}
