//! A farm of invented hosts behind one domain with wildcard DNS, and the servers that name them
//! all.
//!
//! All of them respond like any other instance. They show what such a farm costs a census.

use crate::personas::shapes::{PEERS_PATH, flat, living, long_list};
use crate::play::Play;

pub const DOMAIN: &str = "farm-of-names.test";

/// Number of servers, each below its own registered domain.
pub const SERVERS: u32 = 50;

/// Most names: a census takes 250 000 from one list.
pub const NAMES_MAX: u64 = 12_500_000;

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

    /// The behaviour of a server or a host of the farm. `None` for any other name.
    pub fn play(self, host: &str) -> Option<Play> {
        if self.names == 0 {
            return None;
        }
        if host
            .strip_suffix(DOMAIN)
            .is_some_and(|rest| rest.ends_with('.'))
        {
            let play = living(host, "mastodon", "4.5.2");
            return Some(play.route(PEERS_PATH, flat::<&str>(&[])));
        }
        let number = (0..SERVERS).find(|number| server(*number) == host)?;
        let each = self.names / u64::from(SERVERS);
        let first = u64::from(number) * each;
        let list = long_list(each, move |n| format!("h{:08}.{DOMAIN}", first + n));
        Some(living(host, "mastodon", "4.5.2").route(PEERS_PATH, list))
    }
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
        for name in [DOMAIN, "xfarm-of-names.test", "social.names-50.test"] {
            assert!(farm.play(name).is_none(), "{name}");
        }
        assert_eq!(Farm::default().servers().count(), 0);
        assert!(Farm::default().play("a.farm-of-names.test").is_none());
    }
}
