//! Detects that all requests come from one address: a TLS terminator hides its clients, who then
//! share one limit.
//!
//! It takes each request's client and time, and reports when a long run of requests has one client
//! and when that run ends. It keeps a keyed hash of the last client and no address (invariant I10).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use crate::clients::Client;

/// Length of a run of requests from one client that is reported. A client within its limits needs
/// more than an hour for it, without requests of others in between. Refused requests count too, so
/// a flood by one client is also reported. The report only names a possible cause.
pub const RUN_MIN: u32 = 300;

/// Shortest time between two reports that all requests have one client.
pub const REPORT_EVERY: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The last [`RUN_MIN`] requests, or more, have one client.
    OneClient,
    /// Another client came, after [`News::OneClient`] was reported.
    Over,
}

/// The current run of requests from one client.
#[derive(Debug, Default)]
pub struct OneClient {
    key: RandomState,
    last: Option<u64>,
    run: u32,
    reported: Option<Instant>,
    is_reported: bool,
}

impl OneClient {
    /// Counts a request. Ignores one whose client is unknown.
    pub fn note(&mut self, client: Client, now: Instant) -> Option<News> {
        if client == Client::Unknown {
            return None;
        }
        let client = Some(self.key.hash_one(client));
        if self.last != client {
            self.last = client;
            self.run = 1;
            return std::mem::take(&mut self.is_reported).then_some(News::Over);
        }
        self.run = self.run.saturating_add(1);
        let is_due = self
            .reported
            .is_none_or(|at| now.saturating_duration_since(at) >= REPORT_EVERY);
        if self.run < RUN_MIN || !is_due {
            return None;
        }
        self.reported = Some(now);
        self.is_reported = true;
        Some(News::OneClient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Client {
        Client::at(text.parse().unwrap())
    }

    #[test]
    fn a_run_of_one_client_is_reported_once_an_hour_and_its_end_once() {
        for address in ["10.0.0.1", "203.0.113.7", "2001:db8::1"] {
            let (mut one, start) = (OneClient::default(), Instant::now());
            let mut news = |who: &str, count: u32, at: Duration| {
                (0..count)
                    .filter_map(|_| one.note(client(who), start + at))
                    .collect::<Vec<_>>()
            };
            let soon = REPORT_EVERY - Duration::from_secs(1);
            assert_eq!(news(address, RUN_MIN - 1, Duration::ZERO), []);
            assert_eq!(news(address, 1000, Duration::ZERO), [News::OneClient]);
            assert_eq!(news(address, 1000, soon), []);
            assert_eq!(news(address, 10, REPORT_EVERY), [News::OneClient]);
            assert_eq!(news("192.0.2.9", 10, REPORT_EVERY), [News::Over]);
            assert_eq!(news(address, 1000, REPORT_EVERY + soon), []);
        }
    }

    #[test]
    fn two_clients_in_turn_and_clients_that_nobody_knows_are_no_news() {
        let (mut one, now) = (OneClient::default(), Instant::now());
        for _ in 0..RUN_MIN * 2 {
            assert_eq!(one.note(client("192.0.2.1"), now), None);
            assert_eq!(one.note(client("192.0.2.2"), now), None);
        }
        for _ in 0..RUN_MIN * 2 {
            assert_eq!(one.note(Client::Unknown, now), None);
        }
    }
}
