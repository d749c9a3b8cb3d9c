//! Forms that send orders to the daemon.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::{Early, Shared};
use crate::form::Fields;
use crate::login::Visitor;
use crate::pages;
use crate::wire::{DOMAINS_MAX, DecisionId, HostVerb, Order, Verb};

pub(super) async fn decide(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Early> {
    let (visitor, fields) = shared.form(request).await?;
    let domains = chosen(&visitor, &fields, "domain")?;
    let verb = match fields.text("verb") {
        "allow" => Verb::Allow,
        "deny" => Verb::Deny,
        "limit" => Verb::Limit(fields.number("a_day")),
        "forget" => Verb::Forget,
        _ => return Err(missing(&visitor, "Choose a decision.")),
    };
    let reason = fields.text("reason").to_owned();
    let order = Order::Decide {
        domains,
        verb,
        reason,
    };
    shared.act(&visitor, order, "/groups").await
}

pub(super) async fn undo(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Early> {
    let (visitor, fields) = shared.form(request).await?;
    let chosen = chosen(&visitor, &fields, "decision")?;
    let decisions = chosen.iter().filter_map(|text| decision_id(text)).collect();
    let order = Order::Undo { decisions };
    shared.act(&visitor, order, "/decisions").await
}

pub(super) async fn resume_source(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Early> {
    let (visitor, fields) = shared.form(request).await?;
    let name = fields.text("name").to_owned();
    shared
        .act(&visitor, Order::ResumeSource { name }, "/sources")
        .await
}

pub(super) async fn publish(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Early> {
    let (visitor, _fields) = shared.form(request).await?;
    shared
        .act(&visitor, Order::PublishByForce {}, "/list")
        .await
}

pub(super) async fn host(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Early> {
    let (visitor, fields) = shared.form(request).await?;
    let host = fields.text("host").trim().to_owned();
    let reason = fields.text("reason").to_owned();
    let back = pages::path_of_host(&host);
    let decide = |decision| Order::DecideHost {
        host: host.clone(),
        decision,
        reason,
    };
    let order = match fields.text("do") {
        "check" => Order::Check { host },
        "take_out" => decide(HostVerb::TakeOut),
        "put_back" => decide(HostVerb::PutBack),
        _ => return Err(missing(&visitor, "Choose what to do.")),
    };
    shared.act(&visitor, order, &back).await
}

fn chosen(visitor: &Visitor, fields: &Fields, name: &str) -> Result<Vec<String>, Early> {
    let chosen: Vec<_> = fields.all(name).map(str::to_owned).collect();
    if chosen.is_empty() {
        return Err(missing(visitor, "Tick at least one row."));
    }
    if chosen.len() > DOMAINS_MAX {
        return Err(missing(visitor, "Tick fewer rows at once."));
    }
    Ok(chosen)
}

fn missing(visitor: &Visitor, text: &str) -> Early {
    let title = "Something is missing";
    pages::of_visitor(visitor, title, text, StatusCode::BAD_REQUEST).into()
}

/// Parses `g12` or `h12`, the form of ids in the page of decisions.
fn decision_id(text: &str) -> Option<DecisionId> {
    if let Some(id) = text.strip_prefix('g') {
        return id.parse().ok().map(DecisionId::Group);
    }
    let id = text.strip_prefix('h')?.parse().ok()?;
    Some(DecisionId::Host(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_named_by_kind_and_number() {
        for (text, expect) in [
            ("g12", Some(DecisionId::Group(12))),
            ("h1", Some(DecisionId::Host(1))),
            ("12", None),
            ("g", None),
            ("x1", None),
        ] {
            assert_eq!(decision_id(text), expect, "{text}");
        }
    }
}
