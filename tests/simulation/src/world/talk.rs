//! Conversations between the servers of a simulated Fediverse, and what one server shows of them:
//! its peers list, and what a walk through its public conversations finds.
//!
//! A model with few numbers. Server sizes follow Zipf's law. People of large servers follow people
//! of many servers, most of which are large too.

use std::collections::BTreeSet;

use rand::Rng as _;
use rand::distr::Distribution as _;
use rand::distr::weighted::WeightedIndex;
use rand::rngs::StdRng;

/// Servers followed from the largest server, as a fraction of all.
const LARGEST_FOLLOWS: f64 = 0.2;

/// Servers followed even from the smallest server.
const FOLLOWS_MIN: f64 = 2.0;

/// Fraction of the follows that choose a server by its size. The others choose any server.
const FOLLOWS_BY_SIZE: f64 = 0.7;

/// Additional servers in a peers list for each that is followed or follows: people met in
/// conversations over the years.
const MET_PER_NEIGHBOUR: usize = 3;

/// Fraction of the accounts that want to be found: Mastodon's setting is off until a person turns
/// it on.
const FINDABLE: f64 = 0.3;

/// Fraction of posts by a server's own people in its public timeline.
const LOCAL_POSTS: f64 = 0.4;

/// Posts of the timeline that a walk reads, and posts whose thread and favourites it requests. With
/// the accounts they amount to its 40 requests.
const POSTS: usize = 40;
const THREADS: usize = 14;

/// Accounts whose newest posts it reads, and the people who appear in each account's posts.
const ACCOUNTS: usize = 8;
const PEOPLE_PER_ACCOUNT: usize = 4;

/// Most people in a thread, and most people who favourited a post.
const REPLIES_MAX: usize = 6;
const FAVOURITES_MAX: usize = 10;

#[derive(Debug)]
pub(crate) struct Talk {
    servers: Vec<Server>,
}

#[derive(Debug, Default)]
struct Server {
    weight: f64,
    follows: Vec<u32>,
    followers: Vec<u32>,
    peers: Vec<u32>,
}

impl Talk {
    /// Draws this number of servers, the largest first.
    pub(crate) fn new(count: u32, chance: &mut StdRng) -> anyhow::Result<Self> {
        let weights: Vec<f64> = (1..=count).map(|rank| 1.0 / f64::from(rank)).collect();
        let by_size = WeightedIndex::new(&weights)?;
        let most = (LARGEST_FOLLOWS * f64::from(count)).max(FOLLOWS_MIN);
        let mut servers: Vec<Server> = weights
            .iter()
            .map(|weight| {
                let links = (most * weight.sqrt()).max(FOLLOWS_MIN).round() as usize;
                let drawn = (0..links).map(|_| match chance.random_bool(FOLLOWS_BY_SIZE) {
                    true => by_size.sample(chance) as u32,
                    false => chance.random_range(0..count),
                });
                Server {
                    weight: *weight,
                    follows: drawn.collect::<BTreeSet<_>>().into_iter().collect(),
                    ..Server::default()
                }
            })
            .collect();
        for number in 0..count {
            let follows = servers
                .get(number as usize)
                .map(|server| server.follows.clone());
            for followed in follows.unwrap_or_default() {
                if let Some(server) = servers.get_mut(followed as usize) {
                    server.followers.push(number);
                }
            }
        }
        let mut talk = Self { servers };
        for number in 0..count {
            let peers = talk.met(number, chance);
            if let Some(server) = talk.servers.get_mut(number as usize) {
                server.peers = peers;
            }
        }
        Ok(talk)
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.servers.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn peers(&self, number: u32) -> &[u32] {
        self.server(number).map_or(&[], |server| &server.peers)
    }

    /// The servers that a walk through a server finds.
    pub(crate) fn walk(&self, number: u32, chance: &mut StdRng) -> BTreeSet<u32> {
        let Some(here) = self.server(number) else {
            return BTreeSet::new();
        };
        let mut people = Vec::new();
        let authors: Vec<u32> = (0..POSTS)
            .filter_map(|_| self.author(number, here, chance))
            .collect();
        for author in authors.iter().take(THREADS) {
            let replies = chance.random_range(0..=REPLIES_MAX);
            people.extend((0..replies).filter_map(|_| self.neighbour(*author, chance)));
            // A copy of a post from elsewhere has only local favourites.
            if *author == number {
                let favourites = chance.random_range(0..=FAVOURITES_MAX);
                people.extend((0..favourites).filter_map(|_| one_of(&here.followers, chance)));
            }
        }
        let of_accounts = ACCOUNTS * PEOPLE_PER_ACCOUNT;
        people.extend((0..of_accounts).filter_map(|_| self.neighbour(number, chance)));
        people.extend(authors);
        people.retain(|_| chance.random_bool(FINDABLE));
        people.into_iter().collect()
    }

    /// Servers that can be found from these if every server shows its peers list, or if its
    /// conversations are read often enough: every server in a peers list is in some conversation
    /// too.
    pub(crate) fn reachable(&self, from: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
        let mut reached: BTreeSet<u32> = from.into_iter().collect();
        let mut ahead: Vec<u32> = reached.iter().copied().collect();
        while let Some(number) = ahead.pop() {
            let Some(server) = self.server(number) else {
                continue;
            };
            let shown = server.follows.iter().chain(&server.followers);
            ahead.extend(shown.copied().filter(|other| reached.insert(*other)));
        }
        reached
    }

    fn server(&self, number: u32) -> Option<&Server> {
        self.servers.get(usize::try_from(number).ok()?)
    }

    /// The author's server of a post in a server's timeline: the server itself, or one that it
    /// follows. Larger servers post more.
    fn author(&self, number: u32, here: &Server, chance: &mut StdRng) -> Option<u32> {
        if here.follows.is_empty() || chance.random_bool(LOCAL_POSTS) {
            return Some(number);
        }
        let weight = |other: &u32| self.server(*other).map_or(0.0, |server| server.weight);
        let by_size = WeightedIndex::new(here.follows.iter().map(weight)).ok()?;
        here.follows.get(by_size.sample(chance)).copied()
    }

    /// A server whose people talk with the people of this one.
    fn neighbour(&self, number: u32, chance: &mut StdRng) -> Option<u32> {
        let server = self.server(number)?;
        let all = server.follows.len() + server.followers.len();
        let drawn = chance.random_range(0..all.max(1));
        let others = server.follows.iter().chain(&server.followers);
        others.copied().nth(drawn)
    }

    fn met(&self, number: u32, chance: &mut StdRng) -> Vec<u32> {
        let Some(server) = self.server(number) else {
            return Vec::new();
        };
        let near = server.follows.iter().chain(&server.followers).copied();
        let mut met: BTreeSet<u32> = near.clone().collect();
        for other in near {
            met.extend((0..MET_PER_NEIGHBOUR).filter_map(|_| self.neighbour(other, chance)));
        }
        met.remove(&number);
        met.into_iter().collect()
    }
}

fn one_of(numbers: &[u32], chance: &mut StdRng) -> Option<u32> {
    let drawn = chance.random_range(0..numbers.len().max(1));
    numbers.get(drawn).copied()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    fn talk() -> (Talk, StdRng) {
        let mut chance = StdRng::seed_from_u64(20_261_126);
        (Talk::new(2000, &mut chance).unwrap(), chance)
    }

    #[test]
    fn large_servers_know_many_and_small_ones_few() {
        let (talk, _) = talk();
        assert!(talk.peers(0).len() > 1000, "{}", talk.peers(0).len());
        let small: usize = (1000..2000).map(|number| talk.peers(number).len()).sum();
        assert!((5..200).contains(&(small / 1000)), "{small}");
    }

    #[test]
    fn a_walk_finds_a_few_servers_that_can_be_reached() {
        let (talk, mut chance) = talk();
        let reachable = talk.reachable([0]);
        assert!(reachable.len() > 1900, "{}", reachable.len());
        for number in [0, 10, 1500] {
            let found = talk.walk(number, &mut chance);
            assert!(!found.is_empty() && found.len() < 60, "{}", found.len());
            assert!(found.is_subset(&reachable));
        }
    }
}
