//! The names, kinds, labels and meanings of the metrics that the daemon counts.

/// Declares metrics, a row each, and `ALL` of them in their order.
macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: $crate::ground::meters::Metric = $crate::ground::meters::Metric {
                name: $name,
                kind: $crate::ground::meters::Kind::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        pub const ALL: &[$crate::ground::meters::Metric] = &[$($constant),*];
    };
}
pub(crate) use metrics;

metrics! {
    VERDICTS: Counter "fedicensus_verdicts_total" ["verdict", "reason"] "Checks that ended in a verdict, before confirmation; only `dead` has a reason.";
    FAULTS: Counter "fedicensus_faults_total" ["kind"] "Checks that failed through our own fault.";
    DEFERRALS: Counter "fedicensus_deferrals_total" ["why"] "Checks that were deferred without a verdict.";
    OFFLINE: Counter "fedicensus_offline_total" [] "Checks for which the gateway had no network.";
    UNCONFIRMED: Counter "fedicensus_unconfirmed_total" [] "Failures that were not counted, because no other responding host confirmed them.";
    WAYS: Counter "fedicensus_way_checks_total" ["way", "ended"] "Checks by the way out that they took and by how they ended.";
    LAST_ALIVE: Gauge "fedicensus_last_alive_timestamp_seconds" [] "Last successful check; 0: none since the start.";
    CHECK_DURATION: Histogram "fedicensus_check_duration_seconds" ["ended"] "Time from the request for egress to the end of the check, by how it ended.";
    PHASE_DURATION: Histogram "fedicensus_check_phase_duration_seconds" ["phase"] "Parts of checks: opening (pace, look-up, dial), waiting for a slot, launching (the engine's own work), running.";
    PEERS_LISTS: Counter "fedicensus_peers_lists_total" ["outcome"] "Peers lists that were requested, by how they ended.";
    WALKS: Counter "fedicensus_walks_total" ["outcome"] "Walks through hosts' public conversations, by how they ended.";
    WALK_NAMES: Counter "fedicensus_walk_names_total" ["known"] "Names of hosts that walks found, by whether the census knew them.";
    DUMPS: Counter "fedicensus_dumps_total" ["outcome"] "Publications since the start.";
    DUMP_HELD_BACK: Gauge "fedicensus_dump_held_back" [] "1 if the last publication lost so many names that it waits for the operator.";
    DUMP_FAILED: Gauge "fedicensus_dump_failed" [] "1 if the last publication failed or was held back.";
    GATEWAY_LOOKUPS: Counter "fedicensus_gateway_lookups_total" [] "Checks whose name was looked up in DNS, not in the gateway's memory.";
    GATEWAY_CONNECTIONS: Counter "fedicensus_gateway_connections_total" [] "Connections of checks that reached their host.";
    GATEWAY_BYTES: Counter "fedicensus_gateway_bytes_total" ["direction"] "Bytes between checks and their hosts.";
    CONTAINERS_KILLED: Counter "fedicensus_containers_killed_total" ["why"] "Containers of checks that the launcher killed.";
    CONTAINERS_OUT_OF_MEMORY: Counter "fedicensus_containers_out_of_memory_total" [] "Containers of checks that ran out of memory.";
}
