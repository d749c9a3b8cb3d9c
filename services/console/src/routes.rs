//! The console's routes.
//!
//! | page | shows | its forms |
//! |---|---|---|
//! | `/login` | | log in |
//! | `/` | what needs a decision, and `fedicensus status` | |
//! | `/groups?which=held` | groups that are held or have a decision | decide about one or many |
//! | `/group?domain=D` | one group with its hosts and decisions | decide |
//! | `/waiting` | names that wait for room | |
//! | `/sources` | public lists that are read | resume |
//! | `/list` | the published list | publish by force |
//! | `/host?host=H` | one host: the site's answer, and facts | check, take out, put back |
//! | `/decisions` | the log of decisions | undo |
//! | `/logins` | sessions, bans and locks | end, lift |
//!
//! Every page except the first needs a session, and every form its session's token. `/health`,
//! `/metrics` and the style need neither; the web server in front hides `/metrics` from browsers.

mod acts;
mod looks;
mod sessions;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use local_socket::WireError;
use local_socket::guard::Refused;
use tokio::sync::Semaphore;

use crate::form::{self, Fields};
use crate::login::{Logins, Visitor};
use crate::pages::{self, Page};
use crate::reply::{asset, html, see_other};
use crate::wire::{self, Answer, Census, Outcome};

/// Longest page to return to after a login, in bytes. The login form has room for it.
const PAGE_BYTES_MAX: usize = 512;

pub(crate) struct Shared {
    pub(crate) logins: Logins,
    pub(crate) census: Census,
    /// Logins in progress of browsers in which no moderator has logged in.
    pub(crate) strangers: Semaphore,
}

/// A response that ends a request early: a page with the reason. Boxed, because it is large and
/// rare.
#[derive(Debug)]
pub(crate) struct Early(Box<Response>);

impl From<Response> for Early {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl From<Refused> for Early {
    fn from(refused: Refused) -> Self {
        let text = match refused {
            Refused::OtherSite => {
                "A page of another site sent this form, so nothing was done. Open the console itself and repeat it there."
            }
            Refused::WrongKind(_) | Refused::TooLong(_) | Refused::Late(_) | Refused::Broken => {
                "The form did not arrive whole, or it is too long."
            }
        };
        page(refused.status(), text).into()
    }
}

impl IntoResponse for Early {
    fn into_response(self) -> Response {
        *self.0
    }
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/login", get(sessions::form).post(sessions::log_in))
        .route("/logout", post(sessions::log_out))
        .route("/logins", get(sessions::list).post(sessions::act))
        .route("/", get(looks::start))
        .route("/groups", get(looks::groups).post(acts::decide))
        .route("/group", get(looks::group))
        .route("/waiting", get(looks::waiting))
        .route("/sources", get(looks::sources).post(acts::resume_source))
        .route("/list", get(looks::list).post(acts::publish))
        .route("/host", get(looks::host).post(acts::host))
        .route("/decisions", get(looks::decisions).post(acts::undo))
        .route("/health", get(|| std::future::ready("ok\n")))
        .route("/metrics", get(metrics))
        .route(
            "/style.css",
            get(|| asset("text/css; charset=utf-8", pages::STYLE)),
        )
        .route("/icon.svg", get(|| asset("image/svg+xml", pages::ICON)))
        .fallback(|| said(StatusCode::NOT_FOUND, "There is no such page."))
        .method_not_allowed_fallback(|| {
            said(
                StatusCode::METHOD_NOT_ALLOWED,
                "This page does not take that method.",
            )
        })
        .with_state(shared)
}

impl Shared {
    /// The moderator who sends a request, or a redirect to the login, which leads back to the page.
    fn visitor(&self, headers: &HeaderMap, page: Option<&Uri>) -> Result<Visitor, Early> {
        match self.logins.visitor(headers) {
            Ok(Some(visitor)) => Ok(visitor),
            Ok(None) => {
                let page = page.map_or("/", |page| {
                    page_of(page.path_and_query().map_or("/", |to| to.as_str()))
                });
                let login = match page {
                    "/" => "/login".to_owned(),
                    page => format!("/login?{}", pages::query(&[("to", page)])),
                };
                Err(see_other(&login).into())
            }
            Err(error) => Err(trouble(&error)),
        }
    }

    /// The daemon's answer, or a page with the reason if that is [`Answer::Failed`].
    async fn ask(&self, visitor: &Visitor, request: &wire::Request) -> Result<Answer, Early> {
        match self.send(visitor, request).await? {
            Answer::Failed(why) => {
                let status = StatusCode::BAD_REQUEST;
                Err(pages::of_visitor(visitor, "Not possible", &why, status).into())
            }
            answer => Ok(answer),
        }
    }

    /// Sends a request to the daemon, whose answer may be [`Answer::Failed`].
    async fn send(&self, visitor: &Visitor, request: &wire::Request) -> Result<Answer, Early> {
        match self.census.ask(request).await {
            Ok(answer) => Ok(answer),
            Err(error @ WireError::NotUnderstood(_)) => Err(out_of_turn(visitor, &error)),
            Err(error) => {
                tracing::error!(error = %with_causes(&error), "no answer from the daemon: check that it runs and that its setting `console_socket` is true");
                let text = "See that its daemon runs and that its setting `console_socket` is true, then load the page again.";
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Err(pages::of_visitor(visitor, "The census does not answer", text, status).into())
            }
        }
    }
}

/// The page to return to after a login: one of the console's with its query, or the overview. No
/// link leads from the login to another site.
fn page_of(text: &str) -> &str {
    let path = text.split('?').next().unwrap_or_default();
    let is_page = path == "/group" || pages::NAVIGATION.iter().any(|(page, _)| *page == path);
    let is_plain = text.len() <= PAGE_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_page && is_plain { text } else { "/" }
}

/// A form that a moderator sends, and that belongs to their session.
struct Form {
    shared: Arc<Shared>,
    visitor: Visitor,
    fields: Fields,
}

impl FromRequest<Arc<Shared>> for Form {
    type Rejection = Early;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Early> {
        let (head, body) = request.into_parts();
        form::MODERATORS.check(&head.headers)?;
        let visitor = shared.visitor(&head.headers, None)?;
        let fields = Fields::parse(&form::MODERATORS.read(&head.headers, body).await?);
        if !shared
            .logins
            .is_own_form(&visitor.token, fields.text("form"))
        {
            tracing::warn!(
                moderator = visitor.session.moderator,
                "a form of another session was refused"
            );
            let text = "This form belongs to another session, so nothing was done. Load the page again and repeat what you wanted.";
            let refused = pages::of_visitor(&visitor, "Refused", text, StatusCode::FORBIDDEN);
            return Err(refused.into());
        }
        let shared = Arc::clone(shared);
        Ok(Self {
            shared,
            visitor,
            fields,
        })
    }
}

impl Form {
    /// Sends the moderator's order to the daemon.
    async fn act(&self, order: wire::Order) -> Result<Vec<Outcome>, Early> {
        let request = wire::Request::Act(wire::Act {
            moderator: self.visitor.session.moderator.clone(),
            order,
        });
        match self.shared.ask(&self.visitor, &request).await? {
            Answer::Done(outcomes) => Ok(outcomes),
            other => Err(out_of_turn(&self.visitor, &other)),
        }
    }

    /// Sends an order, and shows the result with a link back.
    async fn done(&self, order: wire::Order, back: &str) -> Result<Response, Early> {
        let outcomes = self.act(order).await?;
        Ok(pages::done(&self.visitor, &outcomes, back))
    }
}

/// The daemon is of another version.
fn out_of_turn(visitor: &Visitor, answer: &dyn std::fmt::Debug) -> Early {
    tracing::error!(?answer, "the daemon answered another question");
    let text = "The daemon answered another question. It may be of another version than the console: start both from the same image.";
    let status = StatusCode::BAD_GATEWAY;
    pages::of_visitor(visitor, "Not understood", text, status).into()
}

fn trouble(error: &(dyn std::error::Error + 'static)) -> Early {
    tracing::error!(error = %with_causes(error), "accounts can't be read or written");
    let text = "The console can't read or write its accounts. Its log says why.";
    page(StatusCode::INTERNAL_SERVER_ERROR, text).into()
}

/// The error and its causes. SQLite's last one has the extended code.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

/// A page for visitors without a session.
fn page(status: StatusCode, text: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("Error");
    html(
        status,
        Page::for_strangers(title).around(&pages::paragraph(text)),
    )
}

fn said(status: StatusCode, text: &'static str) -> std::future::Ready<Response> {
    std::future::ready(page(status, text))
}

async fn metrics(
    axum::extract::State(shared): axum::extract::State<Arc<Shared>>,
) -> impl IntoResponse {
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], shared.logins.metrics())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_leads_to_pages_of_the_console_only() {
        for page in ["/", "/groups?which=held", "/host?host=a%26b", "/logins"] {
            assert_eq!(page_of(page), page);
        }
        let long = format!("/host?host={}", "a".repeat(PAGE_BYTES_MAX));
        let others = "//evil.example /\\evil.example https://evil.example/ javascript:x /groups#x \
             /groups/../login /group@evil.example /groups?\u{e4} /logout /login?to=/ groups";
        let others = others.split(' ').chain(["", "/groups?\r\nx: y", &long]);
        for other in others {
            assert_eq!(page_of(other), "/", "{other}");
        }
    }
}
