//! Forms that send orders to the daemon.

use axum::http::StatusCode;
use axum::response::Response;

use super::looks::groups_page;
use super::{Early, Form};
use crate::pages;
use crate::wire::{DOMAINS_MAX, DecisionId, HostVerb, Order, Verb, Which};

pub(super) async fn decide(form: Form) -> Result<Response, Early> {
    let domains = chosen(&form, "domain")?;
    let verb = match form.fields.text("verb") {
        "allow" => Verb::Allow,
        "deny" => Verb::Deny,
        "limit" => Verb::Limit(form.fields.number("a_day")),
        "forget" => Verb::Forget,
        _ => return Err(missing(&form, "Choose a decision.")),
    };
    let reason = form.fields.text("reason").to_owned();
    let order = Order::Decide {
        domains,
        verb,
        reason,
    };
    let outcomes = form.act(order).await?;
    groups_page(&form.shared, &form.visitor, (Which::Held, 0), &outcomes).await
}

pub(super) async fn undo(form: Form) -> Result<Response, Early> {
    let chosen = chosen(&form, "decision")?;
    let decisions = chosen.iter().filter_map(|text| decision_id(text)).collect();
    let order = Order::Undo { decisions };
    form.done(order, "/groups").await
}

pub(super) async fn resume_source(form: Form) -> Result<Response, Early> {
    let name = form.fields.text("name").to_owned();
    form.done(Order::ResumeSource { name }, "/sources").await
}

pub(super) async fn publish(form: Form) -> Result<Response, Early> {
    form.done(Order::PublishByForce {}, "/list").await
}

pub(super) async fn host(form: Form) -> Result<Response, Early> {
    let host = form.fields.text("host").trim().to_owned();
    let reason = form.fields.text("reason").to_owned();
    let back = pages::path_of_host(&host);
    let decide = |decision| Order::DecideHost {
        host: host.clone(),
        decision,
        reason,
    };
    let order = match form.fields.text("do") {
        "check" => Order::Check { host },
        "take_out" => decide(HostVerb::TakeOut),
        "put_back" => decide(HostVerb::PutBack),
        _ => return Err(missing(&form, "Choose what to do.")),
    };
    form.done(order, &back).await
}

fn chosen(form: &Form, name: &str) -> Result<Vec<String>, Early> {
    let chosen: Vec<_> = form.fields.all(name).map(str::to_owned).collect();
    if chosen.is_empty() {
        return Err(missing(form, "Tick at least one row."));
    }
    if chosen.len() > DOMAINS_MAX {
        return Err(missing(form, "Tick fewer rows at once."));
    }
    Ok(chosen)
}

fn missing(form: &Form, text: &str) -> Early {
    let title = "Something is missing";
    pages::of_visitor(&form.visitor, title, text, StatusCode::BAD_REQUEST).into()
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
