//! The login form.

use axum::http::StatusCode;
use axum::response::Response;
use maud::html;

use super::layout::Page;
use crate::reply::html as respond;

/// The form, with the problem of the attempt before.
pub(crate) fn login(status: StatusCode, form_token: &str, problem: Option<&str>) -> Response {
    let content = html! {
        @if let Some(problem) = problem {
            p.problem role="alert" { (problem) }
        }
        form method="post" action="/login" {
            input type="hidden" name="form" value=(form_token);
            div.field {
                label for="name" { "Name" }
                input id="name" name="name" required autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="64";
            }
            div.field {
                label for="password" { "Password" }
                input id="password" name="password" type="password" required autocomplete="current-password" maxlength="256";
            }
            div.field {
                label for="code" { "Code" }
                input id="code" name="code" required autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="64" aria-describedby="code-note";
                span id="code-note" { "Six digits from your authenticator app, or one of your recovery codes." }
            }
            button { "Log in" }
        }
    };
    respond(status, Page::for_strangers("Log in").around(&content))
}
