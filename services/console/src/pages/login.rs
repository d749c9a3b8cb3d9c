//! The login form.

use axum::http::StatusCode;
use axum::response::Response;
use maud::html;

use super::layout::Page;
use crate::reply::html as respond;

/// What the form shows and carries.
#[derive(Clone, Copy)]
pub(crate) struct LoginForm<'l> {
    /// The census's name.
    pub(crate) census: &'l str,
    pub(crate) form_token: &'l str,
    /// The problem of the attempt before.
    pub(crate) problem: Option<&'l str>,
    /// The name that was typed before.
    pub(crate) name: &'l str,
    /// The page that was asked for.
    pub(crate) to: &'l str,
}

pub(crate) fn login(status: StatusCode, form: LoginForm<'_>) -> Response {
    let content = html! {
        @if let Some(problem) = form.problem {
            p.problem role="alert" { (problem) }
        }
        form method="post" action="/login" {
            input type="hidden" name="form" value=(form.form_token);
            input type="hidden" name="to" value=(form.to);
            div.field {
                label for="name" { "Name" }
                input id="name" name="name" required value=(form.name) autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="64";
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
            button.primary { "Log in" }
        }
    };
    let page = Page::of_census(form.census, "Log in");
    respond(status, page.around(&content))
}
