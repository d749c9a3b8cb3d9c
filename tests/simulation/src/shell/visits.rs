//! Checks that no domain, address or block is visited faster than its pace (invariant I8), with
//! records that are separate from the gateway's.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use census::time::Timestamp;
use gateway::Paces;

/// Visits remembered of each kind before those that no pace concerns any longer are forgotten.
const REMEMBERED: usize = 65_536;

/// The last visits, which a killed gateway forgets.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    paces: Paces,
    domains: HashMap<Box<str>, Timestamp>,
    addresses: HashMap<IpAddr, Timestamp>,
    blocks: HashMap<[u8; 3], Timestamp>,
    proven: HashSet<IpAddr>,
}

impl Visits {
    /// # Errors
    /// The domain's name servers were asked faster than its pace.
    pub(crate) fn looked_up(&mut self, domain: &str, at: Timestamp) -> anyhow::Result<()> {
        let is_early = is_early(&mut self.domains, domain.into(), at, self.paces.group);
        anyhow::ensure!(!is_early, "{domain} was asked twice within its pace");
        Ok(())
    }

    /// # Errors
    /// The address or its block was dialled faster than its pace.
    pub(crate) fn dialled(&mut self, address: IpAddr, at: Timestamp) -> anyhow::Result<()> {
        let is_proven = self.proven.contains(&address);
        let by_address = is_early(&mut self.addresses, address, at, self.paces.address);
        anyhow::ensure!(
            is_proven || !by_address,
            "{address} was dialled twice within its pace"
        );
        if let IpAddr::V4(address) = address {
            let [a, b, c, _] = address.octets();
            let by_block = is_early(&mut self.blocks, [a, b, c], at, self.paces.block);
            anyhow::ensure!(
                !by_block,
                "the block of {address} was dialled twice within its pace"
            );
        }
        Ok(())
    }

    /// An instance responded at this address, which is visited more often from now on.
    pub(crate) fn prove(&mut self, address: IpAddr) {
        self.proven.insert(address);
    }
}

fn is_early<K: Eq + Hash>(
    last: &mut HashMap<K, Timestamp>,
    key: K,
    at: Timestamp,
    pace: Duration,
) -> bool {
    if last.len() > REMEMBERED {
        last.retain(|_, last| at.since(*last) < pace);
    }
    let last = last.insert(key, at);
    last.is_some_and(|last| at.since(last) < pace)
}
