//! All settings in one table, from which documentation, flags, environment variables and the
//! settings file are derived.

/// Begins the key of a lab setting: the name of its table in the settings file, and a dot.
pub(super) const LAB_PREFIX: &str = "lab.";

/// One setting. The key is its name in the file. Its environment variable is `FEDICENSUS_` and the
/// key in capitals, its flag `--` and the key with hyphens. A flag overrides the environment, which
/// overrides the file, which overrides the default.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub key: &'static str,
    /// Default, as an operator would write it.
    pub default: &'static str,
    /// What it is, its unit and bounds, and why the default is what it is.
    pub help: &'static str,
}

const fn setting(key: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { key, default, help }
}

/// All settings of a census, in the order of the documentation.
pub const SETTINGS: &[Setting] = &[
    setting(
        "contact",
        "",
        "Contact of the operator: a URL or a mail address. Every visited server sees it in the user agent, so `run` refuses to start without one outside the lab.",
    ),
    setting(
        "seeds",
        "mastodon.social,lemmy.world,misskey.io,pixelfed.social,peertube.tv",
        "Hosts to begin with, comma-separated; new ones are checked at once.",
    ),
    setting(
        "canaries",
        "mastodon.social,lemmy.world,misskey.io,mstdn.jp",
        "Hosts known to respond, comma-separated. They are checked only when failures wait for confirmation and no host that could confirm them has answered for a minute.",
    ),
    setting(
        "checks_max",
        "",
        "Most containers at once, 1 to 64; empty: one for each 64 MiB of the machine's memory above 768 MiB, at least 4 and at most 32. The census finds out how many of them the machine sustains: at least two, so that one slow host does not stop all others (run, gateway, launcher).",
    ),
    setting(
        "data_dir",
        "/data",
        "Directory of `census.db` and `control.sock`, of the console's accounts, `accounts.db`, or of the push service's `push.db`: each in a volume that no other part mounts. In it, a file `public_suffix_list.dat` replaces the built-in list of public suffixes, and `fixes.toml` that of security fixes (docs/site.md).",
    ),
    setting(
        "public_dir",
        "/public",
        "Directory of the published files: its link `current` leads to the folder that a web server serves.",
    ),
    setting(
        "public_address",
        "",
        "Where visitors read the published files: `https://census.example`, without a path. Examples on the pages and the feeds contain it; empty: readers fill it in.",
    ),
    setting(
        "site_title",
        "Fedicensus",
        "Name of this census, in the pages' header, the feeds' titles and the console: one line of at most 60 characters.",
    ),
    setting(
        "operator_name",
        "",
        "Operator's name for the pages' footer, next to `contact`: one line of at most 60 characters; empty: the contact only.",
    ),
    setting(
        "data_licence",
        "CC0-1.0",
        "Licence of the published data, as an SPDX identifier or expression. The default lets anybody reuse the data.",
    ),
    setting(
        "sources",
        "",
        "File that lists the public lists to read names from, and the list of public suffixes (docs/sources.md); empty: none.",
    ),
    setting(
        "admission_rules",
        "",
        "File of rules on new names a day (docs/admission-rules.md); empty: `public default 20`, twenty of each registered domain.",
    ),
    setting(
        "deny_list",
        "",
        "File of names, one a line, that are never admitted, checked or listed, with all names below them; the comment after a name is its reason; empty: none.",
    ),
    setting(
        "allow_list",
        "",
        "File of names, one a line, that the rules do not limit, with all names below them; empty: none.",
    ),
    setting(
        "hosters",
        "",
        "File of registered domains, one a line, whose owners give names to many others: neither twenty a day nor `group_threshold` limits them; empty: the built-in list, `orchestrator/src/admit/hosters.txt`.",
    ),
    setting(
        "source_limit",
        "2000",
        "New names a day from one source, the registered domain of the servers that named them, 0 to 2147483647. The largest instances know some 30 000 names, and most of these are known here.",
    ),
    setting(
        "admissions_limit",
        "50000",
        "New names a day in all, 0 to 2147483647: two days' worth of checks at the ordinary paces. At most a fiftieth may be below one suffix whose owner gives names away, such as `github.io`.",
    ),
    setting(
        "group_threshold",
        "10",
        "Hosts below one registered domain, 1 to 1000000, above which hosts that have not responded yet are held back (docs/admission.md). Few owners run more instances than that.",
    ),
    setting(
        "walks_per_hour",
        "0",
        "Walks through public conversations an hour at most, 0 to 60; 0: none. A walk reads public posts of one host in at most 40 requests, and keeps the names of other hosts only (docs/walks.md).",
    ),
    setting(
        "run_dir",
        "/run",
        "Directory of the sockets between the parts. Each socket has a folder of its own, so that only its users share it, and each check has one in `egress`.",
    ),
    setting(
        "optional_sockets",
        "",
        "Which optional sockets to open, comma-separated: `texts`, at which the gateway looks up TXT records for the intake, `intake`, at which the daemon takes its requests, and `metrics` for Prometheus (docs/metrics.md) (run, gateway).",
    ),
    setting(
        "second_gateway",
        "",
        "Socket of a second gateway, through which checks leave by another network, such as `/run/second-gateway/gateway.sock`. The gateway then keeps the paces of both, at `ledger/ledger.sock` below `run_dir`; empty: none (run, gateway).",
    ),
    setting(
        "egress_volume",
        "",
        "The engine's name of the volume that is mounted at `egress` below `run_dir`; empty: that is a directory of the engine's own machine (launcher only).",
    ),
    setting(
        "engine_socket",
        "/run/engine.sock",
        "The engine's API socket (launcher only).",
    ),
    setting(
        "checker_image",
        "localhost/fedicensus-checker:latest",
        "Image of the checker (launcher only).",
    ),
    setting(
        "seccomp_path",
        "",
        "Absolute path, on the engine's machine, of a file with the output of `fedicensus seccomp-profile`, which Podman needs; Docker receives the list of system calls from the launcher (launcher only).",
    ),
    setting(
        "instance",
        "fedicensus",
        "Label value of this census's containers, another one for each census on an engine: letters, digits, `-`, `_`, `.`.",
    ),
    setting(
        "resolvers",
        "",
        "DNS servers as IP or IP:port, comma-separated; empty: those of /etc/resolv.conf (gateway only).",
    ),
    setting(
        "deny_addresses",
        "",
        "Networks that are never dialled, in CIDR notation, comma-separated, besides addresses that are not globally reachable (gateway only).",
    ),
    setting(
        "dials_per_second",
        "20",
        "Dials a second in all, 1 to 1000 (gateway only).",
    ),
    setting(
        "intake_log_key",
        "",
        "Public key, 64 hex digits, with which Sigsum's tools make tokens for this census; empty: their tokens are refused (intake only).",
    ),
    setting(
        "console_socket",
        "false",
        "Whether the daemon opens the socket of the moderators' console (run only; docs/console.md).",
    ),
    setting(
        "console_log_addresses",
        "false",
        "Whether the console logs the address of each client whose login fails or is refused, for fail2ban. Otherwise no address reaches a log (console only; docs/console.md).",
    ),
    setting(
        "push_socket",
        "false",
        "Whether the daemon opens the socket of the push service, and the pages offer notifications (run only; docs/push.md).",
    ),
    setting(
        "push_address",
        "",
        "Where browsers and applications reach the push service: `https://push.example`, without a path. All endpoints begin with it, and senders sign it, so changing it ends all subscriptions (push only; docs/push.md).",
    ),
    setting(
        "push_delivery",
        "",
        "How delivery differs from autopush's, and limits, comma-separated. `batch`: a stored message is removed when all of its batch of ten are acknowledged, as in autopush, and not when it is itself (`ack-each`, the default). `one-at-a-time`: while a client has unacknowledged messages, all others are stored first. `store-first`: every message with a TTL is stored before it is sent, so that a killed process loses none. The last two exclude each other. Limits as `name=number`: `hello`, seconds until a client has said hello (5); `ping`, seconds between two pings (300, the most); `pong`, seconds for the answer (4); `waiting`, messages that wait for a client before it is reset (1000, the most) (push only).",
    ),
    setting(
        "push_services",
        "updates.push.services.mozilla.com,fcm.googleapis.com,web.push.apple.com,notify.windows.com",
        "Other push services to which notifications may go, comma-separated; a name includes all names below it. The defaults are those of Firefox, Chrome, Safari and Edge. Empty: browsers that use this census's push service only (run, push).",
    ),
    setting(
        "log",
        "info",
        "Log level: error, warn, info, debug, trace, or a filter such as `info,gateway=debug`.",
    ),
    setting("log_format", "text", "`text` or `json`."),
];

/// The settings of the lab. No flag and no environment variable sets them, only the table `[lab]`
/// of the settings file, which only the lab mounts.
pub const LAB_SETTINGS: &[Setting] = &[
    setting(
        "lab.names_file",
        "",
        "File of `NAME ADDRESS PORT` lines, used instead of DNS (gateway).",
    ),
    setting(
        "lab.allow_private",
        "false",
        "Whether addresses that are not globally reachable may be dialled (gateway).",
    ),
    setting(
        "lab.extra_ca",
        "",
        "PEM file of further trust roots for the checkers (gateway, launcher).",
    ),
    setting(
        "lab.reserved_suffixes",
        "false",
        "Whether names below `.test` and `.example` are admitted (run, intake).",
    ),
    setting(
        "lab.pace_divisor",
        "1",
        "All paces are divided by it, 1 to 10000000 (gateway).",
    ),
    setting(
        "lab.interval_divisor",
        "1",
        "All intervals are divided by it, 1 to 10000000, so that a week takes minutes (run).",
    ),
    setting(
        "lab.checks_min",
        "",
        "Containers at once at least, 1 to `checks_max`; empty: two (run).",
    ),
    setting(
        "lab.opens_max",
        "",
        "Hosts that are checked or wait for a container at once, `checks_max` to eight times that; empty: four times (run, gateway).",
    ),
    setting(
        "lab.starts_per_second",
        "10",
        "Hosts opened a second at least while any are due, 1 to 1000 (run).",
    ),
    setting(
        "lab.test_domain",
        "false",
        "Whether tokens of `test.sigsum.org` and the domains below it are accepted, although anyone can make them (run, intake).",
    ),
];

/// All settings, including the lab's.
pub(super) fn all() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().chain(LAB_SETTINGS)
}

/// The setting's name in the environment.
pub fn environment_name(key: &str) -> String {
    format!("FEDICENSUS_{}", key.to_ascii_uppercase())
}

/// The setting's flag, without the two hyphens.
pub fn flag_name(key: &str) -> String {
    key.replace('_', "-")
}

/// The settings as Markdown, for `docs/settings.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Settings\n\nEach setting is a key of the settings file (TOML, `--config FILE` or `FEDICENSUS_CONFIG`), a flag and an environment variable: `checks_max`, `--checks-max`, `FEDICENSUS_CHECKS_MAX`. \
         A flag wins over the environment, the environment over the file, the file over the default, which is in parentheses below. \
         `fedicensus settings` prints what is in force and where it comes from.\n\n",
    );
    for setting in SETTINGS {
        page.push_str(&line(setting.key, setting));
    }
    page.push_str(
        "\n## The lab\n\nThese are keys of the table `[lab]` in the settings file only, which only the lab mounts (`lab/fedicensus.toml`). A census of the real Fediverse has none of them.\n\n",
    );
    for setting in LAB_SETTINGS {
        page.push_str(&line(setting.key.trim_start_matches(LAB_PREFIX), setting));
    }
    page
}

fn line(key: &str, setting: &Setting) -> String {
    let default = match setting.default {
        "" => "empty".to_owned(),
        text => format!("`{text}`"),
    };
    format!("- `{key}` ({default}): {}\n", setting.help)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A further setting must replace or derive one of these.
    const SETTINGS_MAX: usize = 39;

    /// The marks of a list in a compose file.
    const LIST: &str = "# Tests write this list. A setting that is not set has its default.\n";
    const END: &str = "# End of the list.\n";

    /// Compose files and the part whose own settings each passes on; `None`: the census's parts.
    const COMPOSE_FILES: [(&str, Option<&str>); 5] = [
        ("compose.yaml", None),
        ("deploy/compose.console.yaml", Some("console_")),
        ("deploy/compose.intake.yaml", Some("intake_")),
        ("deploy/compose.push.yaml", Some("push_")),
        ("deploy/compose.push-endpoint.yaml", Some("push_")),
    ];

    /// Brings a file of the tree up to date with this table, and returns whether it was.
    fn was_current(path: &str, made: impl FnOnce(&str) -> String) -> bool {
        let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let made = made(&text);
        if text != made {
            std::fs::write(&path, &made).unwrap();
        }
        text == made
    }

    /// The compose file with a list of all settings that this part uses and that have no value in
    /// it: Compose passes on only what a file names.
    fn with_list(text: &str, part: Option<&str>) -> String {
        let (head, rest) = text.split_once(LIST).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        let indent = head.rsplit('\n').next().unwrap();
        let is_used = |key: &str| match part {
            None => !COMPOSE_FILES
                .iter()
                .any(|(_, other)| other.is_some_and(|other| key.starts_with(other))),
            // The daemon's own switch for the part is not for the part.
            Some(_) if key.ends_with("_socket") => false,
            Some("console_") if key == "site_title" => true,
            Some(part) => key.starts_with(part) || ["contact", "log", "log_format"].contains(&key),
        };
        let names: String = SETTINGS
            .iter()
            .filter(|setting| is_used(setting.key))
            .map(|setting| environment_name(setting.key))
            .filter(|name| !text.contains(&format!("{name}: ")))
            .map(|name| format!("{indent}{name}:\n"))
            .collect();
        format!("{head}{LIST}{names}{indent}{END}{tail}")
    }

    #[test]
    fn documentation_and_compose_files_have_this_table() {
        let mut are_current = was_current("docs/settings.md", |_| markdown());
        for (file, part) in COMPOSE_FILES {
            are_current &= was_current(file, |text| with_list(text, part));
        }
        assert!(
            are_current,
            "files were written from this table: commit them"
        );
    }

    #[test]
    fn a_census_has_no_more_settings_than_an_operator_reads() {
        assert!(SETTINGS.len() <= SETTINGS_MAX, "{}", SETTINGS.len());
    }

    #[test]
    fn no_key_stands_twice() {
        let mut keys: Vec<_> = all().map(|setting| setting.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all().count());
    }

    #[test]
    fn only_lab_settings_have_the_prefix_of_the_labs_table() {
        let is_lab = |setting: &Setting| setting.key.starts_with(LAB_PREFIX);
        assert!(LAB_SETTINGS.iter().all(is_lab));
        assert!(!SETTINGS.iter().any(is_lab));
    }
}
