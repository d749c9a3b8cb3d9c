//! The button that turns notifications on and off. It is on no page of a census without push.

use maud::{Markup, html};

use crate::facts::{Facts, Push};

/// What a button notifies of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notified<'a> {
    /// Any instance that is new or gone.
    All,
    /// A new instance of this software.
    Software(&'a str),
    /// A change of the host that the page answers about.
    Host,
}

/// The button, with what it keeps.
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

/// The scripts of a page with a button: its own, and the button's first, which listens to them.
pub(crate) fn scripts(facts: &Facts, own: &[&'static str]) -> Vec<&'static str> {
    let script = match facts.push {
        Push::Open => &["/push.js"][..],
        Push::Closed => &[],
    };
    [script, own].concat()
}
