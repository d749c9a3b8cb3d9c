//! How much of CI runs: its tiers, and what the quick one runs of the longest steps.

/// How much of CI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// What has to pass before a change is taken: everything that a change can break, of the
    /// longest steps a sample.
    Quick,
    /// That and all the rest.
    Full,
}

/// Tag of the images that CI builds, so that it replaces none of a census on the same engine.
pub(crate) const IMAGE_TAG: &str = "fedicensus-ci";

/// Scenarios whose subject is what programs of others make of our files; each needs some of these
/// programs.
pub(crate) const READERS: [&str; 8] = [
    "published::files::",
    "metrics::",
    "moderators::",
    "owners::buttons::",
    "published::consumers::",
    "published::push::",
    "published::site::",
    "published::visitors::",
];

/// What the quick tier runs over containers. Personas are checked in containers by the step `lab`.
pub(crate) const SAMPLE_OVER_CONTAINERS: [&str; 4] = [
    "confinement::adversary::confinement",
    "confinement::containers::",
    "failures::crashes::no_kill_at_any_moment",
    "failures::kills::",
];

/// What containers don't matter to, or what needs a short week that an engine has no time for: the
/// full tier leaves it out over containers.
pub(crate) const PROCESSES_SUFFICE: [&str; 18] = [
    "published::files::",
    "confinement::firewall::",
    "failures::outages::hostile::",
    "failures::outages::names::",
    "failures::outages::network::",
    "failures::outages::tls::",
    "failures::own_outages::clock::",
    "failures::own_outages::disk::",
    "failures::own_outages::engine::",
    "moderators::",
    "owners::buttons::",
    "time::pace::",
    "personas::",
    "published::consumers::",
    "published::push::",
    "published::site::",
    "time::seven_days::",
    "published::visitors::",
];

/// Kills at random in the quick tier, over processes and over containers. Every thirteenth takes
/// the launcher with it.
pub(crate) const KILLS_OVER_PROCESSES: &str = "40";
pub(crate) const KILLS_OVER_CONTAINERS: &str = "26";

/// Personas of the lab in the quick tier, drawn from the commit.
pub(crate) const PERSONAS: usize = 40;

/// Generated instances beside a sample of personas.
pub(crate) const CROWD: &str = "10";

/// Scenarios over processes wait most of the time: for a pace, a timeout, the end of an outage.
pub(crate) const SCENARIOS_AT_ONCE: &str = "12";

/// Unit tests wait less.
pub(crate) const TESTS_AT_ONCE: &str = "6";

/// Programs of [`READERS`] that only the full tier's packages have: the quick tier names those that
/// are missing.
pub(crate) const READER_PROGRAMS: [&str; 3] = ["chromium", "firefox-esr", "promtool"];

/// What firewalls refused. Only root can try.
pub(crate) const FIREWALL_TABLE: &str = "firewall.md";

/// Tables that the full tier's tests must have written: a skipped test writes none.
pub(crate) const TABLES: [&str; 4] = ["adversary.md", "faults.md", FIREWALL_TABLE, "fuzz.md"];

/// Free bytes below which CI does not begin: the build takes some 6 GB, the images' build stage 3
/// GB.
pub(crate) const FREE_BYTES_MIN: u64 = 15_000_000_000;
