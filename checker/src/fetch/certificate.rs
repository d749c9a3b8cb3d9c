//! Verifies a host's certificate as rustls does, and adds what an owner needs to repair a chain.
//!
//! The verdict is webpki's alone: an accepted certificate stays accepted, a rejected one rejected.
//! Only the reason "unknown issuer" is split in three.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

/// Why no trusted root leads to a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChainError {
    #[error("the certificate is self-signed")]
    SelfSigned,
    /// The server sent only its own certificate, and no trusted root issued that one.
    #[error("the server sent no intermediate certificate, and no trusted root issued its own")]
    Incomplete,
}

/// webpki's verifier with [`ChainError`]s.
#[derive(Debug)]
pub(super) struct ExplainingVerifier(pub(super) Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ExplainingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .map_err(|error| explain(error, end_entity, intermediates))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// `error`, or a [`ChainError`] where that is more precise.
fn explain(
    error: Error,
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Error {
    // A self-signed certificate is often a CA certificate, which webpki rejects before it looks for
    // a root.
    let about_chain = matches!(
        error,
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))
    );
    if !about_chain {
        return error;
    }
    let chain_error = match webpki::EndEntityCert::try_from(end_entity) {
        Ok(certificate) if certificate.issuer() == certificate.subject() => ChainError::SelfSigned,
        Ok(_)
            if intermediates.is_empty()
                && matches!(
                    error,
                    Error::InvalidCertificate(CertificateError::UnknownIssuer)
                ) =>
        {
            ChainError::Incomplete
        }
        Ok(_) | Err(_) => return error,
    };
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(chain_error))))
}
