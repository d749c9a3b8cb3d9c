//! Why a request has no answer, or why there is no fetcher.

use protocol::Host;

use super::tls::TlsFailure;

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("robots.txt refuses this address")]
    Disallowed,
    /// 301 or 308 to another host.
    #[error("moved to {0}")]
    Moved(Host),
    /// 302, 303 or 307 to another host.
    #[error("redirected to {0} for now")]
    Temporary(Host),
    /// A redirect to something other than an address of a host's port 443. Holds its escaped text.
    #[error("redirected to nowhere")]
    BadRedirect(Option<String>),
    #[error("redirected to itself")]
    RedirectToSelf,
    #[error("redirected in a loop")]
    RedirectLoop,
    #[error("the TLS handshake failed")]
    Tls(TlsFailure),
    /// The answer's head is not HTTP, or the connection ended before it did.
    #[error("the answer is not HTTP")]
    Http,
    /// The body broke off or is not in the encoding that the head names.
    #[error("the answer broke off")]
    BrokenOff,
    #[error("there was no answer in time")]
    Timeout,
    #[error("the check's time has ended")]
    Deadline,
    #[error("the answer came too slowly")]
    TooSlow,
    #[error("the answer is too large")]
    TooLarge,
    #[error("the answer's encoding was not offered")]
    Encoding,
    #[error("the check has made all its requests")]
    Requests,
}

/// Why no fetcher could be made. The fault is ours, never the host's.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("the further trust roots are no certificates")]
    Roots(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("TLS could not be set up")]
    Tls(#[from] rustls::Error),
    #[error("the HTTP client could not be set up")]
    Client(#[from] reqwest::Error),
    #[error("the host's name makes no URL")]
    Url(#[from] url::ParseError),
}
