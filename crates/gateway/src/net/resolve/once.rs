//! Looks a name up once, without remembering the name.
//!
//! It takes an invented name, which is never looked up again and therefore must not evict useful
//! entries. It returns the name's addresses, or whose failure it is that there is no answer.
//! Invariant I5: a failure is the name's only while other names are answered.

use std::net::SocketAddr;
use std::time::Duration;

use protocol::Host;

use super::{Answer, Known, Resolver, SILENCE, Source, ask_dns, now};
use crate::wire::control::Family;

/// If a resolver gave no valid answer for this long, the resolver itself may be failing. A census
/// at work gets many answers a minute.
pub const WORKED_WITHIN: Duration = Duration::from_mins(5);

/// The result of a single look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Once {
    /// Its addresses.
    Found(Vec<SocketAddr>),
    /// There is no such name, or it has no address.
    Nothing,
    /// The name's servers return an error, while other names are answered.
    ServerFailed,
    /// The name's servers don't answer, while others do.
    TimedOut,
    /// A failure of ours: nothing is known about the name.
    OwnFailure,
    /// There is no route to the resolver.
    Offline,
}

impl Resolver {
    /// Looks `host` up within the configured timeout. `families` are those that this machine has.
    pub async fn look_up_once(&self, host: &Host, families: &[Family]) -> Once {
        let answer = match &self.source {
            Source::File(file) => self.ask_file(file, host).await,
            Source::Dns(resolver, _) => ask_dns(resolver, host, families, self.timeout).await,
        };
        match answer {
            Answer::Known(known, _) => {
                let mut memory = self.memory();
                memory.resolver_works(now());
                memory.has_resolved |= matches!(known, Known::Found(_));
                match known {
                    Known::Found(targets) => Once::Found(targets),
                    Known::NoSuchName | Known::NoAddress => Once::Nothing,
                }
            }
            Answer::Failure(_) if !self.worked_lately() => Once::OwnFailure,
            Answer::Failure(detail) if detail == SILENCE => Once::TimedOut,
            Answer::Failure(_) => Once::ServerFailed,
            Answer::OwnFailure(_) => Once::OwnFailure,
            Answer::NoRoute => Once::Offline,
        }
    }

    fn worked_lately(&self) -> bool {
        let last = self.memory().last_answer;
        last.is_some_and(|last| now().saturating_duration_since(last) <= WORKED_WITHIN)
    }
}
