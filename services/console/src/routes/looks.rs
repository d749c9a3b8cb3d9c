//! Pages that show the daemon's answers.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;

use super::{Early, Shared, out_of_turn};
use crate::form::Fields;
use crate::login::Visitor;
use crate::pages;
use crate::wire::{Answer, Cursor, Outcome, Request, Which};

/// A page that a moderator requests, and its query.
pub(super) struct Look {
    shared: Arc<Shared>,
    visitor: Visitor,
    fields: Fields,
}

impl FromRequestParts<Arc<Shared>> for Look {
    type Rejection = Early;

    async fn from_request_parts(head: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Early> {
        Ok(Self {
            shared: Arc::clone(shared),
            visitor: shared.visitor(&head.headers, Some(&head.uri))?,
            fields: Fields::of_query(head.uri.query()),
        })
    }
}

impl Look {
    async fn ask(&self, request: Request) -> Result<Answer, Early> {
        self.shared.ask(&self.visitor, &request).await
    }
}

pub(super) async fn start(look: Look) -> Result<Response, Early> {
    match look.ask(Request::Status {}).await? {
        answer @ Answer::Status { .. } => Ok(pages::start(&look.visitor, &answer)),
        other => Err(out_of_turn(&look.visitor, &other)),
    }
}

pub(super) async fn groups(look: Look) -> Result<Response, Early> {
    let which = match look.fields.text("which") {
        "decided" => Which::Decided,
        _ => Which::Held,
    };
    let skip = look.fields.number("skip");
    groups_page(&look.shared, &look.visitor, (which, skip), &[]).await
}

/// A page of groups, below what came of an order.
pub(super) async fn groups_page(
    shared: &Shared,
    visitor: &Visitor,
    (which, skip): (Which, u32),
    outcomes: &[Outcome],
) -> Result<Response, Early> {
    match shared
        .ask(visitor, &Request::Groups { which, skip })
        .await?
    {
        Answer::Groups(list) => Ok(pages::groups(visitor, which, skip, &list, outcomes)),
        other => Err(out_of_turn(visitor, &other)),
    }
}

pub(super) async fn group(look: Look) -> Result<Response, Early> {
    let domain = look.fields.text("domain").to_owned();
    match look.ask(Request::Group { domain }).await? {
        Answer::Group(group) => Ok(pages::group(&look.visitor, &group)),
        other => Err(out_of_turn(&look.visitor, &other)),
    }
}

pub(super) async fn waiting(look: Look) -> Result<Response, Early> {
    let after = look.fields.text("after").to_owned();
    match look.ask(Request::Waiting { after }).await? {
        Answer::Waiting { rows, has_more } => Ok(pages::waiting(&look.visitor, &rows, has_more)),
        other => Err(out_of_turn(&look.visitor, &other)),
    }
}

pub(super) async fn sources(look: Look) -> Result<Response, Early> {
    match look.ask(Request::Sources {}).await? {
        Answer::Sources(sources) => Ok(pages::sources(&look.visitor, &sources)),
        other => Err(out_of_turn(&look.visitor, &other)),
    }
}

pub(super) async fn list(look: Look) -> Result<Response, Early> {
    match look.ask(Request::Publication {}).await? {
        Answer::Publication(publication) => Ok(pages::list(&look.visitor, &publication)),
        other => Err(out_of_turn(&look.visitor, &other)),
    }
}

pub(super) async fn host(look: Look) -> Result<Response, Early> {
    let host = look.fields.text("host").trim().to_owned();
    if host.is_empty() {
        return Ok(pages::host(&look.visitor, "", None, None));
    }
    let request = Request::Host { host: host.clone() };
    match look.shared.send(&look.visitor, &request).await? {
        Answer::Host(page) => Ok(pages::host(&look.visitor, &page.host, None, Some(&page))),
        Answer::Failed(why) => Ok(pages::host(&look.visitor, &host, Some(&why), None)),
        other => Err(out_of_turn(&look.visitor, &other)),
    }
}

pub(super) async fn decisions(look: Look) -> Result<Response, Early> {
    let fields = &look.fields;
    let cursor = (!fields.text("group_id").is_empty()).then(|| Cursor {
        group_id: fields.number("group_id"),
        host_id: fields.number("host_id"),
    });
    match look.ask(Request::Decisions { cursor }).await? {
        Answer::Decisions { rows, next } => Ok(pages::decisions(&look.visitor, &rows, next)),
        other => Err(out_of_turn(&look.visitor, &other)),
    }
}
