//! The names, kinds, labels and meanings of the metrics. The page has exactly the metrics of this
//! table.

use super::{Kind, Metric};

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All metrics, in the order of the page and of the documentation.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO: Gauge "fedicensus_build_info" ["version"] "1, with the daemon's version as its label.";
    START_TIME: Gauge "fedicensus_start_time_seconds" [] "Start of the daemon in seconds since 1970, by its own clock.";
    LAST_ROUND: Gauge "fedicensus_last_round_timestamp_seconds" [] "Last round of the daemon's loop, which takes a second.";
    OUTAGE: Gauge "fedicensus_outage" [] "1 while something that every check needs does not work and no host is checked; `status` names it.";
    BLACKOUT: Gauge "fedicensus_blackout" [] "1 while checks fail one after the other and none succeeds, most likely through our own fault.";
    CLOCK_TROUBLE: Gauge "fedicensus_clock_trouble" [] "1 while the daemon does not trust the machine's clock.";

    HOSTS: Gauge "fedicensus_hosts" ["state"] "Hosts by state.";
    HOSTS_HIDDEN: Gauge "fedicensus_hosts_hidden" [] "Hosts that asked, when they last answered as an instance, to be left out of statistics, in any state.";
    HOSTS_OPTED_OUT: Gauge "fedicensus_hosts_opted_out" ["by"] "Hosts that opted out, by who asked for it.";
    HOSTS_DUE: Gauge "fedicensus_hosts_due" [] "Hosts that are due and not in flight.";
    OVERDUE: Gauge "fedicensus_overdue_seconds" [] "Time since the host that has waited longest became due.";
    HOSTS_HELD_BACK: Gauge "fedicensus_hosts_held_back" [] "Hosts of held groups that are neither checked nor listed.";
    GROUPS_HELD: Gauge "fedicensus_groups_held" [] "Groups over the threshold without a decision.";
    GROUPS_DENIED: Gauge "fedicensus_groups_denied" [] "Groups that the operator denies.";
    SOURCES: Gauge "fedicensus_sources" [] "Public lists that were ever read.";
    SOURCES_PAUSED: Gauge "fedicensus_sources_paused" [] "Public lists that are not read until the operator resumes them.";
    SURVEY_AGE: Gauge "fedicensus_survey_age_seconds" [] "Age of all figures that are read from the database and the disks.";
    SURVEY_DURATION: Gauge "fedicensus_survey_duration_seconds" [] "Time that reading them took.";
    SURVEY_FAILURES: Counter "fedicensus_survey_failures_total" [] "Times that they could not be read.";

    IN_FLIGHT: Gauge "fedicensus_checks_in_flight" [] "Hosts being checked or written.";
    CHECKS_ALLOWED: Gauge "fedicensus_checks_allowed" [] "Containers that may run at once now, by what the engine and the machine sustain.";
    CHECKS_ALLOWED_MAX: Gauge "fedicensus_checks_allowed_max" [] "Upper limit of that: setting `checks_max`.";
    CHECKS_LIMITED: Gauge "fedicensus_checks_limited" ["by"] "1, with what keeps more containers from running as its label: `checks_max`, `memory`, `processor`, `engine`, `dials`, `paces`, or `demand` if no more hosts are due.";
    STARTS_ALLOWED: Gauge "fedicensus_starts_per_second_max" [] "Hosts that are opened a second at most, by the load.";
    UNDER_WAY: Gauge "fedicensus_checks_under_way" ["class"] "Hosts being opened or checked, by class.";
    WAITING: Gauge "fedicensus_failures_waiting" [] "Failures that wait for confirmation.";
    VERDICTS: Counter "fedicensus_verdicts_total" ["verdict", "reason"] "Checks that ended in a verdict, before confirmation; only `dead` has a reason.";
    FAULTS: Counter "fedicensus_faults_total" ["kind"] "Checks that failed through our own fault.";
    DEFERRALS: Counter "fedicensus_deferrals_total" ["why"] "Checks that were deferred without a verdict.";
    OFFLINE: Counter "fedicensus_offline_total" [] "Checks for which the gateway had no network.";
    UNCONFIRMED: Counter "fedicensus_unconfirmed_total" [] "Failures that were not counted, because no other responding host confirmed them.";
    LAST_ALIVE: Gauge "fedicensus_last_alive_timestamp_seconds" [] "Last successful check; 0: none since the start.";
    CHECK_DURATION: Histogram "fedicensus_check_duration_seconds" ["ended"] "Time from the request for egress to the end of the check, by how it ended.";
    PHASE_DURATION: Histogram "fedicensus_check_phase_duration_seconds" ["phase"] "Parts of checks: opening (pace, look-up, dial), waiting for a slot, launching (the engine's own work), running.";

    NAMES_WAITING: Gauge "fedicensus_names_waiting" [] "Names that wait for room.";
    WINDOW_NAMES: Gauge "fedicensus_window_names" ["outcome"] "New names in the current window of a day, by outcome.";
    PEERS_LISTS: Counter "fedicensus_peers_lists_total" ["outcome"] "Peers lists that were requested, by how they ended.";
    WALKS: Counter "fedicensus_walks_total" ["outcome"] "Walks through hosts' public conversations, by how they ended.";
    WALK_NAMES: Counter "fedicensus_walk_names_total" ["known"] "Names of hosts that walks found, by whether the census knew them.";

    DUMP_TIME: Gauge "fedicensus_dump_timestamp_seconds" [] "Last publication of the list; 0: never.";
    DUMP_NAMES: Gauge "fedicensus_dump_names" [] "Names in that list.";
    DUMPS: Counter "fedicensus_dumps_total" ["outcome"] "Publications since the start.";
    DUMP_HELD_BACK: Gauge "fedicensus_dump_held_back" [] "1 if the last publication lost so many names that it waits for the operator.";
    DUMP_FAILED: Gauge "fedicensus_dump_failed" [] "1 if the last publication failed or was held back.";

    GATEWAY_UP: Gauge "fedicensus_gateway_up" [] "1 if the gateway answers.";
    GATEWAY_FAMILY_UP: Gauge "fedicensus_gateway_family_up" ["family"] "1 if the gateway has a route for this address family.";
    GATEWAY_OPEN: Gauge "fedicensus_gateway_open" [] "Hosts that are open to a check now.";
    GATEWAY_OPENS: Counter "fedicensus_gateway_opens_total" [] "Requests to open a host, since the gateway's start.";
    GATEWAY_DIALS: Counter "fedicensus_gateway_dials_total" [] "Dials since the gateway's start.";
    GATEWAY_LOOKUPS: Counter "fedicensus_gateway_lookups_total" [] "Checks whose name was looked up in DNS, not in the gateway's memory.";
    GATEWAY_CONNECTIONS: Counter "fedicensus_gateway_connections_total" [] "Connections of checks that reached their host.";
    GATEWAY_BYTES: Counter "fedicensus_gateway_bytes_total" ["direction"] "Bytes between checks and their hosts.";

    LAUNCHER_UP: Gauge "fedicensus_launcher_up" [] "1 if the launcher answers.";
    LAUNCHER_UNFIT: Gauge "fedicensus_launcher_unfit" [] "1 while no check can run: the engine does not answer, or does not enforce a limit.";
    LAUNCHER_WARNINGS: Gauge "fedicensus_launcher_warnings" [] "Optional limits that the probe found missing.";
    LAUNCHER_RUNNING: Gauge "fedicensus_launcher_running" [] "Containers that run now.";
    LAUNCHER_LAUNCHES: Counter "fedicensus_launcher_launches_total" [] "Containers started, since the launcher's start.";
    LAUNCHER_REAPED: Counter "fedicensus_launcher_reaped_total" [] "Containers of an earlier run that the reaper removed.";
    CONTAINERS_KILLED: Counter "fedicensus_containers_killed_total" ["why"] "Containers of checks that the launcher killed.";
    CONTAINERS_OUT_OF_MEMORY: Counter "fedicensus_containers_out_of_memory_total" [] "Containers of checks that ran out of memory.";

    DATABASE_SIZE: Gauge "fedicensus_database_size_bytes" [] "Size of the database file.";
    WAL_SIZE: Gauge "fedicensus_wal_size_bytes" [] "Size of its write-ahead log.";
    DISK_FREE: Gauge "fedicensus_disk_free_bytes" ["directory"] "Free room on the disk of this directory.";
    DISK_SIZE: Gauge "fedicensus_disk_size_bytes" ["directory"] "Size of that disk.";
}

/// The table of `docs/metrics.md`.
pub fn markdown() -> String {
    let mut table = String::from("| name | kind | labels | what it is |\n|---|---|---|---|\n");
    for metric in ALL {
        let labels: Vec<_> = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        table.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            metric.name,
            metric.kind.as_str(),
            labels.join(", "),
            metric.help
        ));
    }
    table
}
