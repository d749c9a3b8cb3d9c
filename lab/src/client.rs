//! A client that trusts the lab, for its health check and for tests. It sends given bytes and reads
//! the raw answer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connects to a persona over TLS, trusting only the certificates of `ca_pem`.
///
/// # Errors
/// Fails if the connection or its handshake fails, or if `ca_pem` is not PEM.
pub async fn connect(
    address: SocketAddr,
    name: &str,
    ca_pem: &[u8],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem) {
        let certificate = certificate.map_err(io::Error::other)?;
        roots.add(certificate).map_err(io::Error::other)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let tcp = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config))
        .connect(server, tcp)
        .await
}

/// Requests a path with `Connection: close` and reads at most `bytes_max` of the raw answer.
pub async fn ask(
    address: SocketAddr,
    name: &str,
    ca_pem: &[u8],
    request: &str,
    bytes_max: u64,
) -> io::Result<Vec<u8>> {
    let mut stream = connect(address, name, ca_pem).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let read = stream.take(bytes_max).read_to_end(&mut answer).await;
    match read {
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(answer),
    }
}
