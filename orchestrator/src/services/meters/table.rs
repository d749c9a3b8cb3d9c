//! The names, kinds, labels and meanings: nothing is told that does not stand here, and all that stands here is told.

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

        /// All of them, in the order in which they are told and documented.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO: Gauge "fedicensus_build_info" ["version"] "1; the version of the daemon is its label.";
    START_TIME: Gauge "fedicensus_start_time_seconds" [] "When the daemon began, in seconds since 1970, by its own clock.";
    LAST_ROUND: Gauge "fedicensus_last_round_timestamp_seconds" [] "When its loop last went round; it does so every second.";
    OUTAGE: Gauge "fedicensus_outage" [] "1 while something that every check needs does not work, and nothing is checked; status says what.";
    NOBODY_LIVES: Gauge "fedicensus_nobody_lives" [] "1 while checks fail one after the other and nobody lives: most likely it is us.";
    CLOCK_TROUBLE: Gauge "fedicensus_clock_trouble" [] "1 while the machine's clock is not believed.";

    HOSTS: Gauge "fedicensus_hosts" ["state"] "Hosts by state.";
    HOSTS_HIDDEN: Gauge "fedicensus_hosts_hidden" [] "Hosts that asked, when they last answered as an instance, to be left out of statistics, whatever their state.";
    HOSTS_OPTED_OUT: Gauge "fedicensus_hosts_opted_out" ["by"] "Hosts that opted out, by who said so.";
    HOSTS_DUE: Gauge "fedicensus_hosts_due" [] "Hosts whose time has come and that are not in flight.";
    OVERDUE: Gauge "fedicensus_overdue_seconds" [] "For how long the host that has waited longest has been due.";
    HOSTS_HELD_BACK: Gauge "fedicensus_hosts_held_back" [] "Hosts of held groups that are neither asked nor listed.";
    GROUPS_HELD: Gauge "fedicensus_groups_held" [] "Groups over the threshold that nobody has looked at.";
    GROUPS_DENIED: Gauge "fedicensus_groups_denied" [] "Groups that the operator denies.";
    SOURCES: Gauge "fedicensus_sources" [] "Public lists that were ever read.";
    SOURCES_PAUSED: Gauge "fedicensus_sources_paused" [] "Of them, those that are read no more until the operator resumes them.";
    SURVEY_AGE: Gauge "fedicensus_survey_age_seconds" [] "How old all that is read from the database and the disks is.";
    SURVEY_DURATION: Gauge "fedicensus_survey_duration_seconds" [] "How long it took to read.";
    SURVEY_FAILURES: Counter "fedicensus_survey_failures_total" [] "Times that it could not be read.";

    IN_FLIGHT: Gauge "fedicensus_checks_in_flight" [] "Hosts being checked or written.";
    CHECKS_ALLOWED: Gauge "fedicensus_checks_allowed" [] "Containers that may run at once now, as the engine and the machine bear it.";
    CHECKS_ALLOWED_MAX: Gauge "fedicensus_checks_allowed_max" [] "The most that this may be: setting `checks_max`.";
    STARTS_ALLOWED: Gauge "fedicensus_starts_per_second_max" [] "Hosts that are opened a second at most, as the load asks for.";
    UNDER_WAY: Gauge "fedicensus_checks_under_way" ["class"] "Hosts being opened or checked, by class.";
    WAITING: Gauge "fedicensus_failures_waiting" [] "Failures that wait for confirmation.";
    VERDICTS: Counter "fedicensus_verdicts_total" ["verdict", "reason"] "Checks that ended in a verdict, before it was confirmed; only `dead` has a reason.";
    FAULTS: Counter "fedicensus_faults_total" ["kind"] "Checks that failed on our side.";
    DEFERRALS: Counter "fedicensus_deferrals_total" ["why"] "Checks that were put off, without a verdict.";
    OFFLINE: Counter "fedicensus_offline_total" [] "Checks that the gateway had no network for.";
    UNCONFIRMED: Counter "fedicensus_unconfirmed_total" [] "Failures that were not counted, because nobody else lived to confirm them.";
    LAST_ALIVE: Gauge "fedicensus_last_alive_timestamp_seconds" [] "When a check last came out alive; 0: not since the start.";
    CHECK_DURATION: Histogram "fedicensus_check_duration_seconds" ["ended"] "From asking for a way to the end of the check, by how it ended.";
    PHASE_DURATION: Histogram "fedicensus_check_phase_duration_seconds" ["phase"] "Parts of checks: opening (pace, look-up, dial), waiting for a place, launching (what the engine takes beside the check itself), running.";

    NAMES_WAITING: Gauge "fedicensus_names_waiting" [] "Names that wait for room.";
    WINDOW_NAMES: Gauge "fedicensus_window_names" ["outcome"] "New names in this window of a day, by what became of them.";
    PEERS_LISTS: Counter "fedicensus_peers_lists_total" ["outcome"] "Peers lists that were asked for, by how they ended.";
    WALKS: Counter "fedicensus_walks_total" ["outcome"] "Walks through hosts' public conversations, by how they ended.";
    WALK_NAMES: Counter "fedicensus_walk_names_total" ["known"] "Names of hosts that walks found, by whether the census knew them.";

    DUMP_TIME: Gauge "fedicensus_dump_timestamp_seconds" [] "When the list was last published; 0: never.";
    DUMP_NAMES: Gauge "fedicensus_dump_names" [] "Names that it held.";
    DUMPS: Counter "fedicensus_dumps_total" ["outcome"] "Dumps since the start.";
    DUMP_HELD_BACK: Gauge "fedicensus_dump_held_back" [] "1 when the last dump lost so many names that it waits for the operator.";
    DUMP_FAILED: Gauge "fedicensus_dump_failed" [] "1 when the last dump did not end well, held back or not.";

    GATEWAY_UP: Gauge "fedicensus_gateway_up" [] "1 when the gateway answers.";
    GATEWAY_FAMILY_UP: Gauge "fedicensus_gateway_family_up" ["family"] "1 when the gateway has a route out of this address family.";
    GATEWAY_OPEN: Gauge "fedicensus_gateway_open" [] "Ways that are open now.";
    GATEWAY_OPENS: Counter "fedicensus_gateway_opens_total" [] "Ways that were asked for, since the gateway's start.";
    GATEWAY_DIALS: Counter "fedicensus_gateway_dials_total" [] "Dials since the gateway's start.";
    GATEWAY_LOOKUPS: Counter "fedicensus_gateway_lookups_total" [] "Checks whose name DNS answered for, and not the gateway's memory.";
    GATEWAY_CONNECTIONS: Counter "fedicensus_gateway_connections_total" [] "Connections of checks that reached their host.";
    GATEWAY_BYTES: Counter "fedicensus_gateway_bytes_total" ["direction"] "Bytes between checks and their hosts.";

    LAUNCHER_UP: Gauge "fedicensus_launcher_up" [] "1 when the launcher answers.";
    LAUNCHER_UNFIT: Gauge "fedicensus_launcher_unfit" [] "1 while no check can be run: the engine does not answer, or does not confine.";
    LAUNCHER_WARNINGS: Gauge "fedicensus_launcher_warnings" [] "Limits that the probe found missing and that are not required.";
    LAUNCHER_RUNNING: Gauge "fedicensus_launcher_running" [] "Containers that run now.";
    LAUNCHER_LAUNCHES: Counter "fedicensus_launcher_launches_total" [] "Containers started, since the launcher's start.";
    LAUNCHER_REAPED: Counter "fedicensus_launcher_reaped_total" [] "Containers that a former life left behind and the reaper removed.";
    CONTAINERS_KILLED: Counter "fedicensus_containers_killed_total" ["why"] "Containers of checks that the launcher ended.";
    CONTAINERS_OUT_OF_MEMORY: Counter "fedicensus_containers_out_of_memory_total" [] "Containers of checks that ran out of memory.";

    DATABASE_SIZE: Gauge "fedicensus_database_size_bytes" [] "The database's file.";
    WAL_SIZE: Gauge "fedicensus_wal_size_bytes" [] "Its write-ahead log.";
    DISK_FREE: Gauge "fedicensus_disk_free_bytes" ["directory"] "Room that is left on the disk of this directory.";
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
