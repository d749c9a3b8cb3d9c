//! Hosts, instances, verdicts, records and times for tests, so that no test spells one out: a test
//! names only the members that it is about.
//!
//! `protocol` and `census` can't use it in their unit tests, since it links another copy of them.
#![expect(
    clippy::expect_used,
    reason = "a test's own name that is invalid is a mistake in the test"
)]

mod needs;

use census::state::{Record, State, Verdict};
use census::time::Timestamp;
use protocol::container::End;
use protocol::egress::{Account, Budget, FailedSide};
use protocol::{DeadReason, Host, Instance, Private};

pub use self::needs::{Need, are_there, output, skip};

/// The first line of a sound output.
pub const HELLO: &str = r#"{"hello":{"protocol":4,"checker":"0.1.0"}}"#;

/// The present of a test that has no other.
pub const NOW: Timestamp = Timestamp(1_790_000_000_000);

/// That many seconds after the epoch.
pub const fn at(second: i64) -> Timestamp {
    Timestamp(second * 1000)
}

pub fn host(name: &str) -> Host {
    Host::parse(name).expect("a valid name")
}

pub fn labelled(label: &str) -> Host {
    host(&format!("{label}.example"))
}

/// 1 is `n1.example`.
pub fn numbered(number: usize) -> Host {
    labelled(&format!("n{number}"))
}

pub fn instance() -> Instance {
    Instance {
        private: Private::No,
        variant: Some("glitch".to_owned()),
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

pub fn dead(reason: DeadReason) -> Verdict {
    Verdict::Dead {
        reason,
        status: None,
        to: None,
    }
}

/// A record of `a.example` in that state since [`NOW`].
pub fn record(state: State) -> Record {
    Record {
        state,
        ..Record::discovered(labelled("a"), NOW, NOW)
    }
}

/// The gateway's account of a check without failures.
pub fn account() -> Account {
    Account {
        connections: 1,
        bytes_up: 1,
        bytes_down: 1,
        sni_refused: 0,
        failed: FailedSide::None,
        budget_hit: None,
        up: true,
    }
}

/// The account of a check whose container opened no connection.
pub fn unconnected() -> Account {
    Account {
        connections: 0,
        ..account()
    }
}

/// The account of a check whose container asked for another host.
pub fn astray() -> Account {
    Account {
        sni_refused: 1,
        ..account()
    }
}

/// The account of a check whose bytes ran out.
pub fn over_budget() -> Account {
    Account {
        budget_hit: Some(Budget::Bytes),
        ..account()
    }
}

/// The account of a check during which our own network was down.
pub fn offline() -> Account {
    Account {
        up: false,
        ..account()
    }
}

/// How a container ended that nobody killed.
pub fn end(exit_code: i64) -> Option<End> {
    Some(End {
        exit_code,
        out_of_memory: false,
        killed: None,
        millis: 1,
    })
}
