//! The state directory: files for the gateway, the checkers and the report.
//!
//! They are `ca.pem`, `expectations.json` and `names`. `names` is written last, so its presence
//! means that all three are complete. Each file is replaced atomically.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::crowd::Crowd;
use crate::farm::{self, Farm};
use crate::personas::Persona;
use crate::play::Dns;

/// Port of the names whose port is closed: tcpmux, which no container uses.
const CLOSED_PORT: u16 = 1;

/// The names file, for the gateway.
pub const NAMES_FILE: &str = "names";

/// The lab's authority, for the checkers.
pub const CA_FILE: &str = "ca.pem";

pub const TABLE_FILE: &str = "expectations.json";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Table {
    pub personas: Vec<Persona>,
    /// The members of the crowd, a farm's servers and a hoster's customers, all of which respond
    /// and are listed.
    pub crowd: Vec<String>,
    /// Names of a farm, which are known and not listed.
    #[serde(default)]
    pub farm: Vec<String>,
    /// Names added by hand, without expectations.
    #[serde(default)]
    pub added: Vec<String>,
}

impl Table {
    /// The table of these personas, this crowd and this farm.
    ///
    /// `names_added` is the text added to the names file by hand.
    pub fn new(personas: &[Persona], crowd: Crowd, farm: Farm, names_added: &str) -> Self {
        let first_words = names_added
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        Self {
            personas: personas.to_vec(),
            crowd: crowd
                .names()
                .chain(farm.servers())
                .chain(farm.customers())
                .collect(),
            farm: farm.compared().collect(),
            added: first_words
                .filter(|name| !name.starts_with(['#', '*']))
                .map(str::to_lowercase)
                .collect(),
        }
    }
}

/// The gateway's names file: one line per name or pattern.
pub(crate) fn names(personas: &[Persona], crowd: Crowd, farm: Farm, address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    let mut text = String::from("# NAME ADDRESS PORT, or NAME and what DNS says instead\n");
    for persona in personas {
        let place = match persona.play.dns {
            Dns::Served => format!("{ip} {port}"),
            Dns::ClosedPort => format!("{ip} {CLOSED_PORT}"),
            Dns::Nxdomain => "nxdomain".to_owned(),
            Dns::Servfail => "servfail".to_owned(),
            Dns::Nodata => "nodata".to_owned(),
            Dns::Timeout => "timeout".to_owned(),
            Dns::Absent => continue,
        };
        text.push_str(&format!("{} {place}\n", persona.host));
    }
    let wildcard = farm
        .servers()
        .take(1)
        .map(|_| format!("*.{}", farm::DOMAIN));
    let listed = crowd
        .patterns()
        .chain(farm.servers())
        .chain(farm.customers());
    for name in listed.chain(farm.compared()).chain(wildcard) {
        text.push_str(&format!("{name} {ip} {port}\n"));
    }
    text
}

pub(crate) fn write(dir: &Path, ca_pem: &str, table: &Table, names: &str) -> io::Result<()> {
    swap(dir, CA_FILE, ca_pem.as_bytes())?;
    swap(dir, TABLE_FILE, &serde_json::to_vec_pretty(table)?)?;
    swap(dir, NAMES_FILE, names.as_bytes())
}

fn swap(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    files::replace(&dir.join(name), files::Mode::Public, bytes)
}

/// This machine's address in its network: the first that is not loopback.
pub(crate) fn own_address() -> Option<IpAddr> {
    let table = fs::read_to_string("/proc/net/fib_trie").ok()?;
    local_addresses(&table).first().copied().map(IpAddr::V4)
}

/// The local addresses in the kernel's routing table, in its order, without loopback.
fn local_addresses(table: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in table.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(last.filter(|address| !address.is_loopback()));
        }
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personas;

    #[test]
    fn own_addresses_are_read_from_the_kernel() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 4\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.9.0.0\n        /16 link UNICAST\n     |-- 10.9.0.7\n        /32 host LOCAL\n";
        assert_eq!(local_addresses(table), [Ipv4Addr::new(10, 9, 0, 7)]);
    }

    #[test]
    fn the_names_file_has_a_line_for_each_name_that_stands_in_it() {
        let crowd = Crowd::new(3, 1);
        let address = SocketAddr::from(([10, 9, 0, 7], 8443));
        let names = names(&personas(), crowd, Farm::new(50), address);
        assert!(names.contains("\nseed.lab.test 10.9.0.7 8443\n"));
        assert!(names.contains("\ndns-nxdomain.lab.test nxdomain\n"));
        assert!(names.contains("\nport-closed.lab.test 10.9.0.7 1\n"));
        assert!(names.contains("\nn00003.crowd-1.test 10.9.0.7 8443\n"));
        assert!(names.contains("\nsocial.names-49.test 10.9.0.7 8443\n"));
        assert!(names.ends_with("\n*.farm-of-names.test 10.9.0.7 8443\n"));
        assert!(!names.contains("f000.lab-flood.test"));
    }

    #[test]
    fn files_are_swapped_whole() {
        let dir = tempfile::tempdir().unwrap();
        let table = Table::new(&personas(), Crowd::new(2, 1), Farm::default(), "");
        write(dir.path(), "pem", &table, "names").unwrap();
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 3);
        let text = fs::read(dir.path().join(TABLE_FILE)).unwrap();
        let read: Table = serde_json::from_slice(&text).unwrap();
        assert_eq!(read.crowd.len(), 2);
        assert_eq!(read.personas.len(), table.personas.len());
    }
}
