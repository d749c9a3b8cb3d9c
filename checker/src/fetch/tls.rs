//! TLS towards the host, and the meaning of a failed request.

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};

use super::certificate::{ChainError, ExplainingVerifier};
use super::failure::{Failure, SetupError};

/// Longest chain of an error's causes that is searched. reqwest, hyper, hyper-rustls and I/O make
/// five.
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
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| SetupError::Roots(error.into()))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        // rustls calls any verifier but its own "dangerous". This one only rewords rejections.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ExplainingVerifier(verifier)))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Why a TLS handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFailure {
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is for other names, or the server has none for this one.
    WrongName,
    SelfSigned,
    /// No trusted root issued the certificate or one of its intermediates.
    UnknownIssuer,
    /// The server sent no intermediate certificate, and no trusted root issued its own.
    IncompleteChain,
    /// There is no common version or cipher.
    Unsupported,
    /// The host closed the connection during the handshake.
    Closed,
    /// Any other failure, such as an answer that is not TLS.
    Other,
}

impl From<&rustls::Error> for TlsFailure {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "rustls adds errors; one without a reason of its own stays unspecific"
    )]
    fn from(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(error) => Self::from(error),
            rustls::Error::PeerIncompatible(_)
            | rustls::Error::AlertReceived(
                AlertDescription::ProtocolVersion
                | AlertDescription::HandshakeFailure
                | AlertDescription::InsufficientSecurity,
            ) => Self::Unsupported,
            rustls::Error::AlertReceived(AlertDescription::UnrecognisedName) => Self::WrongName,
            _ => Self::Other,
        }
    }
}

impl From<&CertificateError> for TlsFailure {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "rustls adds errors; one without a reason of its own stays unspecific"
    )]
    fn from(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::NotYetValid
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::WrongName
            }
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::Other(other) => match other.0.downcast_ref() {
                Some(ChainError::SelfSigned) => Self::SelfSigned,
                Some(ChainError::Incomplete) => Self::IncompleteChain,
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// The meaning of a request's error: TLS if the handshake failed or was cut short, otherwise HTTP.
pub(super) fn failure_of(error: &reqwest::Error) -> Failure {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    for _ in 0..CAUSES_MAX {
        let Some(error_now) = cause else {
            break;
        };
        if let Some(error) = error_now.downcast_ref::<rustls::Error>() {
            return Failure::Tls(error.into());
        }
        let io = error_now.downcast_ref::<io::Error>();
        // rustls errors are wrapped in I/O errors.
        let is_rustls = io.is_some_and(|io| io.get_ref().is_some_and(|e| e.is::<rustls::Error>()));
        if io.is_some_and(|io| error.is_connect() && !is_rustls && is_cut_short(io.kind())) {
            return Failure::Tls(TlsFailure::Closed);
        }
        // An I/O error doesn't list a wrapped I/O error among its sources.
        let wrapped = io.and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error_now.source(),
        };
    }
    Failure::Http
}

/// The I/O errors of an established connection that ends. While connecting, they mean the
/// handshake. A socket that does not accept fails with other errors.
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
