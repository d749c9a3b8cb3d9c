//! A name that is looked up once: what DNS says of it, and nothing is remembered of the name itself.
//!
//! In: a made-up name, which nobody will ask for again, so that it must not push out what others wait for. Out: its addresses, or whose failure it
//! is that there is no answer. Invariant I5: a failure is the name's only while others are answered.

use std::net::SocketAddr;
use std::time::Duration;

use protocol::Host;

use super::{Answer, Known, Resolver, SILENCE, Source, ask_dns, now};

/// A resolver that gave no proper answer for so long may itself be what fails. A census at work has many answers a minute.
pub const WORKED_WITHIN: Duration = Duration::from_mins(5);

/// What a name leads to that is looked up once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Once {
    /// Its addresses.
    Found(Vec<SocketAddr>),
    /// There is no such name, or it has no address.
    Nothing,
    /// The name's servers answer with an error, while others are answered.
    ServerFailed,
    /// The name's servers don't answer, while others do.
    TimedOut,
    /// Ours: nothing is known of the name.
    OwnFailure,
    /// The resolver can't be reached for want of a route.
    Offline,
}

impl Resolver {
    /// Looks `host` up, IPv4 and IPv6 together, within the setting's time-out.
    pub async fn look_up_once(&self, host: &Host) -> Once {
        let answer = match &self.source {
            Source::File(file) => self.ask_file(file, host).await,
            Source::Dns(resolver) => ask_dns(resolver, host, self.timeout).await,
        };
        match answer {
            Answer::Known(known, _) => {
                self.memory().resolver_works(now());
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
