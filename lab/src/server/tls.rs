//! The lab's certificate authority: created at start, it issues certificates for any name on
//! demand, valid or not.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::NoServerSessionStorage;
use thiserror::Error;

use crate::play::Handshake;

/// Most cached configurations, each a few kilobytes. A full cache is emptied: a certificate costs a
/// tenth of a millisecond.
const CONFIGS_MAX: usize = 4096;

/// A name that no persona has, for the certificate with a wrong name.
const OTHER_NAME: &str = "somebody-else.test";

/// The authority and the certificates that it has issued.
pub(crate) struct Authority {
    ca: CertifiedIssuer<'static, KeyPair>,
    intermediate: CertifiedIssuer<'static, KeyPair>,
    /// The CA of a proxy that intercepts TLS.
    proxy: CertifiedIssuer<'static, KeyPair>,
    /// One key for all names: creating one costs more than signing, and nothing here is secret.
    key: KeyPair,
    configs: Mutex<HashMap<(String, Handshake), Arc<ServerConfig>>>,
}

/// Why a certificate or its configuration could not be created.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("the lab could not make a certificate")]
    Certificate(#[from] rcgen::Error),
    #[error("the lab could not make a TLS configuration")]
    Config(#[from] rustls::Error),
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

impl Authority {
    pub(crate) fn new() -> Result<Self, TlsError> {
        let ca =
            CertifiedIssuer::self_signed(ca_params("Fedicensus lab CA"), KeyPair::generate()?)?;
        let intermediate = ca_params("Fedicensus lab intermediate CA");
        Ok(Self {
            intermediate: CertifiedIssuer::signed_by(intermediate, KeyPair::generate()?, &ca)?,
            ca,
            proxy: CertifiedIssuer::self_signed(ca_params("A proxy's CA"), KeyPair::generate()?)?,
            key: KeyPair::generate()?,
            configs: Mutex::default(),
        })
    }

    pub(crate) fn pem(&self) -> String {
        self.ca.pem()
    }

    /// The server configuration for a name, with the certificate for `handshake`.
    pub(crate) fn config(
        &self,
        name: &str,
        handshake: Handshake,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let key = (name.to_owned(), handshake);
        if let Some(config) = self.locked().get(&key) {
            return Ok(Arc::clone(config));
        }
        let chain = self.chain(name, handshake)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, private)?;
        // Each check is a new client, so sessions would only waste memory.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let mut configs = self.locked();
        if configs.len() >= CONFIGS_MAX {
            configs.clear();
        }
        configs.insert(key, Arc::clone(&config));
        Ok(config)
    }

    fn chain(
        &self,
        name: &str,
        handshake: Handshake,
    ) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let certified = match handshake {
            Handshake::WrongName => OTHER_NAME,
            Handshake::Sound
            | Handshake::Expired
            | Handshake::NotYetValid
            | Handshake::IncompleteChain
            | Handshake::Intercepted
            | Handshake::SelfSigned
            | Handshake::PlainHttp
            | Handshake::Silent
            | Handshake::Slow(_)
            | Handshake::Reset => name,
        };
        let mut params = CertificateParams::new(vec![certified.to_owned()])?;
        if handshake == Handshake::Expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        if handshake == Handshake::NotYetValid {
            params.not_before = date_time_ymd(4000, 1, 1);
        }
        let certificate = match handshake {
            Handshake::SelfSigned => params.self_signed(&self.key)?,
            Handshake::IncompleteChain => params.signed_by(&self.key, &self.intermediate)?,
            Handshake::Intercepted => {
                let certificate = params.signed_by(&self.key, &self.proxy)?;
                return Ok(vec![certificate.der().clone(), self.proxy.der().clone()]);
            }
            _ => params.signed_by(&self.key, &self.ca)?,
        };
        Ok(vec![certificate.der().clone()])
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<(String, Handshake), Arc<ServerConfig>>> {
        self.configs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
