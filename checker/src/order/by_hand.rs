//! Name and connection errors for `--direct`. In the census, the gateway finds these.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::Host;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::order::{self, EgressError};

/// Longest wait for one address to accept, equal to the check's limit for a first byte.
const CONNECT_MAX: Duration = Duration::from_secs(10);

const ADDRESSES_MAX: usize = 4;

/// Why a check by hand cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ByHandError {
    #[error("{host} does not resolve")]
    Resolve {
        host: Host,
        #[source]
        source: io::Error,
    },
    #[error("{host} accepts no connection at {address}")]
    Connect {
        host: Host,
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// The file of `--ca` could not be read.
    #[error(transparent)]
    CaFile(#[from] EgressError),
    #[error("{path} holds no certificate in PEM")]
    NoCertificate { path: PathBuf },
}

/// Reads the roots of `--ca`.
pub fn read_ca(path: &Path) -> Result<Vec<u8>, ByHandError> {
    let pem = order::read_file(path, order::CA_BYTES_MAX)?;
    match CertificateDer::pem_slice_iter(&pem).next() {
        Some(Ok(_)) => Ok(pem),
        Some(Err(_)) | None => Err(ByHandError::NoCertificate {
            path: path.to_owned(),
        }),
    }
}

/// Resolves the host and connects to port 443 once, so that a failure can be named.
///
/// # Errors
/// If the name doesn't resolve, or none of its first four addresses accepts a
/// connection.
pub fn reach(host: &Host) -> Result<(), ByHandError> {
    let addresses = (host.as_str(), 443).to_socket_addrs();
    let addresses = addresses.map_err(|source| ByHandError::Resolve {
        host: host.clone(),
        source,
    })?;
    connect_to_any(host, addresses.take(ADDRESSES_MAX), |address| {
        TcpStream::connect_timeout(address, CONNECT_MAX).map(drop)
    })
}

fn connect_to_any(
    host: &Host,
    addresses: impl Iterator<Item = SocketAddr>,
    connect: impl Fn(&SocketAddr) -> io::Result<()>,
) -> Result<(), ByHandError> {
    let mut last = None;
    for address in addresses {
        match connect(&address) {
            Ok(()) => return Ok(()),
            Err(source) => last = Some((address, source)),
        }
    }
    let host = host.clone();
    Err(match last {
        Some((address, source)) => ByHandError::Connect {
            host,
            address,
            source,
        },
        None => ByHandError::Resolve {
            host,
            source: io::ErrorKind::NotFound.into(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host::parse("a.example").unwrap()
    }

    #[test]
    fn a_refused_connection_is_named_with_its_address() {
        let addresses = ["127.0.0.1:443", "[::1]:443"].map(|text| text.parse().unwrap());
        let refused = |_: &SocketAddr| Err(io::ErrorKind::ConnectionRefused.into());
        let error = connect_to_any(&host(), addresses.into_iter(), refused).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.example accepts no connection at [::1]:443"
        );
        let second_accepts = |address: &SocketAddr| match address.is_ipv6() {
            true => Ok(()),
            false => Err(io::ErrorKind::ConnectionRefused.into()),
        };
        connect_to_any(&host(), addresses.into_iter(), second_accepts).unwrap();
    }

    #[test]
    fn a_name_without_an_address_does_not_resolve() {
        let error = connect_to_any(&host(), std::iter::empty(), |_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "a.example does not resolve");
    }

    #[test]
    fn a_file_of_roots_without_a_certificate_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "-----BEGIN PRIVATE KEY-----\n").unwrap();
        let error = read_ca(file.path()).unwrap_err().to_string();
        assert!(error.ends_with("holds no certificate in PEM"), "{error}");
        assert!(error.starts_with(file.path().to_str().unwrap()), "{error}");
    }
}
