//! The names of unreachable hosts, and a DNS server for them.
//!
//! The server answers queries over UDP with one address for a name that has one, and NXDOMAIN for
//! all others. It ignores whatever is not a query with one question.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context as _, Result};
use protocol::Host;
use tokio::net::UdpSocket;

/// An address that never answers.
pub(crate) const SILENT: Ipv4Addr = Ipv4Addr::new(127, 99, 0, 1);

/// Longest query in bytes: a name of 255, and the fields around it.
const QUERY_BYTES_MAX: usize = 1024;

/// Bytes before the question (RFC 1035 §4.1.1).
const HEADER_BYTES: usize = 12;

/// Length of type and class after a question's name.
const TYPE_AND_CLASS_BYTES: usize = 4;

/// Flags of an answer to a query with recursion desired (RFC 1035 §4.1.1).
const RESPONSE: u8 = 0x81;
const RECURSION: u8 = 0x80;
const NO_SUCH_NAME: u8 = 3;

/// The type and class of an IPv4 address.
const A_IN: [u8; 4] = [0, 1, 0, 1];

/// A pointer to the question's name.
const SAME_NAME: [u8; 2] = [0xc0, HEADER_BYTES as u8];

/// Ten minutes: longer than any run needs an answer.
const TTL_S: [u8; 4] = [0, 0, 2, 88];

/// How a host fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It has no name.
    Nameless(u32),
    /// It refuses connections.
    Refusing(u32),
    /// It never answers.
    Silent(u32),
}

impl Kind {
    /// The kind of the host with this number. Of a hundred hosts, `named` have a name, and `silent`
    /// of these never answer. All kinds are evenly mixed.
    pub(crate) fn of(number: u32, named: u32, silent: u32) -> Self {
        // 37 and 100 have no common divisor, so each of a hundred values occurs once.
        match number.wrapping_mul(37) % 100 {
            place if place < silent => Self::Silent(number),
            place if place < named => Self::Refusing(number),
            _ => Self::Nameless(number),
        }
    }

    /// Its name, below its own registered domain.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Nameless(number) => format!("nameless-{number}.test"),
            Self::Refusing(number) => format!("refusing-{number}.test"),
            Self::Silent(number) => format!("silent-{number}.test"),
        }
    }
}

/// The names of the lab's crowd, all of which respond, from the lab's file for gateways without
/// DNS.
pub(crate) fn crowd(names_file: &Path) -> Result<Vec<Host>> {
    std::fs::read_to_string(names_file)?
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| name.contains(".crowd-") && !name.starts_with('*'))
        .map(|name| Host::parse(name).with_context(|| name.to_owned()))
        .collect()
}

/// An address without a server, one of 65 536.
pub(crate) fn refusing(number: u32) -> Ipv4Addr {
    let [_, _, third, fourth] = number.to_be_bytes();
    Ipv4Addr::new(127, 100, third, fourth)
}

/// The DNS server. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct NameServer {
    /// The address for queries.
    pub(crate) address: SocketAddr,
}

impl NameServer {
    /// Starts the server. The lab's crowd is at `lab`, and the silent hosts are at `silent`.
    pub(crate) async fn start(lab: SocketAddr, silent: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        tokio::spawn(async move {
            let mut buffer = [0; QUERY_BYTES_MAX];
            while let Ok((bytes, from)) = socket.recv_from(&mut buffer).await {
                let query = buffer.get(..bytes).unwrap_or_default();
                if let Some(answer) = answer(query, |name| address_of(name, lab, silent)) {
                    // The client may be gone.
                    socket.send_to(&answer, from).await.ok();
                }
            }
        });
        Ok(Self { address })
    }
}

fn address_of(name: &str, lab: SocketAddr, silent: SocketAddr) -> Option<Ipv4Addr> {
    let of = |address: SocketAddr| match address.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    };
    let (first, _) = name.split_once('.')?;
    match first.split_once('-') {
        Some(("refusing", number)) => Some(refusing(number.parse().ok()?)),
        Some(("silent", _)) => of(silent),
        Some(_) => None,
        None => of(lab),
    }
}

/// The answer to a query with one question. `None` for anything else.
fn answer(query: &[u8], address_of: impl Fn(&str) -> Option<Ipv4Addr>) -> Option<Vec<u8>> {
    let (name, question) = question(query)?;
    let address = address_of(&name);
    let wants_address = question.ends_with(&A_IN);
    let found = address.filter(|_| wants_address);
    let code = if address.is_some() { 0 } else { NO_SUCH_NAME };
    let mut answer = query.get(..2)?.to_vec();
    answer.extend([
        RESPONSE,
        RECURSION | code,
        0,
        1,
        0,
        u8::from(found.is_some()),
    ]);
    answer.extend([0; 4]);
    answer.extend(question);
    if let Some(address) = found {
        answer.extend(SAME_NAME);
        answer.extend(A_IN);
        answer.extend(TTL_S);
        answer.extend([0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}

/// The name in the question, and the question's bytes.
fn question(query: &[u8]) -> Option<(String, &[u8])> {
    let behind = query.get(HEADER_BYTES..)?;
    let mut labels = Vec::new();
    let mut at = 0;
    loop {
        let length = usize::from(*behind.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = behind.get(at..at + length)?;
        labels.push(std::str::from_utf8(label).ok()?.to_ascii_lowercase());
        at += length;
    }
    let question = behind.get(..at + TYPE_AND_CLASS_BYTES)?;
    Some((labels.join("."), question))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u8) -> Vec<u8> {
        let mut query = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(u8::try_from(label.len()).unwrap());
            query.extend(label.as_bytes());
        }
        query.extend([0, 0, kind, 0, 1]);
        query
    }

    fn answered(name: &str, kind: u8) -> (u8, Option<[u8; 4]>) {
        let (lab, silent) = ("127.98.0.1:443", "127.99.0.1:443");
        let (lab, silent) = (lab.parse().unwrap(), silent.parse().unwrap());
        let query = query(name, kind);
        let answer = answer(&query, |name| address_of(name, lab, silent)).unwrap();
        assert_eq!(answer[..3], [7, 9, 0x81]);
        let end = query.len();
        assert_eq!(answer[HEADER_BYTES..end], query[HEADER_BYTES..]);
        let address = answer.get(end..).filter(|rest| !rest.is_empty());
        let address = address.map(|rest| rest[12..].try_into().unwrap());
        assert_eq!(answer[7], u8::from(address.is_some()));
        (answer[3] & 15, address)
    }

    #[test]
    fn each_kind_is_led_where_it_belongs() {
        assert_eq!(answered("nameless-1.test", 1), (3, None));
        assert_eq!(
            answered("Refusing-258.test", 1),
            (0, Some([127, 100, 1, 2]))
        );
        assert_eq!(answered("refusing-258.test", 28), (0, None));
        assert_eq!(answered("silent-3.test", 1), (0, Some([127, 99, 0, 1])));
        assert_eq!(
            answered("n00001.crowd-1.test", 1),
            (0, Some([127, 98, 0, 1]))
        );
    }

    #[test]
    fn what_is_no_query_is_not_answered() {
        assert_eq!(answer(&[], |_| None), None);
        let whole = query("a.test", 1);
        for bytes in 0..whole.len() {
            assert_eq!(answer(&whole[..bytes], |_| None), None, "{bytes}");
        }
    }

    #[test]
    fn of_a_hundred_hosts_so_many_are_of_each_kind() {
        let kinds: Vec<_> = (0..100).map(|number| Kind::of(number, 50, 20)).collect();
        let count = |is: fn(&Kind) -> bool| kinds.iter().filter(|kind| is(kind)).count();
        assert_eq!(count(|kind| matches!(kind, Kind::Nameless(_))), 50);
        assert_eq!(count(|kind| matches!(kind, Kind::Silent(_))), 20);
        assert_eq!(count(|kind| matches!(kind, Kind::Refusing(_))), 30);
    }
}
