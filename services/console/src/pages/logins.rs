//! Sessions, bans and locks.

use accounts::{HoldShown, Session};
use axum::response::Response;
use limiter::login::record::Timestamp;
use maud::{Markup, html};

use super::layout::{Page, form_token, shown};
use crate::login::Visitor;

pub(crate) fn logins(visitor: &Visitor, sessions: &[Session], holds: &[HoldShown]) -> Response {
    let content = html! {
        h2 { "Logged in" }
        div.scroll tabindex="0" {
            table {
                thead { tr { th scope="col" { "Moderator" } th scope="col" { "Since" } th scope="col" { "Last used" } th scope="col" { "End" } } }
                tbody {
                    @for session in sessions {
                        tr {
                            th scope="row" { (session.moderator) }
                            td data-label="Since" { (time(session.created_at)) }
                            td data-label="Last used" { (time(session.used_at)) }
                            td { (end(visitor, &session.moderator, &format!("End all of {}", session.moderator))) }
                        }
                    }
                }
            }
        }
        p { "A session ends after 30 minutes without use, and after 12 hours." }
        (end(visitor, "*", "End all sessions, yours too"))
        h2 { "Bans and locks" }
        @if holds.is_empty() {
            p { "None." }
        } @else {
            (table_of(visitor, holds))
        }
        p { "An address is banned after more than 6 attempts in a minute: for 30 minutes, and each time twice as long. A name is locked for 10 minutes after more than 6 failures in a minute; a browser that has logged in before is not. Addresses are kept as keyed hashes, so nobody can read them here." }
    };
    Page::new(visitor, "/logins", "Logins").respond(&content)
}

fn table_of(visitor: &Visitor, holds: &[HoldShown]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { th scope="col" { "What" } th scope="col" { "Until" } th scope="col" { "Bans lately" } th scope="col" { "Lift" } } }
                tbody {
                    @for hold in holds {
                        tr {
                            th scope="row" { (name_of(hold)) }
                            td data-label="Until" { (time(hold.until)) }
                            td.number data-label="Bans lately" { (hold.bans) }
                            td {
                                form method="post" action="/logins" {
                                    (form_token(visitor))
                                    input type="hidden" name="lift" value=(hold.id);
                                    button aria-label={ "Lift: " (name_of(hold)) } { "Lift" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn name_of(hold: &HoldShown) -> String {
    let moderator = hold.moderator.as_deref().unwrap_or("no account");
    let mark: String = hold.id.chars().take(8).collect();
    match hold.kind.as_str() {
        "address" => format!("address {mark}"),
        "device" => format!("a browser of {moderator}"),
        _ => format!("name {mark} ({moderator})"),
    }
}

fn end(visitor: &Visitor, whose: &str, label: &str) -> Markup {
    html! {
        form method="post" action="/logins" {
            (form_token(visitor))
            input type="hidden" name="end" value=(whose);
            button { (label) }
        }
    }
}

fn time(at: Timestamp) -> Markup {
    let seconds = i64::try_from(at.0.as_secs()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_second(seconds);
    shown(&at.map_or_else(|_| String::new(), |at| at.to_string()))
}
