//! A crowd of ordinary instances, generated from a number and a seed.
//!
//! Each registered domain has ten members. The first of each ten is a relay: a Mastodon that names
//! its own ten and two further relays, so that the whole crowd can be reached from the first member
//! in a few steps. Every member also names twenty to fifty random others, if its software has a
//! list of peers.

use crate::personas::shapes::{
    PEERS_PATH, flat, gotosocial, lemmy_federated, living, mbin, misskey_instances, peertube,
};
use crate::play::Play;

/// Most members: a census of a million, all of them responding.
pub const CROWD_MAX: u32 = 1_000_000;

/// Largest crowd with one line per member in the names file, which leaves room in its 16 MiB. A
/// larger crowd has one line per domain.
const NAMED_MAX: u32 = 200_000;

const PER_DOMAIN: u32 = 10;

/// Kinds of software with their weights in thousandths, roughly as in the Fediverse.
const SOFTWARE: [(&str, &str, u64); 17] = [
    ("mastodon", "4.5.2", 450),
    ("misskey", "2025.11.0", 100),
    ("wordpress", "6.8.3", 90),
    ("pleroma", "2.9.1", 45),
    ("akkoma", "3.17.0", 30),
    ("lemmy", "0.19.13", 45),
    ("peertube", "7.3.0", 50),
    ("gotosocial", "0.20.2", 40),
    ("pixelfed", "0.12.6", 25),
    ("friendica", "2025.07", 25),
    ("writefreely", "0.16.0", 25),
    ("sharkey", "2025.4.3", 25),
    ("snac", "2.84", 15),
    ("mitra", "4.12.0", 10),
    ("mbin", "1.8.2", 10),
    ("owncast", "0.2.3", 10),
    ("hometown", "4.2.17", 5),
];

/// A crowd: two numbers that determine everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crowd {
    size: u32,
    seed: u64,
}

impl Crowd {
    /// A crowd of `size`, at most [`CROWD_MAX`].
    pub fn new(size: u32, seed: u64) -> Self {
        Self {
            size: size.min(CROWD_MAX),
            seed,
        }
    }

    pub fn names(self) -> impl Iterator<Item = String> {
        (1..=self.size).map(name)
    }

    /// Their lines in the names file: their names, or in a large crowd a pattern per domain.
    pub fn patterns(self) -> impl Iterator<Item = String> {
        let (named, domains) = if self.size > NAMED_MAX {
            (0, self.size.div_ceil(PER_DOMAIN))
        } else {
            (self.size, 0)
        };
        let below = (1..=domains).map(|domain| format!("*.{}", domain_name(domain)));
        (1..=named).map(name).chain(below)
    }

    /// The members that the seed names.
    pub fn entrances(self) -> Vec<String> {
        (1..=self.size).take(1).map(name).collect()
    }

    /// A member's behaviour. `None` if the name is not a member's.
    pub fn play(self, host: &str) -> Option<Play> {
        let number = host.strip_prefix('n')?.split('.').next()?.parse().ok()?;
        if number == 0 || number > self.size || name(number) != host {
            return None;
        }
        let (software, version) = self.software(number);
        let peers = self.peers(number);
        let play = living(host, software, version).route(
            "/api/statusnet/config.json",
            crate::personas::shapes::statusnet_config(false.into()),
        );
        let texts: Vec<&str> = peers.iter().map(String::as_str).collect();
        Some(match software {
            "wordpress" | "pixelfed" | "writefreely" | "owncast" => play,
            "lemmy" => play.route("/api/v3/federated_instances", lemmy_federated(&texts, &[])),
            "peertube" => {
                let (ours, theirs) = peers.split_at(peers.len() / 2);
                play.route(
                    "/api/v1/server/following",
                    peertube("following", host, ours),
                )
                .route(
                    "/api/v1/server/followers",
                    peertube("follower", host, theirs),
                )
            }
            "gotosocial" => play.route(PEERS_PATH, gotosocial(&texts)),
            "sharkey" => play.route("/api/federation/instances", misskey_instances(&peers)),
            "mbin" => play.route("/api/federated", mbin(&texts)),
            _ => play.route(PEERS_PATH, flat(&peers)),
        })
    }

    /// Name and version of a member's software. Members are counted from 1, like in their names.
    pub fn software(self, number: u32) -> (&'static str, &'static str) {
        if is_relay(number) {
            return ("mastodon", "4.5.2");
        }
        let mut throw = chance(self.seed, number, 0) % 1000;
        for (software, version, weight) in SOFTWARE {
            if throw < weight {
                return (software, version);
            }
            throw -= weight;
        }
        ("mastodon", "4.5.2")
    }

    fn peers(self, number: u32) -> Vec<String> {
        let count = 20 + chance(self.seed, number, 1) % 31;
        let size = u64::from(self.size.max(1));
        let by_chance = (0..count).filter_map(|n| {
            let throw = chance(self.seed, number, n + 2) % size;
            u32::try_from(throw + 1).ok()
        });
        let mut numbers: Vec<u32> = by_chance.collect();
        if is_relay(number) {
            numbers.extend(number..number.saturating_add(PER_DOMAIN));
            let block = (number - 1) / PER_DOMAIN;
            numbers.extend([2 * block + 1, 2 * block + 2].map(|next| next * PER_DOMAIN + 1));
        }
        numbers.retain(|&peer| peer <= self.size && peer != number);
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(name).collect()
    }
}

fn is_relay(number: u32) -> bool {
    number % PER_DOMAIN == 1
}

/// The name of the member with this number, counted from 1.
pub fn name(number: u32) -> String {
    let domain = (number.saturating_sub(1)) / PER_DOMAIN + 1;
    format!("n{number:05}.{}", domain_name(domain))
}

fn domain_name(domain: u32) -> String {
    format!("crowd-{domain}.test")
}

/// `SplitMix64` of three numbers: the same for the same seed on every machine and in every version,
/// which no crate promises.
pub(crate) fn chance(seed: u64, number: u32, step: u64) -> u64 {
    let mut z = seed
        .wrapping_add(u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(step.wrapping_mul(0xD1B5_4A32_D192_ED03));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_whole_crowd_is_reached_from_its_entrance() {
        for size in [1, 9, 10, 11, 500, 1003] {
            let crowd = Crowd::new(size, 42);
            let mut known: BTreeSet<String> = crowd.entrances().into_iter().collect();
            let mut todo: Vec<String> = known.iter().cloned().collect();
            while let Some(host) = todo.pop() {
                let digits = host.split_once('.').unwrap().0;
                let number: u32 = digits.trim_start_matches('n').parse().unwrap();
                // Only relays certainly publish their peers.
                if is_relay(number) {
                    todo.extend(
                        crowd
                            .peers(number)
                            .into_iter()
                            .filter(|peer| known.insert(peer.clone())),
                    );
                }
            }
            assert_eq!(known.len(), size as usize);
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_crowd() {
        assert_eq!(Crowd::new(100, 7).peers(5), Crowd::new(100, 7).peers(5));
        assert_ne!(Crowd::new(100, 7).peers(5), Crowd::new(100, 8).peers(5));
    }

    #[test]
    fn only_members_play() {
        let crowd = Crowd::new(20, 1);
        assert!(crowd.names().all(|name| crowd.play(&name).is_some()));
        for name in [
            "n00021.crowd-3.test",
            "n00001.crowd-2.test",
            "n1.crowd-1.test",
            "x.test",
        ] {
            assert!(crowd.play(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_large_crowd_has_a_pattern_a_domain() {
        let small: Vec<String> = Crowd::new(11, 1).patterns().collect();
        assert!(small.into_iter().eq(Crowd::new(11, 1).names()));
        let large = Crowd::new(NAMED_MAX + 1, 1);
        let patterns: BTreeSet<String> = large.patterns().collect();
        assert_eq!(patterns.len(), 20_001);
        for name in large.names() {
            let (_, domain) = name.split_once('.').unwrap();
            assert!(patterns.contains(&format!("*.{domain}")), "{name}");
        }
    }

    #[test]
    fn the_weights_make_a_thousand() {
        assert_eq!(
            SOFTWARE.iter().map(|(_, _, weight)| weight).sum::<u64>(),
            1000
        );
    }
}
