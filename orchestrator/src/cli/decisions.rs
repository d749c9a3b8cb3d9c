//! Commands about the log of decisions: list it, and undo a decision.

use census::time::rfc3339;
use clap::Subcommand;
use serde::Serialize;
use store::{About, HostDecision, LoggedDecision};

use super::{FAILED, OK, Output, ask, complain, say};
use crate::config::Config;
use crate::groups::decision_words;
use crate::serve::control::Request;

const PAGE: u32 = 1000;

#[derive(Debug, Subcommand)]
pub(super) enum Decisions {
    /// Show all decisions about groups and hosts, the newest first
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Undo the newest decision about a group or host: the one before it is in force again
    Undo {
        /// Its id, as `decisions list` shows it
        id: String,
    },
}

#[derive(Debug, Serialize)]
struct View {
    id: String,
    subject: String,
    decision: String,
    at: String,
    who: String,
    reason: String,
    can_be_undone: bool,
}

pub(super) async fn obey(command: Decisions, config: &Config) -> anyhow::Result<u8> {
    match command {
        Decisions::List { output } => list(config, output.json),
        Decisions::Undo { id } => {
            let number = |prefix| id.strip_prefix(prefix)?.parse().ok();
            let request = match (number('g'), number('h')) {
                (Some(id), _) => Request::UndoGroupDecision { id },
                (None, Some(id)) => Request::UndoHostDecision { id },
                (None, None) => {
                    let why = format!("{id:?} is not the id of a decision, such as g12 or h3");
                    return Ok(complain(&why, FAILED));
                }
            };
            ask::either(config, request).await
        }
    }
}

fn list(config: &Config, json: bool) -> anyhow::Result<u8> {
    let reader = store::open_read_only(&config.database())?;
    let (mut cursor, mut shown) = (None, Vec::new());
    loop {
        let page = reader.decisions(cursor, PAGE)?;
        shown.extend(page.rows.into_iter().map(View::from));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    if json {
        say(&serde_json::to_string(&shown)?)?;
        return Ok(OK);
    }
    for row in &shown {
        say(&format!(
            "{} {} {}: {} by {}: {}",
            row.id, row.at, row.subject, row.decision, row.who, row.reason
        ))?;
    }
    if shown.is_empty() {
        say("no decisions")?;
    }
    Ok(OK)
}

impl From<LoggedDecision> for View {
    fn from(logged: LoggedDecision) -> Self {
        let (kind, subject, decision) = match logged.about {
            About::Group { domain, decision } => ('g', domain, decision_words(decision)),
            About::Host { name, decision } => {
                let words = match decision {
                    HostDecision::TakeOut => "taken out",
                    HostDecision::PutBack => "put back",
                };
                ('h', name, words.to_owned())
            }
        };
        Self {
            id: format!("{kind}{}", logged.id),
            subject,
            decision,
            at: rfc3339(logged.at),
            who: logged.who,
            reason: logged.reason,
            can_be_undone: logged.is_newest,
        }
    }
}
