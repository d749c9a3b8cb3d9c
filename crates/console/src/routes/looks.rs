//! Pages that show the daemon's answers.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::{Early, Shared, out_of_turn};
use crate::form::Fields;
use crate::pages;
use crate::wire::{Answer, Cursor, Request, Which};

pub(super) async fn start(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers)?;
    match shared.ask(&visitor, &Request::Status {}).await? {
        answer @ Answer::Status { .. } => Ok(pages::start(&visitor, &answer)),
        other => Err(out_of_turn(&visitor, &other)),
    }
}

pub(super) async fn groups(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers)?;
    let fields = Fields::of_query(query.as_deref());
    let which = match fields.text("which") {
        "decided" => Which::Decided,
        _ => Which::Held,
    };
    let skip = fields.number("skip");
    let request = Request::Groups { which, skip };
    match shared.ask(&visitor, &request).await? {
        Answer::Groups { rows, has_more } => {
            Ok(pages::groups(&visitor, which, skip, &rows, has_more))
        }
        other => Err(out_of_turn(&visitor, &other)),
    }
}

pub(super) async fn group(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers)?;
    let domain = Fields::of_query(query.as_deref()).text("domain").to_owned();
    match shared.ask(&visitor, &Request::Group { domain }).await? {
        Answer::Group(group) => Ok(pages::group(&visitor, &group)),
        other => Err(out_of_turn(&visitor, &other)),
    }
}

pub(super) async fn waiting(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers)?;
    let after = Fields::of_query(query.as_deref()).text("after").to_owned();
    match shared.ask(&visitor, &Request::Waiting { after }).await? {
        Answer::Waiting { rows, has_more } => Ok(pages::waiting(&visitor, &rows, has_more)),
        other => Err(out_of_turn(&visitor, &other)),
    }
}

pub(super) async fn sources(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers)?;
    match shared.ask(&visitor, &Request::Sources {}).await? {
        Answer::Sources(sources) => Ok(pages::sources(&visitor, &sources)),
        other => Err(out_of_turn(&visitor, &other)),
    }
}

pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers)?;
    match shared.ask(&visitor, &Request::Publication {}).await? {
        Answer::Publication(publication) => Ok(pages::list(&visitor, &publication)),
        other => Err(out_of_turn(&visitor, &other)),
    }
}

pub(super) async fn host(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers)?;
    let host = Fields::of_query(query.as_deref())
        .text("host")
        .trim()
        .to_owned();
    if host.is_empty() {
        return Ok(pages::host(&visitor, None));
    }
    match shared.ask(&visitor, &Request::Host { host }).await? {
        Answer::Host(page) => Ok(pages::host(&visitor, Some(&page))),
        other => Err(out_of_turn(&visitor, &other)),
    }
}

pub(super) async fn decisions(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Early> {
    let visitor = shared.visitor(&headers)?;
    let fields = Fields::of_query(query.as_deref());
    let cursor = (!fields.text("group_id").is_empty()).then(|| Cursor {
        group_id: fields.number("group_id"),
        host_id: fields.number("host_id"),
    });
    match shared.ask(&visitor, &Request::Decisions { cursor }).await? {
        Answer::Decisions { rows, next } => Ok(pages::decisions(&visitor, &rows, next)),
        other => Err(out_of_turn(&visitor, &other)),
    }
}
