//! Reads the egress directory: what a check needs to start.
//!
//! The gateway fills the directory with the order, the socket and further trust roots. Rejects
//! files over their bounds and anything that is not exactly an order. That is a fault of ours and
//! shows before `hello`, so it never counts against the host.

pub mod by_hand;
pub mod delivery;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use protocol::CheckOrder;
use protocol::limits;

/// Longest file of further roots. A CA's certificate in PEM takes 1 to 2 KiB.
pub const CA_BYTES_MAX: u64 = 256 * 1024;

/// The content of a check's egress directory, as the gateway writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    /// The requests to make, and the contact to name.
    pub order: CheckOrder,
    /// The socket that leads to the host.
    pub socket: PathBuf,
    /// Further trust roots in PEM, in the lab only.
    pub ca_pem: Option<Vec<u8>>,
}

/// What to do with further trust roots in the egress directory. The gateway fills that directory,
/// and a gateway whose roots a checker trusts can read and forge everything that hosts send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtraRoots {
    /// They are an error: outside the lab nobody puts any there.
    Refuse,
    /// They are trusted: the launcher runs with the lab's settings.
    Trust,
}

/// Why a check cannot start. The fault is ours, never the host's.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    #[error("{path} could not be read")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} is longer than {bytes_max} bytes")]
    TooLong {
        path: PathBuf,
        /// Its bound in bytes.
        bytes_max: u64,
    },
    /// There are further trust roots, and the launcher did not declare this the lab.
    #[error(
        "{path} exists, but --extra-roots is missing: does the launcher have the lab's settings too?"
    )]
    ExtraRoots { path: PathBuf },
    #[error("the order has an invalid form")]
    Order(#[source] serde_json::Error),
    #[error("the order asks for several of list, walk and delivery; a container does one of them")]
    TwoOrders,
}

/// Reads the egress directory.
///
/// # Errors
/// When the order or the socket is missing, a file is over its bound or malformed, or `roots`
/// rejects further trust roots.
pub fn read(directory: &Path, roots: ExtraRoots) -> Result<Egress, EgressError> {
    let bytes_max = u64::try_from(limits::ORDER_BYTES_MAX).unwrap_or(u64::MAX);
    let order = read_file(&directory.join(limits::ORDER_FILE), bytes_max)?;
    let order: CheckOrder = serde_json::from_slice(&order).map_err(EgressError::Order)?;
    if !order.is_one() {
        return Err(EgressError::TwoOrders);
    }
    let ca = directory.join(limits::EXTRA_CA_FILE);
    let ca_pem = match (ca.symlink_metadata(), roots) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => None,
        (_, ExtraRoots::Refuse) => return Err(EgressError::ExtraRoots { path: ca }),
        (_, ExtraRoots::Trust) => Some(read_file(&ca, CA_BYTES_MAX)?),
    };
    let socket = directory.join(limits::EGRESS_SOCKET);
    // A missing socket would look like a host that doesn't answer.
    socket.metadata().map_err(|source| EgressError::Read {
        path: socket.clone(),
        source,
    })?;
    Ok(Egress {
        order,
        socket,
        ca_pem,
    })
}

/// Reads a file of at most `bytes_max` bytes.
pub fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, EgressError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| {
            file.take(bytes_max.saturating_add(1))
                .read_to_end(&mut bytes)
        })
        .map_err(|source| EgressError::Read {
            path: path.to_owned(),
            source,
        })?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > bytes_max {
        return Err(EgressError::TooLong {
            path: path.to_owned(),
            bytes_max,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::order::AskPeers;
    use std::fs;

    const ORDER: &str = r#"{"contact":"https://census.example","peers":"ask"}"#;

    #[test]
    fn an_order_is_read_with_its_socket() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("order.json"), ORDER).unwrap();
        assert!(matches!(
            read(directory.path(), ExtraRoots::Refuse),
            Err(EgressError::Read { .. })
        ));
        fs::write(directory.path().join("https.sock"), "").unwrap();
        let egress = read(directory.path(), ExtraRoots::Refuse).unwrap();
        assert_eq!(egress.order.peers, AskPeers::Ask);
        assert_eq!(egress.ca_pem, None);
    }

    #[test]
    fn further_roots_are_read_when_they_are_trusted_and_refused_otherwise() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("order.json"), ORDER).unwrap();
        fs::write(directory.path().join("https.sock"), "").unwrap();
        fs::write(directory.path().join("ca.pem"), "roots").unwrap();
        assert!(matches!(
            read(directory.path(), ExtraRoots::Refuse),
            Err(EgressError::ExtraRoots { .. })
        ));
        let egress = read(directory.path(), ExtraRoots::Trust).unwrap();
        assert_eq!(egress.ca_pem.unwrap(), b"roots");
    }

    #[test]
    fn a_malformed_or_long_order_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("https.sock"), "").unwrap();
        for order in ["{}", r#"{"contact":"a","peers":"ask","host":"b"}"#] {
            fs::write(directory.path().join("order.json"), order).unwrap();
            assert!(matches!(
                read(directory.path(), ExtraRoots::Refuse),
                Err(EgressError::Order(_))
            ));
        }
        let list = r#""list":{"path":"/","format":"csv","names_max":1}"#;
        let walk = r#""walk":{"seed":1}"#;
        let delivery =
            r#""delivery":[{"path":"/","ttl_s":1,"topic":"t","authorization":"a","body":""}]"#;
        for (one, other) in [(list, walk), (walk, delivery), (delivery, list)] {
            let both = format!(r#"{{"contact":"a","peers":"skip",{one},{other}}}"#);
            fs::write(directory.path().join("order.json"), both).unwrap();
            assert!(matches!(
                read(directory.path(), ExtraRoots::Refuse),
                Err(EgressError::TwoOrders)
            ));
        }
        let long = format!("{ORDER}{}", " ".repeat(limits::ORDER_BYTES_MAX));
        fs::write(directory.path().join("order.json"), long).unwrap();
        assert!(matches!(
            read(directory.path(), ExtraRoots::Refuse),
            Err(EgressError::TooLong { .. })
        ));
    }
}
