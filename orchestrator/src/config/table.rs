//! Every setting in one table: the documentation, the flags, the environment and the file are made from it.

/// Begins the key of a lab setting: the name of its table in the settings file, and a dot.
pub(super) const LAB_PREFIX: &str = "lab.";

/// One setting. Its key is its name in the file; `FEDICENSUS_` and the key in capitals is its name in the environment; `--` and the key with
/// hyphens is its flag. A flag wins over the environment, the environment over the file, the file over the default.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Name in the file.
    pub key: &'static str,
    /// Default, as it would be written.
    pub default: &'static str,
    /// What it is, its unit and bounds, and why the default is what it is.
    pub help: &'static str,
}

const fn setting(key: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { key, default, help }
}

/// All settings of a census, in the order in which they are documented.
pub const SETTINGS: &[Setting] = &[
    setting(
        "contact",
        "",
        "Who runs this census: a URL or a mail address. Every server reads it in the user agent, so `run` refuses to start without one outside the lab.",
    ),
    setting(
        "seeds",
        "mastodon.social,lemmy.world,misskey.io,pixelfed.social,peertube.tv",
        "Hosts to begin with, comma-separated; asked at once when they are new.",
    ),
    setting(
        "canaries",
        "mastodon.social,lemmy.world,misskey.io,mstdn.jp",
        "Hosts known to live, comma-separated, asked only when failures wait for confirmation and nobody who could bear witness has answered for a minute.",
    ),
    setting(
        "checks_max",
        "4",
        "Containers at once at most, 1 to 64. The census finds out how many of them the machine sustains (docs/operating.md): at least two, so that one slow host does not stop all others. Four keep a two-core machine busy and responsive. At most four times as many hosts are checked or wait for a container at once (run, gateway, launcher).",
    ),
    setting(
        "data_dir",
        "/data",
        "Directory of the database `census.db` and of `control.sock`; for the console, of moderators' accounts, `accounts.db`, and for the push service, of its database, `push.db`: each in a volume that no other part mounts. A file `public_suffix_list.dat` in it replaces the built-in list of public suffixes.",
    ),
    setting(
        "public_dir",
        "/public",
        "Directory of the published files; only whole files appear in it.",
    ),
    setting(
        "public_address",
        "",
        "Where visitors read the published files: `https://census.example`, without a path. Examples on the pages and the feeds name it; empty: they let the reader fill it in.",
    ),
    setting(
        "site_title",
        "Fedicensus",
        "Name of this census, in the pages' header and the feed's title: one line of at most 60 characters.",
    ),
    setting(
        "operator_name",
        "",
        "Who runs this census, for the pages' footer, next to `contact`: one line of at most 60 characters; empty: the contact only.",
    ),
    setting(
        "data_licence",
        "CC0-1.0",
        "Licence of the published data, as an SPDX identifier or expression, named on the pages, in `index.json` and in the feed. The default lets anybody reuse the data.",
    ),
    setting(
        "sources",
        "",
        "File of public lists to read names from, and the list of public suffixes, as docs/sources.md has it; empty: none.",
    ),
    setting(
        "admission_rules",
        "",
        "File of rules on how many new names may enter a day, read again by `fedicensus admission reload` and SIGHUP; empty: `public default 20`, twenty of each registered domain.",
    ),
    setting(
        "deny_list",
        "",
        "File of names, one a line, that are never admitted, checked or listed, nor what lies below them; the comment behind a name is its reason; empty: none.",
    ),
    setting(
        "allow_list",
        "",
        "File of names, one a line, that need no room by the rules, nor what lies below them; empty: none.",
    ),
    setting(
        "source_limit",
        "2000",
        "New names a day by one source, the registered domain of the servers that named them, 0 to 2147483647: the largest instances know some 30 000 names, most of them known.",
    ),
    setting(
        "admissions_limit",
        "50000",
        "New names a day in all, 0 to 2147483647: two days' worth of checks at the ordinary paces. A fiftieth of them may be below one suffix that some owner hands out, such as `github.io`, so that whoever fills one leaves room for the others.",
    ),
    setting(
        "group_threshold",
        "10",
        "Hosts below one registered domain, 1 to 1000000, above which those that have not lived yet are held back until the operator has looked (`fedicensus groups`): few owners run more instances than that, and whoever hands names out stands in the public suffix list.",
    ),
    setting(
        "walks_per_hour",
        "0",
        "Walks through public conversations an hour at most, 0 to 60; 0: none. A walk reads the newest public posts of a responding host, their threads and who favourited them, in at most 40 requests, and keeps the names of other hosts only. It finds servers whose names no peers list has: docs/walks.md.",
    ),
    setting(
        "run_dir",
        "/run",
        "Directory of the sockets between the parts. Each socket has a folder of its own, so that only its users share it: `gateway/gateway.sock`, `launcher/launcher.sock`, `texts/texts.sock`, `intake/intake.sock`, `intake-http/http.sock`, `metrics/metrics.sock`, `console/console.sock`, `console-http/http.sock`, `push/push.sock`, `push-http/http.sock`, and `egress`, with a folder for each check.",
    ),
    setting(
        "optional_sockets",
        "",
        "Which optional sockets to open, comma-separated. `texts`: the gateway looks up TXT records of owners' domains for the intake. `intake`: the daemon takes submissions and opt-outs from the intake. `metrics`: the daemon serves Prometheus (docs/metrics.md). Each does nothing else; empty: none (run, gateway).",
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
        "slots",
        "auto",
        "Whether a check joins a network namespace that is kept for it and the checks after it, one at a time, instead of having a new one: `on`, `off`, or `auto`, whichever takes less time on this engine, measured at the start. A namespace is half of what Docker does for a check. Both kinds lead nowhere (launcher only).",
    ),
    setting(
        "seccomp_path",
        "",
        "Whole path, on the engine's machine, of a file with what `fedicensus seccomp-profile` prints: Podman takes the list of system calls that a check may make from there and nowhere else. Docker is sent it and needs none (launcher only).",
    ),
    setting(
        "selinux_level",
        "",
        "SELinux level of the checks' containers, `s0:cN,cM`: the same as that of the gateway, whose sockets they use, or SELinux keeps them apart. The shipped compose file and Quadlet units give all parts `s0:c640,c641`; without SELinux it changes nothing; empty: a level of its own for each check (launcher only).",
    ),
    setting(
        "instance",
        "fedicensus",
        "Label value that tells this census's containers from another's on the same engine; letters, digits, `-`, `_`, `.`.",
    ),
    setting(
        "resolvers",
        "",
        "DNS servers as IP or IP:port, comma-separated; empty: those of /etc/resolv.conf (gateway only).",
    ),
    setting(
        "deny_addresses",
        "",
        "Networks that are never dialled, in CIDR notation, comma-separated, besides all that is not globally reachable (gateway only).",
    ),
    setting(
        "group_pace_ms",
        "10000",
        "Least time between two look-ups in one registered domain, in ms (gateway only).",
    ),
    setting(
        "address_pace_ms",
        "10000",
        "Least time between two checks at one address where no living instance was proven, in ms; 2000 in one /24 or /64, and at an address where one was proven, because shared hosting holds thousands (gateway only).",
    ),
    setting(
        "dials_per_second",
        "20",
        "Dials a second in all, 1 to 1000 (gateway only).",
    ),
    setting(
        "intake_client_header",
        "",
        "Header in which the web server in front tells the client's address, such as `X-Real-IP`. It is believed, so the web server must replace what the client sent, and nobody else may reach the intake. Empty: all requests count as one client's (intake only).",
    ),
    setting(
        "intake_log_key",
        "",
        "Public key, 64 hex digits, that Sigsum's tools sign in the place of a log's when they make tokens for this census; empty: their tokens are not taken (intake only).",
    ),
    setting(
        "console_socket",
        "false",
        "Whether the daemon opens `console/console.sock` below `run_dir`, at which the moderators' console asks and decides (run only; docs/console.md).",
    ),
    setting(
        "console_log_addresses",
        "false",
        "Whether the console logs the address of each client whose login fails or is refused, for fail2ban. Otherwise no address reaches a log (console only; docs/console.md).",
    ),
    setting(
        "push_socket",
        "false",
        "Whether the daemon opens `push/push.sock` below `run_dir`, at which the push service has messages to other push services sent, and the pages offer notifications (run only; docs/push.md).",
    ),
    setting(
        "push_address",
        "",
        "Where browsers and applications reach the push service: `https://push.example`, without a path. All endpoints begin with it, and senders sign it, so changing it ends all subscriptions (push only; docs/push.md).",
    ),
    setting(
        "push_delivery",
        "",
        "How delivery differs from autopush's, comma-separated. `ack-each`: a message is removed when it is acknowledged, and not with its batch. `one-at-a-time`: while a client has unacknowledged messages, all others are stored first, which bounds memory. `store-first`: every message with a TTL is stored before it is sent, so that a killed process loses none. The last two exclude each other; empty: as autopush (push only).",
    ),
    setting(
        "push_services",
        "updates.push.services.mozilla.com,fcm.googleapis.com,web.push.apple.com,notify.windows.com",
        "Other push services to which notifications may go, comma-separated; a name includes all names below it. The defaults are those of Firefox, Chrome, Safari and Edge. Empty: browsers that use this census's push service only (run, push).",
    ),
    setting(
        "log",
        "info",
        "What is logged: error, warn, info, debug, trace, or a filter such as `info,gateway=debug`.",
    ),
    setting("log_format", "text", "`text` or `json`."),
];

/// The settings of the lab. No flag and no environment variable sets them: only the table `[lab]`
/// of the settings file, which nobody but the lab mounts.
pub const LAB_SETTINGS: &[Setting] = &[
    setting(
        "lab.names_file",
        "",
        "File of `NAME ADDRESS PORT` lines that replaces DNS (gateway).",
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
        "All intervals are divided by it, 1 to 10000000, so that a week passes in minutes (run).",
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
        "Whether tokens of `test.sigsum.org` and the domains below it are accepted, although its secret key is public and anyone can make them (run, intake).",
    ),
];

/// Every setting with its default.
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

/// The tables as Markdown, for `docs/settings.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Settings\n\nA flag wins over the environment, the environment over the file (`--config FILE`, `FEDICENSUS_CONFIG`; TOML, keys as below), the file over the default. \
         `fedicensus settings` prints what is in force and where it comes from.\n\n| key | flag | environment | default | what it is |\n|---|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        page.push_str(&format!(
            "| `{}` | `--{}` | `{}` | {} | {} |\n",
            setting.key,
            flag_name(setting.key),
            environment_name(setting.key),
            default_cell(setting),
            setting.help
        ));
    }
    page.push_str(
        "\n## The lab\n\nThese have neither a flag nor an environment variable. They are keys of the table `[lab]` in the settings file, and only the lab mounts a file with that table \
         (`lab/fedicensus.toml`). A census of the real Fediverse has none of them.\n\n| key | default | what it is |\n|---|---|---|\n",
    );
    for setting in LAB_SETTINGS {
        page.push_str(&format!(
            "| `{}` | {} | {} |\n",
            setting.key.trim_start_matches(LAB_PREFIX),
            default_cell(setting),
            setting.help
        ));
    }
    page
}

fn default_cell(setting: &Setting) -> String {
    match setting.default {
        "" => "(empty)".to_owned(),
        text => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another one must replace or derive one of these.
    const SETTINGS_MAX: usize = 42;

    /// `docs/settings.md` is written from this table: `fedicensus settings --markdown > docs/settings.md`.
    #[test]
    fn the_documentation_shows_this_table() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        assert_eq!(
            std::fs::read_to_string(page).unwrap_or_default(),
            markdown()
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
