//! Hosts, instances, verdicts and records for tests, so that no test spells one out: a test names
//! only the members that it is about.
//!
//! `protocol` and `census` can't use it in their unit tests, since it links another copy of them.

use census::state::Verdict;
use protocol::{Instance, Private};

/// An instance as it is found alive.
pub fn instance() -> Instance {
    Instance {
        private: Private::No,
        ..software("mastodon", "4.5.0")
    }
}

/// What a record or a published row has of an instance.
pub fn software(name: &str, version: &str) -> Instance {
    Instance {
        software: Some(name.to_owned()),
        version: Some(version.to_owned()),
        ..Instance::default()
    }
}

pub fn alive() -> Verdict {
    Verdict::Alive(instance())
}

/// An alive verdict of an instance that asks, or does not ask, to be left out of statistics.
pub fn alive_with(private: Private) -> Verdict {
    Verdict::Alive(Instance {
        private,
        ..instance()
    })
}
