//! The intake's routes.
//!
//! | request | body | purpose |
//! |---|---|---|
//! | `POST /submit` | `{"host":"social.example"}` | add a host |
//! | `GET /submit/HOST` | | whether the census knows a host |
//! | `POST /opt-out` | `{"host":"social.example","undo":false}` | opt a host out, or `undo` that |
//! | `POST /proof` | `{"host":"social.example","secret":"…","act":"look"}` | look, leave or join |
//! | `GET /health` | | whether the intake serves; needs no other part |
//!
//! Each handler returns the daemon's answer as a response, or a [`Problem`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use local_socket::guard::{self, Guard};
use protocol::Host;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use token::{Purpose, UnixSeconds};

use crate::clients::{Client, Clients};
use crate::daemon;
use crate::one_client::{News, OneClient, RUN_MIN};
use crate::problem::Problem;
use crate::proof::{self, ProofSource, Wanted};
use crate::secret::Secret;
use crate::settings::Settings;
use crate::texts::Texts;
use crate::token_header::{Occasion, token_of};
use crate::wire::{self, Act, Answer, Census, HashInHex, Vouched};

/// The guard of all `POST`s. A name of 1012 bytes as U-labels with every character escaped would be
/// longer, but no client sends that.
pub(crate) const POSTS: Guard = Guard {
    kind: guard::JSON,
    bytes_max: 4096,
    time_max: Duration::from_secs(5),
};

/// Window of the limit on a client's requests.
pub(crate) const CLIENT_WINDOW: Duration = Duration::from_secs(3600);

/// Most `GET`s of one client in an hour: one a minute, and some more. Each costs the daemon a
/// database query.
pub(crate) const GETS_PER_HOUR: usize = 100;

/// The web server in front sets it to the client's address and replaces the client's value. Only
/// that server has the socket. Without the header, all requests count as one client's.
const ADDRESS_HEADER: &str = "x-real-ip";

/// The state of a host that was added and not checked yet.
const WAITING: &str = "waiting";

/// The same answer for every known host, listed or not.
const KNOWN_WORDS: &str = "the census knows this host";

/// Returns the current time. Only roles read the clock.
pub type Now = Arc<dyn Fn() -> UnixSeconds + Send + Sync>;

pub(crate) struct Shared {
    settings: Settings,
    texts: Texts,
    census: Census,
    proofs: Vec<Box<dyn ProofSource>>,
    posts: Mutex<Clients>,
    gets: Mutex<Clients>,
    one_client: Mutex<OneClient>,
    now: Now,
}

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        texts: Texts,
        census: Census,
        proofs: Vec<Box<dyn ProofSource>>,
        now: Now,
    ) -> Self {
        Self {
            texts,
            census,
            proofs,
            posts: Mutex::new(Clients::new(settings.posts_per_hour, CLIENT_WINDOW)),
            gets: Mutex::new(Clients::new(GETS_PER_HOUR, CLIENT_WINDOW)),
            one_client: Mutex::default(),
            now,
            settings,
        }
    }
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/submit", post(submit))
        .route("/submit/{host}", get(state))
        .route("/opt-out", post(opt_out))
        .route("/proof", post(prove))
        .route("/health", get(|| std::future::ready("ok\n")))
        .fallback(|| {
            let nothing =
                "there is no such page: POST /submit, GET /submit/HOST, POST /opt-out, POST /proof";
            let status = StatusCode::NOT_FOUND;
            std::future::ready(Problem::other(status, "no_such_page", nothing))
        })
        .method_not_allowed_fallback(|| {
            let nothing = "this page does not accept that method";
            let status = StatusCode::METHOD_NOT_ALLOWED;
            std::future::ready(Problem::other(status, "wrong_method", nothing))
        })
        .with_state(shared)
}

#[derive(Debug, Serialize)]
struct Said<'a> {
    host: &'a Host,
    state: &'a str,
    words: &'a str,
}

fn said(status: StatusCode, host: &Host, state: &str, words: &str) -> Response {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    let said = Json(Said { host, state, words });
    (status, no_store, said).into_response()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Submission {
    host: String,
}

async fn submit(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    POSTS.check(request.headers())?;
    charge(&shared, &shared.posts, request.headers())?;
    let (head, body) = request.into_parts();
    let host = host_of(&read_body::<Submission>(&head.headers, body).await?.host)?;
    let occasion = Occasion {
        purpose: Purpose::Submit,
        host: &host,
        now: (shared.now)(),
        log_key: shared.settings.log_key,
    };
    let vouched = match token_of(&head.headers, shared.settings.test_domain)? {
        Some(token) => {
            let submitter = token.verify(occasion, &shared.texts).await?;
            Some(Vouched {
                domain: submitter.domain,
                key_hash: HashInHex(submitter.key_hash.to_bytes()),
            })
        }
        None => {
            // A known name needs no proof.
            let request = wire::Request::SubmissionState { host: host.clone() };
            if let Answer::Known {} = ask(&shared, &request).await? {
                return Ok(known(&host, KNOWN_WORDS));
            }
            require_proof(&shared, &host, Purpose::Submit).await?;
            None
        }
    };
    let request = wire::Request::Submit {
        host: host.clone(),
        vouched,
    };
    reply(&host, Purpose::Submit, ask(&shared, &request).await?)
}

async fn state(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    charge(&shared, &shared.gets, &headers)?;
    let host = host_of(&name)?;
    let request = wire::Request::SubmissionState { host: host.clone() };
    reply(&host, Purpose::Submit, ask(&shared, &request).await?)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OptOut {
    host: String,
    #[serde(default)]
    undo: bool,
}

async fn opt_out(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    POSTS.check(request.headers())?;
    charge(&shared, &shared.posts, request.headers())?;
    let (head, body) = request.into_parts();
    let OptOut { host, undo } = read_body(&head.headers, body).await?;
    let host = host_of(&host)?;
    let purpose = if undo {
        Purpose::OptIn
    } else {
        Purpose::OptOut
    };
    let occasion = Occasion {
        purpose,
        host: &host,
        now: (shared.now)(),
        log_key: shared.settings.log_key,
    };
    let domain = match token_of(&head.headers, shared.settings.test_domain)? {
        Some(token) => Some(token.verify(occasion, &shared.texts).await?.domain),
        // The store does not record how an opt-out was made. If a record or a file from an earlier
        // time could undo it, a stranger could undo one that was signed or made through the
        // operator.
        None if undo => {
            let words = "only a token or the secret of a record at POST /proof revokes an opt-out: send one, or write to the operator";
            return Err(Problem::forbidden("no_proof", words));
        }
        None => {
            require_proof(&shared, &host, purpose).await?;
            None
        }
    };
    let request = wire::Request::OptOut {
        host: host.clone(),
        undo,
        domain,
    };
    reply(&host, purpose, ask(&shared, &request).await?)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proof {
    host: String,
    secret: Secret,
    act: Act,
}

/// Passes the secret on: the daemon verifies it, so that it needs no trust in this part.
async fn prove(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    POSTS.check(request.headers())?;
    charge(&shared, &shared.posts, request.headers())?;
    let (head, body) = request.into_parts();
    let Proof { host, secret, act } = read_body(&head.headers, body).await?;
    let host = host_of(&host)?;
    let purpose = match act {
        Act::Leave => Purpose::OptOut,
        Act::Look | Act::Join => Purpose::OptIn,
    };
    let request = wire::Request::Prove {
        host: host.clone(),
        secret,
        act,
    };
    reply(&host, purpose, ask(&shared, &request).await?)
}

async fn require_proof(shared: &Shared, host: &Host, purpose: Purpose) -> Result<(), Problem> {
    let wanted = Wanted {
        host: host.clone(),
        purpose,
    };
    proof::require(&shared.proofs, &wanted).await
}

/// The client of a request, as the web server in front reports it.
fn client_of(headers: &HeaderMap) -> Client {
    let mut values = headers.get_all(ADDRESS_HEADER).iter();
    // Two values would mean that the web server added one to the client's, and that the client
    // chose the first.
    let address = match (values.next(), values.next()) {
        (Some(one), None) => one.to_str().ok().and_then(|text| text.trim().parse().ok()),
        (None | Some(_), _) => None,
    };
    address.map_or(Client::Unknown, Client::at)
}

fn charge(shared: &Shared, clients: &Mutex<Clients>, headers: &HeaderMap) -> Result<(), Problem> {
    let client = client_of(headers);
    let now = tokio::time::Instant::now().into_std();
    let news = shared
        .one_client
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .note(client, now);
    match news {
        Some(News::OneClient) => tracing::warn!(
            "the last {RUN_MIN} requests came from one address: if it is a TLS terminator's, all clients share one limit until the terminator and nginx pass their addresses on, as docs/submissions.md describes"
        ),
        Some(News::Over) => tracing::info!(
            "requests come from several addresses again, so each client has its own limit"
        ),
        None => {}
    }
    clients
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .admit(client, now)
        .map_err(|wait| {
            let words = "too many requests from this address: try again later";
            Problem::too_soon("too_many_requests", words, wait)
        })
}

async fn read_body<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    let bytes = POSTS.read(headers, body).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Problem::bad(
            "body_malformed",
            format!("the body is not what this page accepts: {error}"),
        )
    })
}

fn host_of(text: &str) -> Result<Host, Problem> {
    Host::parse(text)
        .map_err(|error| Problem::bad("not_a_host", format!("the host can't be used: {error}")))
}

async fn ask(shared: &Shared, request: &wire::Request) -> Result<Answer, Problem> {
    daemon::ask(&shared.census, request).await
}

fn known(host: &Host, words: &str) -> Response {
    said(StatusCode::OK, host, "known", words)
}

fn reply(host: &Host, purpose: Purpose, answer: Answer) -> Result<Response, Problem> {
    match answer {
        Answer::Accepted {} => {
            let words = "accepted: the census will look at this host soon";
            Ok(said(StatusCode::ACCEPTED, host, WAITING, words))
        }
        Answer::Known {} => Ok(known(
            host,
            match purpose {
                Purpose::Submit => KNOWN_WORDS,
                Purpose::OptOut | Purpose::OptIn => {
                    "nothing to revoke: this host has not opted out"
                }
            },
        )),
        Answer::Done { words } => {
            let state = match purpose {
                Purpose::OptOut => "opted_out",
                Purpose::Submit | Purpose::OptIn => WAITING,
            };
            Ok(said(StatusCode::OK, host, state, &words))
        }
        Answer::Unknown {} => Err(Problem::other(
            StatusCode::NOT_FOUND,
            "unknown",
            format!("the census does not know {host}"),
        )),
        Answer::NotAdmitted { why } => Err(Problem::bad(
            "not_admitted",
            format!("{host} can't be in the census: {why}"),
        )),
        Answer::Refused { why } => Err(Problem::forbidden("refused", why)),
        Answer::NotNow { why, retry_after_s } => Err(Problem::too_soon(
            "no_room",
            why,
            Duration::from_secs(retry_after_s),
        )),
        Answer::NotTheirs { words } => Err(Problem::forbidden("not_theirs", words)),
        Answer::Failed { why } => {
            tracing::error!(%host, why, "the daemon failed");
            Err(daemon::is_away())
        }
        Answer::Shown { state, words } => Ok(said(StatusCode::OK, host, &state, &words)),
        Answer::NoProof { why } => Err(Problem::forbidden("no_proof", why)),
        Answer::CannotTell { why, retry_after_s } => {
            let wait = Duration::from_secs(retry_after_s);
            Err(Problem::unavailable("dns_failed", why, wait))
        }
        Answer::Proof { .. } => {
            tracing::error!(%host, "the daemon's answer does not match the request");
            Err(daemon::is_away())
        }
    }
}

#[cfg(test)]
mod tests;
