//! The pages as HTML documents. The templates escape all texts from outside.

mod decisions;
mod groups;
mod host;
mod layout;
mod login;
mod logins;
mod names;
mod start;

pub(crate) use decisions::decisions;
pub(crate) use groups::{group, groups};
pub(crate) use host::host;
pub(crate) use layout::{NAVIGATION, Page, done, of_visitor, paragraph, path_of_host, query};
pub(crate) use login::{LoginForm, login};
pub(crate) use logins::logins;
pub(crate) use names::{list, sources, waiting};
pub(crate) use start::start;

/// What a page may do in a browser: run no script, use our own style, send forms to us. The web
/// server in front sends it with every answer.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// The public site's style, and additions for forms.
pub(crate) const STYLE: &str = concat!(
    include_str!("../../../crates/site/assets/style.css"),
    include_str!("../assets/console.css")
);

pub(crate) const ICON: &str = include_str!("../../../crates/site/assets/icon.svg");

#[cfg(test)]
mod tests;
