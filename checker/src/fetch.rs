//! Requests to one host, one at a time. No other module opens a connection.
//!
//! A path on the host becomes an answer with a bounded body. robots.txt decides on every request
//! except push messages. Rejects other hosts, ports and schemes, requests over the check's limit,
//! and heads and bodies over their bounds. Redirects to another host are reported and not followed.

mod answer;
mod body;
mod certificate;
mod failure;
mod pace;
mod post;
mod progress;
mod target;
mod tls;
mod wall;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use protocol::{Host, user_agent};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use tokio::time::{Instant, timeout_at};
use url::Url;

pub use self::answer::Answer;
pub use self::body::Body;
pub use self::failure::{Failure, SetupError};
pub use self::post::Posted;
pub use self::target::{Target, resolve};
pub use self::tls::TlsFailure;
pub use self::wall::in_body as wall_in_body;
use crate::documents::robots::Rules;
use crate::limits::Limits;
use pace::Pace;
use progress::Progress;

/// Header lines of an answer. The longest heads seen have 40. hyper's buffer bounds all lines
/// together to 400 KiB.
const HEADER_LINES_MAX: usize = 100;

/// How the host is reached.
#[derive(Debug, Clone, Copy)]
pub enum Route<'a> {
    /// Through the egress socket at this path, which leads to the host's port 443.
    Socket(&'a Path),
    /// Over the ordinary network, with the system's resolver: for debugging by hand.
    Network,
}

/// When the check began. Only the program's entry point reads the wall clock.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    pub instant: Instant,
    /// On the wall clock, for `Retry-After` dates.
    pub wall: SystemTime,
}

/// The kind of document that a request accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// JSON. GoToSocial requires the `Accept` header, and Takahe answers 406 unless it covers the
    /// pointer's type, `application/jrd+json`.
    Json,
    Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The request's address. It never changes where connections go: they lead to the fetcher's
    /// host.
    pub url: Url,
    pub accept: Accept,
    /// JSON to post. `None` means a GET.
    pub post: Option<String>,
}

/// Makes requests to one host, within the limits of one check.
#[derive(Debug)]
pub struct Fetcher {
    client: Client,
    host: Host,
    origin: Url,
    rules: Option<Rules>,
    limits: Limits,
    start: Start,
    deadline: Instant,
    pace: Pace,
    requests: u32,
    kept_alive: KeptAlive,
    bytes: Arc<AtomicU64>,
}

/// Whether the next request may use a connection that the host has closed in the meantime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptAlive {
    Perhaps,
    No,
}

impl KeptAlive {
    fn after(response: &Response) -> Self {
        let connection = response.headers().get("connection");
        match connection.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close")) {
            true => Self::No,
            false => Self::Perhaps,
        }
    }
}

impl Fetcher {
    /// A fetcher for one host. Nothing is connected yet.
    ///
    /// The user agent names `contact`. `ca_pem` adds trust roots to the compiled-in ones.
    pub fn new(
        route: Route<'_>,
        host: &Host,
        contact: &str,
        ca_pem: Option<&[u8]>,
        limits: Limits,
        start: Start,
    ) -> Result<Self, SetupError> {
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls::config(ca_pem)?)
            .user_agent(user_agent(env!("CARGO_PKG_VERSION"), contact))
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .https_only(true)
            .http1_only()
            .http1_max_headers(HEADER_LINES_MAX)
            // Heads outside the RFC that browsers and curl accept: an oddity in a header that is
            // not needed must not decide about a host.
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_ignore_invalid_headers_in_responses(true)
            .pool_max_idle_per_host(1);
        if let Route::Socket(path) = route {
            builder = builder.unix_socket(path);
        }
        Ok(Self {
            client: builder.build()?,
            host: host.clone(),
            origin: Url::parse(&format!("https://{host}/"))?,
            rules: None,
            pace: Pace::new(limits.requests_per_second),
            deadline: start
                .instant
                .checked_add(limits.whole)
                .unwrap_or(start.instant),
            limits,
            start,
            requests: 0,
            kept_alive: KeptAlive::No,
            bytes: Arc::default(),
        })
    }

    /// Applies these rules to every later request. Before this call only robots.txt can be
    /// requested.
    pub fn obey(&mut self, rules: Rules) {
        self.rules = Some(rules);
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Decoded bytes of bodies so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Time since the start in milliseconds.
    pub fn millis(&self) -> u64 {
        u64::try_from(self.start.instant.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A GET of JSON at `path`, which may hold a query.
    pub fn ask_for(&self, path: &str) -> Result<Ask, url::ParseError> {
        Ok(Ask {
            url: self.origin.join(path)?,
            accept: Accept::Json,
            post: None,
        })
    }

    /// Where `reference`, found in the document at `base`, leads to.
    pub fn resolve(&self, base: &Url, reference: &[u8]) -> Target {
        resolve(&self.host, base, reference)
    }

    /// Sends a request and follows redirects within the origin.
    ///
    /// # Errors
    /// Why there is no answer. Any status except a redirect counts as an answer, and so does a
    /// redirect to a wall.
    pub async fn get(&mut self, ask: Ask) -> Result<Answer, Failure> {
        let mut ask = ask;
        let mut seen = Vec::new();
        loop {
            self.may_ask(&ask.url)?;
            let response = self.send(&ask).await?;
            let status = response.status().as_u16();
            let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
            if !is_redirect || wall::in_head(status, false, response.headers()).is_some() {
                return Ok(self.answer(ask.url, response));
            }
            let location = response.headers().get("location");
            let location = location.ok_or(Failure::BadRedirect(None))?.as_bytes();
            let next = match self.resolve(&ask.url, location) {
                Target::Here(next) => next,
                Target::Elsewhere(host) if matches!(status, 301 | 308) => {
                    return Err(Failure::Moved(host));
                }
                Target::Elsewhere(host) => return Err(Failure::Temporary(host)),
                Target::Nowhere(text) => return Err(Failure::BadRedirect(Some(text))),
            };
            if next == ask.url {
                return Err(Failure::RedirectToSelf);
            }
            seen.push(std::mem::replace(&mut ask.url, next));
            let hops = u32::try_from(seen.len()).unwrap_or(u32::MAX);
            if hops > self.limits.redirects || seen.contains(&ask.url) {
                return Err(Failure::RedirectLoop);
            }
            if status == 303 {
                ask.post = None;
            }
        }
    }

    fn may_ask(&self, url: &Url) -> Result<(), Failure> {
        let allowed = match &self.rules {
            Some(rules) => rules.allow(url),
            // Before there are rules, only robots.txt is requested, and its redirect targets within
            // the origin.
            None => true,
        };
        if allowed {
            Ok(())
        } else {
            Err(Failure::Disallowed)
        }
    }

    /// Sends one request. A GET is sent again if the kept-alive connection turned out to be closed.
    async fn send(&mut self, ask: &Ask) -> Result<Response, Failure> {
        let reused = std::mem::replace(&mut self.kept_alive, KeptAlive::No);
        let outcome = match self.send_once(ask).await {
            Err(Failure::Http) if reused == KeptAlive::Perhaps && ask.post.is_none() => {
                self.send_once(ask).await
            }
            outcome => outcome,
        };
        if let Ok(response) = &outcome {
            self.kept_alive = KeptAlive::after(response);
        }
        outcome
    }

    async fn send_once(&mut self, ask: &Ask) -> Result<Response, Failure> {
        if self.requests >= self.limits.requests {
            return Err(Failure::Requests);
        }
        self.wait_for_turn().await?;
        let method = match ask.post {
            Some(_) => Method::POST,
            None => Method::GET,
        };
        let accept = match ask.accept {
            Accept::Json => "application/json, application/jrd+json;q=0.9, */*;q=0.1",
            Accept::Text => "text/plain, */*;q=0.1",
        };
        let mut request = self
            .client
            .request(method, ask.url.clone())
            .header("accept", accept)
            .header("accept-encoding", "gzip");
        if let Some(json) = &ask.post {
            request = request
                .header("content-type", "application/json")
                .body(json.clone());
        }
        self.exchange(request).await
    }

    /// Waits until the rate limit allows a request, and counts the request.
    async fn wait_for_turn(&mut self) -> Result<(), Failure> {
        timeout_at(self.deadline, self.pace.turn())
            .await
            .map_err(|_elapsed| Failure::Deadline)?;
        self.requests = self.requests.saturating_add(1);
        Ok(())
    }

    /// Sends a request that is allowed, and waits for the head of its answer.
    async fn exchange(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let first_byte = Instant::now().checked_add(self.limits.first_byte);
        let until = first_byte.map_or(self.deadline, |instant| instant.min(self.deadline));
        match timeout_at(until, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(tls::failure_of(&error)),
            Err(_elapsed) if Instant::now() >= self.deadline => Err(Failure::Deadline),
            Err(_elapsed) => Err(Failure::Timeout),
        }
    }

    fn answer(&self, url: Url, response: Response) -> Answer {
        let wall = self.start.wall.checked_add(self.start.instant.elapsed());
        Answer::new(
            url,
            response,
            wall.unwrap_or(self.start.wall),
            self.deadline,
            Progress::new(self.limits.body_window, self.limits.body_bytes_per_window),
            Arc::clone(&self.bytes),
        )
    }
}
