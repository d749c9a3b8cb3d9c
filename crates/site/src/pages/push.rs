//! The button that turns notifications on and off. Only pages of a census with push have it.

use maud::{Markup, html};

use crate::facts::{Facts, Push};

/// The subject of a button's notifications.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notified<'a> {
    /// All new and gone instances.
    All,
    Software(&'a str),
    /// Changes of the host whose answer the page shows.
    Host,
}

pub(crate) fn button(facts: &Facts, of: Notified<'_>) -> Markup {
    let (label, software) = match of {
        Notified::All => ("Notify me of new and gone instances", None),
        Notified::Software(software) => ("Notify me of new instances", Some(software)),
        Notified::Host => ("Notify me when this instance's state changes", None),
    };
    html! {
        @if facts.push == Push::Open {
            div.scripted {
                @if let Notified::Host = of { h3 { "Notifications" } }
                p {
                    button id="notify" type="button" aria-pressed="false" aria-describedby="notify-kept" data-software=[software] disabled { (label) }
                    " " span id="notify-status" role="status" {}
                }
                p id="notify-kept" { "While notifications are on, this census keeps the address of your browser's push service, two keys, and what you asked for; nothing else. It is deleted when you stop." }
            }
        }
    }
}

/// The scripts of a page with a button. The button's script comes first, since it listens to the
/// page's.
pub(crate) fn scripts(facts: &Facts, own: &[&'static str]) -> Vec<&'static str> {
    let script = match facts.push {
        Push::Open => &["/push.js"][..],
        Push::Closed => &[],
    };
    [script, own].concat()
}
