//! Reads the first message of a checker's connection: a TLS ClientHello that names its host.
//!
//! [`read`] returns the bytes as received, to be passed on. It rejects whatever is not TLS, no SNI
//! or another one, an encrypted ClientHello (whose true name is hidden), more than
//! [`HELLO_BYTES_MAX`], and a hello that takes longer than [`HELLO_TIME_MAX`].

use std::time::Duration;

use protocol::Host;
use rustls::server::Acceptor;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Largest ClientHello: with hybrid key shares they are about 1.8 KiB.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

/// Longest time from the connection to the complete ClientHello. The checker is on this machine and
/// sends first.
pub const HELLO_TIME_MAX: Duration = Duration::from_secs(5);

/// The extension type of Encrypted Client Hello (RFC 9849).
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Why a connection is dropped before any of its bytes reaches the host.
#[derive(Debug, Error)]
pub enum HelloError {
    #[error("the connection ended within the TLS hello")]
    Ended,
    #[error("the TLS hello did not arrive in time")]
    Slow,
    #[error("the TLS hello is too large")]
    TooLarge,
    #[error("these bytes are not TLS")]
    NotTls(#[source] rustls::Error),
    #[error("the TLS hello names another host, or none")]
    OtherName,
    #[error("the TLS hello is encrypted")]
    Encrypted,
}

impl HelloError {
    /// Whether the connection was refused because of its content. `false` if it sent no complete
    /// hello.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Ended => false,
            Self::Slow | Self::TooLarge | Self::NotTls(_) | Self::OtherName | Self::Encrypted => {
                true
            }
        }
    }
}

/// Reads the ClientHello of a connection that may lead only to `host`.
pub async fn read<R: AsyncRead + Unpin>(
    checker: &mut R,
    host: &Host,
) -> Result<Vec<u8>, HelloError> {
    match tokio::time::timeout(HELLO_TIME_MAX, read_unhurried(checker, host)).await {
        Ok(result) => result,
        Err(_elapsed) => Err(HelloError::Slow),
    }
}

async fn read_unhurried<R: AsyncRead + Unpin>(
    checker: &mut R,
    host: &Host,
) -> Result<Vec<u8>, HelloError> {
    let mut acceptor = Acceptor::default();
    let mut hello = Vec::new();
    let mut chunk = vec![0_u8; HELLO_BYTES_MAX];
    loop {
        let read = checker.read(&mut chunk).await.unwrap_or(0);
        let new = chunk.get(..read).unwrap_or_default();
        if new.is_empty() {
            return Err(HelloError::Ended);
        }
        if hello.len().saturating_add(new.len()) > HELLO_BYTES_MAX {
            return Err(HelloError::TooLarge);
        }
        hello.extend_from_slice(new);
        let mut rest = new;
        while !rest.is_empty() {
            // Reading from a slice fails only if the acceptor's own buffer is full.
            if !matches!(acceptor.read_tls(&mut rest), Ok(1..)) {
                return Err(HelloError::TooLarge);
            }
            match acceptor.accept() {
                Ok(None) => (),
                Ok(Some(accepted)) => {
                    let names_host = accepted
                        .client_hello()
                        .server_name()
                        .is_some_and(|name| Host::parse(name).is_ok_and(|name| name == *host));
                    if !names_host {
                        return Err(HelloError::OtherName);
                    }
                    if hides_its_name(&hello) {
                        return Err(HelloError::Encrypted);
                    }
                    return Ok(hello);
                }
                Err((error, _alert)) => return Err(HelloError::NotTls(error)),
            }
        }
    }
}

/// Whether the ClientHello, which rustls accepted, has the extension for an encrypted one. A hello
/// that can't be parsed counts as such.
fn hides_its_name(hello: &[u8]) -> bool {
    extension_types(&handshake(hello)).is_none_or(|types| types.contains(&ENCRYPTED_CLIENT_HELLO))
}

/// The joined payloads of all records, because a ClientHello may be split anywhere.
fn handshake(hello: &[u8]) -> Vec<u8> {
    let mut joined = Vec::new();
    let mut rest = hello;
    while let Some((&[_kind, _major, _minor, high, low], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (payload, next) = after.split_at_checked(length).unwrap_or((after, &[]));
        joined.extend_from_slice(payload);
        rest = next;
    }
    joined
}

/// The types of a ClientHello's extensions. Its fields by RFC 8446 §4.1.2: type, length, version,
/// random, session id, cipher suites, compression methods, extensions. `None` if it can't be
/// parsed.
fn extension_types(handshake: &[u8]) -> Option<Vec<u16>> {
    /// Message type, its length, legacy version and random.
    const FIXED_BYTES: usize = 1 + 3 + 2 + 32;
    let (_, rest) = handshake.split_at_checked(FIXED_BYTES)?;
    let (_session_id, rest) = short_vector(rest)?;
    let (_cipher_suites, rest) = long_vector(rest)?;
    let (_compression_methods, rest) = short_vector(rest)?;
    let (mut extensions, _) = long_vector(rest)?;
    let mut types = Vec::new();
    while let Some((&kind, after)) = extensions.split_first_chunk::<2>() {
        types.push(u16::from_be_bytes(kind));
        extensions = long_vector(after)?.1;
    }
    Some(types)
}

fn short_vector(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

fn long_vector(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(length)))
}

#[cfg(test)]
mod tests;
