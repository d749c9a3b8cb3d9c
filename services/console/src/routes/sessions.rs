//! Login and logout, and the page of sessions, bans and locks.

use std::sync::Arc;

use accounts::Password;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;

use super::{Early, Form, Shared, page_of, trouble};
use crate::cookies;
use crate::form::{self, Fields};
use crate::login::{Attempt, Attempted};
use crate::pages::{self, LoginForm};
use crate::reply::see_other;

/// Characters of each field of the login form. No account has a longer name or password.
const FIELD_CHARACTERS_MAX: usize = 200;

/// The same text for every reason of a failed login.
const OUT: &str = "You are not logged in. The name, the password or the code is wrong, or there were too many attempts: wait a few minutes before you try again.";

/// The text for a form that is older than its cookie.
const STALE: &str = "This form has expired. Try again.";

/// The text for a browser that sent no cookie at all.
const NO_COOKIE: &str = "Your browser did not send the form's cookie. Open the console over https, or as http://localhost, and allow cookies.";

const BUSY: &str = "Too many people log in at this moment. Try again in a few seconds.";

/// Removes the session's cookie, after a logout or when another page ended the session.
fn without_session(mut response: Response) -> Response {
    if let Some(cookie) = cookies::end(cookies::SESSION) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

pub(super) async fn form(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    let fields = Fields::of_query(uri.query());
    login_page(&shared, StatusCode::OK, None, "", fields.text("to"))
}

/// The form, with the problem of the attempt before, the name that was typed, and the page that was
/// asked for.
fn login_page(
    shared: &Shared,
    status: StatusCode,
    problem: Option<&str>,
    name: &str,
    to: &str,
) -> Response {
    let (cookie, form_token) = shared.logins.new_form();
    let form = LoginForm {
        census: &shared.logins.title,
        form_token: &form_token,
        problem,
        name,
        to: page_of(to),
    };
    let mut response = pages::login(status, form);
    if let Some(cookie) = cookies::set(cookies::LOGIN_FORM, &cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

pub(super) async fn log_in(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Early> {
    let (head, body) = request.into_parts();
    // Held until the answer. A known browser needs none, so strangers don't keep it out.
    let slot = shared.strangers.try_acquire().ok();
    if slot.is_none() {
        let is_known = shared.logins.is_known_browser(&head.headers);
        if !is_known.map_err(|error| trouble(&error))? {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(login_page(&shared, status, Some(BUSY), "", ""));
        }
    }
    let fields = Fields::parse(&form::LOGIN.read(&head.headers, body).await?);
    if !is_own_login_form(&shared, &head.headers, fields.text("form")) {
        let has_cookie = cookies::value(&head.headers, cookies::LOGIN_FORM).is_some();
        let problem = if has_cookie { STALE } else { NO_COOKIE };
        let (name, to) = (fields.text("name"), fields.text("to"));
        let status = StatusCode::FORBIDDEN;
        return Ok(login_page(&shared, status, Some(problem), name, to));
    }
    let field = |name| -> String {
        let typed = fields.text(name).chars();
        typed.take(FIELD_CHARACTERS_MAX).collect()
    };
    let (name, to) = (field("name"), page_of(fields.text("to")).to_owned());
    let attempt = Attempt {
        name: name.clone(),
        password: Password::new(field("password")),
        code: field("code").trim().to_owned(),
    };
    // The attempt takes a second, and a form may be long.
    drop(fields);
    let attempted = shared.logins.attempt(&head.headers, attempt).await;
    Ok(match attempted.map_err(|error| trouble(&error))? {
        Attempted::In { session, browser } => {
            let mut response = see_other(&to);
            let set = [
                cookies::set(cookies::SESSION, &session),
                cookies::set_browser(&browser),
                cookies::end(cookies::LOGIN_FORM),
            ];
            for cookie in set.into_iter().flatten() {
                response.headers_mut().append(header::SET_COOKIE, cookie);
            }
            response
        }
        Attempted::Out => login_page(&shared, StatusCode::FORBIDDEN, Some(OUT), &name, &to),
        Attempted::Busy => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            login_page(&shared, status, Some(BUSY), &name, &to)
        }
    })
}

/// Whether the login form was made for this browser, so that no page of another site can log it in.
fn is_own_login_form(shared: &Shared, headers: &HeaderMap, form: &str) -> bool {
    let cookie = cookies::value(headers, cookies::LOGIN_FORM);
    let token = cookie.and_then(accounts::Token::parse);
    token.is_some_and(|token| shared.logins.is_own_form(&token, form))
}

pub(super) async fn log_out(form: Form) -> Result<Response, Early> {
    let logins = &form.shared.logins;
    let ended = logins.with(|accounts| accounts.log_out(&form.visitor.token));
    ended.map_err(|error| trouble(&error))?;
    Ok(without_session(see_other("/login")))
}

pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers, Some(&uri))?;
    let sessions = shared.logins.sessions().map_err(|error| trouble(&error))?;
    let holds = shared.logins.holds().map_err(|error| trouble(&error))?;
    Ok(pages::logins(&visitor, &sessions, &holds))
}

pub(super) async fn act(
    Form {
        shared,
        visitor,
        fields,
    }: Form,
) -> Result<Response, Early> {
    let by = &visitor.session.moderator;
    let id = fields.text("lift");
    if !id.is_empty() {
        let lifted = shared.logins.with(|accounts| accounts.lift(id));
        let was_there = lifted.map_err(|error| trouble(&error))?;
        tracing::info!(by, was_there, "a ban or lock was lifted by hand");
        return Ok(see_other("/logins"));
    }
    let whose = fields.text("end");
    if !whose.is_empty() {
        let moderator = (whose != "*").then_some(whose);
        let ended = shared
            .logins
            .with(|accounts| accounts.log_all_out(moderator));
        let ended = ended.map_err(|error| trouble(&error))?;
        tracing::info!(by, ended, "sessions were ended by hand");
    }
    Ok(see_other("/logins"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use accounts::Accounts;
    use axum::body::Body;
    use axum::response::IntoResponse as _;
    use limiter::login::record::Timestamp;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::login::Logins;
    use crate::settings::{LogAddresses, Settings};
    use crate::wire::Census;

    #[tokio::test] // S26
    async fn logins_of_strangers_keep_no_known_browser_out() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            title: "Fedicensus".to_owned(),
            socket: folder.path().join("http.sock"),
            census_socket: folder.path().join("console.sock"),
            accounts: folder.path().join("accounts.db"),
            log_addresses: LogAddresses::No,
            hashes: 1,
        };
        let now = Timestamp(Duration::from_secs(1_790_812_800));
        let mut accounts = Accounts::open(&settings.accounts, &mut rand::rng()).unwrap();
        let password = Password::new("correct horse".to_owned());
        accounts
            .add("ada", &password, now, &mut rand::rng())
            .unwrap();
        let known = accounts.browser_cookie("ada", &mut rand::rng()).unwrap();
        drop(accounts);
        let shared = Arc::new(Shared {
            logins: Logins::open(&settings, Arc::new(move || now)).unwrap(),
            census: Census::new(settings.census_socket.clone()),
            // All are in use.
            strangers: Semaphore::new(0),
        });
        for (cookie, expect) in [
            ("a.b", StatusCode::SERVICE_UNAVAILABLE),
            // The form has no token.
            (known.as_str(), StatusCode::FORBIDDEN),
        ] {
            let request = Request::builder()
                .header(header::CONTENT_TYPE, form::LOGIN.kind)
                .header(header::COOKIE, format!("{}={cookie}", cookies::BROWSER))
                .body(Body::empty())
                .unwrap();
            let answer = log_in(State(Arc::clone(&shared)), request).await;
            assert_eq!(answer.into_response().status(), expect, "{cookie}");
        }
    }
}
