//! Two domains with very many names: a farm of invented hosts behind wildcard DNS, all of which
//! some servers name, and a hoster with a tenth as many customers.
//!
//! All of them respond like any other instance. A census that knows the hoster lists its customers,
//! and none of the farm.

use crate::personas::shapes::{PEERS_PATH, flat, living, long_list};
use crate::play::Play;

pub const DOMAIN: &str = "farm-of-names.test";

const HOSTER: &str = "hoster.test";

/// Number of servers, each below its own registered domain.
pub const SERVERS: u32 = 50;

/// Most names: a census takes 250 000 from one list.
pub const NAMES_MAX: u64 = 12_500_000;

/// The hoster has one customer for this many names of the farm.
const NAMES_PER_CUSTOMER: u64 = 10;

/// Names of the farm whose state is compared: more than a group's threshold.
const COMPARED_MAX: u64 = 20;

/// A farm with this number of names, which its servers list in equal parts. Without names there are
/// no servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Farm {
    names: u64,
}

impl Farm {
    /// A farm of `names`, at most [`NAMES_MAX`].
    pub fn new(names: u64) -> Self {
        Self {
            names: names.min(NAMES_MAX),
        }
    }

    pub fn servers(self) -> impl Iterator<Item = String> {
        let servers = if self.names == 0 { 0 } else { SERVERS };
        (0..servers).map(server)
    }

    pub fn customers(self) -> impl Iterator<Item = String> {
        (0..self.names / NAMES_PER_CUSTOMER).map(|number| format!("c{number:04}.{HOSTER}"))
    }

    /// Some names of the farm, none of which may be listed.
    pub fn compared(self) -> impl Iterator<Item = String> {
        (0..self.names.min(COMPARED_MAX)).map(name)
    }

    /// The behaviour of a server, a customer or a host of the farm. `None` for any other name.
    pub fn play(self, host: &str) -> Option<Play> {
        if self.names == 0 {
            return None;
        }
        let is_below = |domain| {
            host.strip_suffix(domain)
                .is_some_and(|rest: &str| rest.ends_with('.'))
        };
        if is_below(DOMAIN) || is_below(HOSTER) {
            let play = living(host, "mastodon", "4.5.2");
            return Some(play.route(PEERS_PATH, flat::<&str>(&[])));
        }
        let number = (0..SERVERS).find(|number| server(*number) == host)?;
        let each = self.names / u64::from(SERVERS);
        let first = u64::from(number) * each;
        let list = long_list(each, move |n| name(first + n));
        Some(living(host, "mastodon", "4.5.2").route(PEERS_PATH, list))
    }
}

fn name(number: u64) -> String {
    format!("h{number:08}.{DOMAIN}")
}

fn server(number: u32) -> String {
    format!("social.names-{number:02}.test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_belongs_to_the_farm_plays_and_nobody_else() {
        let farm = Farm::new(1000);
        assert_eq!(farm.servers().count(), 50);
        assert!(farm.servers().all(|name| farm.play(&name).is_some()));
        assert!(farm.play("anything.farm-of-names.test").is_some());
        assert_eq!(farm.customers().count(), 100);
        assert!(farm.customers().all(|name| farm.play(&name).is_some()));
        for name in [DOMAIN, "xfarm-of-names.test", "social.names-50.test"] {
            assert!(farm.play(name).is_none(), "{name}");
        }
        assert_eq!(Farm::default().servers().count(), 0);
        assert!(Farm::default().play("a.farm-of-names.test").is_none());
    }
}
