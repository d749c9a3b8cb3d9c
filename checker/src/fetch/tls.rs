//! TLS towards the host, and what a failed request means.

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::{Failure, SetupError};

/// Causes of an error that are looked through. reqwest, hyper, hyper-rustls and I/O make five.
const CAUSES_MAX: usize = 16;

/// The compiled-in roots and those of `ca_pem`; TLS 1.2 and 1.3, HTTP/1.1.
pub(super) fn config(ca_pem: Option<&[u8]>) -> Result<ClientConfig, SetupError> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for certificate in CertificateDer::pem_slice_iter(ca_pem.unwrap_or_default()) {
        let certificate = certificate.map_err(|error| SetupError::Roots(error.into()))?;
        roots
            .add(certificate)
            .map_err(|error| SetupError::Roots(error.into()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// What a request's error means: TLS when the handshake failed or was cut short, otherwise HTTP.
pub(super) fn failure_of(error: &reqwest::Error) -> Failure {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    for _ in 0..CAUSES_MAX {
        let Some(error_now) = cause else {
            break;
        };
        if error_now.is::<rustls::Error>() {
            return Failure::Tls;
        }
        let io = error_now.downcast_ref::<io::Error>();
        if io.is_some_and(|io| error.is_connect() && is_cut_short(io.kind())) {
            return Failure::Tls;
        }
        // An I/O error that wraps another leaves it out of its sources.
        let wrapped = io.and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error_now.source(),
        };
    }
    Failure::Http
}

/// How a connection ends that was there: while connecting, that is in the handshake. A socket that does not accept fails otherwise.
fn is_cut_short(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::InvalidData
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_roots_must_be_certificates() {
        config(None).unwrap();
        config(Some(b"")).unwrap();
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(config(Some(broken)), Err(SetupError::Roots(_))));
    }
}
