//! The limits that a probe container found in force on itself: the answer of `fedicensus-checker
//! --probe`.
//!
//! The launcher parses it strictly and refuses to work if a required limit is missing (invariant
//! I1). A limit that could not be read is `None`, which the reader must treat as not in force.

use serde::{Deserialize, Serialize};

/// Longest report in bytes: a dozen numbers and a few short lists.
pub const REPORT_BYTES_MAX: usize = 16 * 1024;

/// Entries in any list of a report. A sound container shows one interface, one socket and no
/// writable path.
pub const REPORT_LIST_MAX: usize = 32;

/// System calls that the probe tries. No check needs them, every engine's own profile allows them,
/// and our profile refuses all of them. So a report with all of them in
/// [`ProbeReport::calls_refused`] was made under our profile. A call that is allowed has no effect.
pub const CALLS_TRIED: [&str; 10] = [
    "socket(AF_INET)",
    "socket(AF_INET6)",
    "socket(AF_NETLINK)",
    "bind",
    "clone (a process)",
    "kill",
    "pidfd_open",
    "memfd_create",
    "inotify_init1",
    "unlinkat",
];

/// The limits that a process finds in force on itself. One JSON object; unknown keys are rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeReport {
    pub uid: u32,
    pub gid: u32,
    /// Effective capabilities, sixteen hexadecimal digits (`CapEff`).
    pub capabilities: String,
    /// The bounding set, sixteen hexadecimal digits (`CapBnd`).
    pub bounding: String,
    /// Whether `no_new_privs` is set.
    pub no_new_privileges: bool,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: u32,
    /// The calls of [`CALLS_TRIED`] that were refused with `EPERM`.
    pub calls_refused: Vec<String>,
    /// Calls that every check needs and that failed: a Unix socket, a thread.
    pub calls_missing: Vec<String>,
    /// The error number that `getsid` returned. Our profile answers with a checksum of the rest of
    /// the profile, which identifies it among older versions and other profiles. `None` if the call
    /// was allowed.
    pub profile_mark: Option<u16>,
    /// Memory limit of the control group in bytes; `None` if there is no limit or it could not be
    /// read.
    pub memory_max_bytes: Option<u64>,
    /// Swap beyond the memory limit in bytes; `None` if it is unlimited or unknown.
    pub swap_max_bytes: Option<u64>,
    /// Tasks in the control group.
    pub pids_max: Option<u64>,
    /// Number of CPUs; 0.5 is half a CPU.
    pub cpu_max: Option<f64>,
    /// Soft limit of open files, as found before the checker lowers it.
    pub nofile: u64,
    /// Whether `/` is mounted read-only.
    pub read_only_root: bool,
    /// Directories in which a file could be created, and files that could be opened for writing.
    pub writable: Vec<String>,
    pub interfaces: Vec<String>,
    /// Number of IP routes, except those of the loopback interface.
    pub routes: u64,
    /// Number of IP addresses on interfaces other than loopback.
    pub addresses_outside_loopback: u64,
    /// Names in the egress directory.
    pub egress_files: Vec<String>,
    /// Names in `/etc/hosts` other than the container's own and those of every machine. They come
    /// from the engine's machine.
    pub names_told: Vec<String>,
}

impl ProbeReport {
    /// Parses a report.
    ///
    /// # Errors
    /// When it is over [`REPORT_BYTES_MAX`], is not exactly such an object, or holds a list of more
    /// than [`REPORT_LIST_MAX`] entries.
    pub fn parse(text: &[u8]) -> Result<Self, ProbeReportError> {
        if text.len() > REPORT_BYTES_MAX {
            return Err(ProbeReportError::TooLong);
        }
        let report: Self = serde_json::from_slice(text)?;
        let lists = [
            &report.calls_refused,
            &report.calls_missing,
            &report.writable,
            &report.interfaces,
            &report.egress_files,
            &report.names_told,
        ];
        if lists.iter().any(|list| list.len() > REPORT_LIST_MAX) {
            return Err(ProbeReportError::TooLong);
        }
        Ok(report)
    }
}

/// Why a text is no probe report.
#[derive(Debug, thiserror::Error)]
pub enum ProbeReportError {
    #[error("the report is too long")]
    TooLong,
    #[error("the report has an invalid form")]
    Form(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> ProbeReport {
        ProbeReport {
            uid: 64_917,
            gid: 64_917,
            capabilities: "0000000000000000".to_owned(),
            bounding: "0000000000000000".to_owned(),
            no_new_privileges: true,
            seccomp: 2,
            calls_refused: CALLS_TRIED.map(str::to_owned).to_vec(),
            calls_missing: Vec::new(),
            profile_mark: Some(1234),
            memory_max_bytes: Some(64 << 20),
            swap_max_bytes: Some(0),
            pids_max: Some(16),
            cpu_max: Some(0.5),
            nofile: 64,
            read_only_root: true,
            writable: Vec::new(),
            interfaces: vec!["lo".to_owned()],
            routes: 0,
            addresses_outside_loopback: 0,
            egress_files: Vec::new(),
            names_told: Vec::new(),
        }
    }

    #[test]
    fn a_report_survives_the_way() {
        let text = serde_json::to_vec(&sound()).unwrap();
        assert_eq!(ProbeReport::parse(&text).unwrap(), sound());
    }

    #[test]
    fn what_is_not_exactly_a_report_is_refused() {
        let text = serde_json::to_string(&sound()).unwrap();
        let further = text.replacen('{', r#"{"further":1,"#, 1);
        assert!(matches!(
            ProbeReport::parse(further.as_bytes()),
            Err(ProbeReportError::Form(_))
        ));
        let spaces = format!("{text}{}", " ".repeat(REPORT_BYTES_MAX));
        assert!(matches!(
            ProbeReport::parse(spaces.as_bytes()),
            Err(ProbeReportError::TooLong)
        ));
        let mut many = sound();
        many.writable = vec!["/".to_owned(); REPORT_LIST_MAX + 1];
        let text = serde_json::to_vec(&many).unwrap();
        assert!(matches!(
            ProbeReport::parse(&text),
            Err(ProbeReportError::TooLong)
        ));
    }

    /// The fuzz target's seeds, made from a current report: valid ones, and ones with a single
    /// error.
    fn seeds() -> [(&'static str, String, bool); 6] {
        let text = |report: &ProbeReport| serde_json::to_string(report).unwrap();
        let with = |member: &str| text(&sound()).replacen('{', &format!("{{{member},"), 1);
        let unlimited = ProbeReport {
            memory_max_bytes: None,
            cpu_max: None,
            writable: vec!["/tmp".to_owned()],
            egress_files: vec!["https.sock".to_owned()],
            ..sound()
        };
        let long_list = ProbeReport {
            writable: vec!["/".to_owned(); REPORT_LIST_MAX + 1],
            ..sound()
        };
        let mut without: serde_json::Value = serde_json::to_value(sound()).unwrap();
        let members = without.as_object_mut().unwrap();
        members.retain(|key, _| !["memory_max_bytes", "cpu_max"].contains(&key.as_str()));
        [
            ("sound", text(&sound()), true),
            ("unlimited", text(&unlimited), true),
            ("without-optional", without.to_string(), true),
            ("long-list", text(&long_list), false),
            ("further", with(r#""further":1"#), false),
            ("twice", with(r#""seccomp":0"#), false),
        ]
    }

    /// When a report gets a new member, old seeds are all rejected, and a target that accepts
    /// nothing tests nothing.
    #[test]
    fn the_fuzz_targets_seeds_are_of_the_report_as_it_is() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/fuzz/seeds/launcher/probe_report");
        for (name, text, is_taken) in seeds() {
            let parsed = ProbeReport::parse(text.as_bytes());
            assert_eq!(parsed.is_ok(), is_taken, "{name}: {parsed:?}");
            let path = folder.join(name);
            if std::env::var_os("FEDICENSUS_WRITE_SEEDS").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            assert_eq!(
                std::fs::read_to_string(&path).unwrap(),
                text,
                "tests/fuzz/seeds/launcher/probe_report/{name} is out of date: FEDICENSUS_WRITE_SEEDS=1 cargo test -p protocol seeds"
            );
        }
    }
}
