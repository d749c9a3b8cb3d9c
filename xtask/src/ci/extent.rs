//! How much of CI runs: its tiers, and the part of the longest steps that the quick tier runs.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// What has to pass before a change is merged: everything that a change can break, and samples
    /// of the longest steps.
    Quick,
    Full,
}

/// Tag of the images that CI builds, so that it replaces none of a census on the same engine.
pub(crate) const IMAGE_TAG: &str = "fedicensus-ci";

/// Scenarios about how other people's programs read our files; each needs some of these programs.
pub(crate) const READERS: [&str; 9] = [
    "published::files::",
    "metrics::",
    "moderators::",
    "owners::buttons::",
    "published::consumers::",
    "published::push::",
    "published::site::",
    "published::swaps::",
    "published::visitors::",
];

/// What the quick tier runs over containers. The step `lab` checks personas in containers.
pub(crate) const SAMPLE_OVER_CONTAINERS: [&str; 4] = [
    "confinement::adversary::confinement",
    "confinement::containers::",
    "failures::crashes::no_kill_at_any_moment",
    "failures::kills::",
];

/// Scenarios for which containers make no difference, or which need a shorter week than an engine
/// has time for: the full tier leaves them out over containers.
pub(crate) const PROCESSES_SUFFICE: [&str; 21] = [
    "published::files::",
    "confinement::firewall::",
    "failures::outages::hostile::",
    "failures::outages::names::",
    "failures::outages::network::",
    "failures::outages::tls::",
    "failures::outages::ways::",
    "failures::own_outages::clock::",
    "failures::own_outages::disk::",
    "failures::own_outages::engine::",
    "failures::push::",
    "moderators::",
    "owners::buttons::",
    "time::pace::",
    "personas::",
    "published::consumers::",
    "published::push::",
    "published::site::",
    "published::swaps::",
    "time::seven_days::",
    "published::visitors::",
];

/// Random kills in the quick tier, over processes and over containers. Every thirteenth also kills
/// the launcher.
pub(crate) const KILLS_OVER_PROCESSES: &str = "40";
pub(crate) const KILLS_OVER_CONTAINERS: &str = "26";

/// Personas of the lab in the quick tier, chosen by the commit.
pub(crate) const PERSONAS: usize = 40;

/// Generated instances in addition to a sample of personas.
pub(crate) const CROWD: &str = "10";

/// Scenarios over processes mostly wait: for a pace, a timeout, the end of an outage.
pub(crate) const SCENARIOS_AT_ONCE: &str = "12";

pub(crate) const TESTS_AT_ONCE: &str = "6";

/// Scenarios that the quick tier leaves out: they need a browser or Prometheus, which only the full
/// tier's packages contain.
pub(crate) const FULL_PROGRAMS: [&str; 5] = [
    "metrics::prometheus_",
    "moderators::console::",
    "owners::buttons::",
    "published::push::",
    "published::site::",
];

/// The table of what firewalls refused. Only root can run that test.
pub(crate) const FIREWALL_TABLE: &str = "firewall.md";

/// Tables that the full tier's tests must have written: a skipped test writes none.
pub(crate) const TABLES: [&str; 3] = ["adversary.md", "faults.md", FIREWALL_TABLE];

/// Least free bytes for CI to start: the build takes some 6 GB, the images' build stage 3 GB.
pub(crate) const FREE_BYTES_MIN: u64 = 15_000_000_000;
