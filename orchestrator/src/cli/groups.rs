//! Commands about groups. Those that show groups read the database. Those that decide ask the
//! daemon, or use the database if no daemon runs.

use clap::Subcommand;
use console::wire::{GroupFacts, Labelled};
use serde::Serialize;
use store::StoredGroup;

use super::{FAILED, OK, Output, ask, complain, say};
use crate::config::Config;
use crate::ground::clock::{Clock as _, SystemClock};
use crate::groups::facts::{MEMBERS_MAX, facts};
use crate::groups::{Verb, decision_words, in_words, registered};
use crate::serve::control::Request;
use census::time::rfc3339;

/// Groups that `list` shows: more than a person looks through.
const LIST_MAX: u32 = 1000;

#[derive(Debug, Subcommand)]
pub(super) enum Groups {
    /// Show groups by their sizes, the largest first, a thousand at most
    List {
        /// Those alone that are held: over the threshold, and nobody has looked at them
        #[arg(long)]
        held: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Show one group: what a decision needs, what each would do, and former ones, the newest first
    Show {
        /// The registered domain
        domain: String,
        #[command(flatten)]
        output: Output,
    },
    /// Have its hosts asked and listed like any others, however many they are
    Allow(About),
    /// Have none of its hosts asked or listed
    Deny(About),
    /// Have its hosts listed like any others, and so many of them asked a day at most
    Limit {
        #[command(flatten)]
        about: About,
        /// Checks a day, 1 at least
        #[arg(value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
        a_day: u32,
    },
    /// Take back what was decided: the group goes by the threshold again
    ForgetDecision(About),
}

#[derive(Debug, clap::Args)]
pub(super) struct About {
    /// The registered domain
    domain: String,
    /// Why: it is kept, and `explain` tells it
    #[arg(long)]
    reason: String,
}

#[derive(Debug, Serialize)]
struct View {
    domain: String,
    hosts: u64,
    held: bool,
    held_back: u64,
    decision: &'static str,
    a_day: Option<u32>,
    reason: Option<String>,
    decided_at: Option<String>,
}

/// A group with its facts.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    view: View,
    facts: GroupFacts,
}

pub(super) async fn obey(command: Groups, config: &Config) -> anyhow::Result<u8> {
    let (about, verb) = match command {
        Groups::List { held, output } => return list(config, held, output.json),
        Groups::Show { domain, output } => return show(config, &domain, output.json),
        Groups::Allow(about) => (about, Verb::Allow),
        Groups::Deny(about) => (about, Verb::Deny),
        Groups::Limit { about, a_day } => (about, Verb::Limit(a_day)),
        Groups::ForgetDecision(about) => (about, Verb::ForgetDecision),
    };
    let request = Request::DecideGroup {
        domain: about.domain,
        verb,
        reason: about.reason,
    };
    ask::either(config, request).await
}

fn list(config: &Config, held: bool, json: bool) -> anyhow::Result<u8> {
    let reader = store::open_read_only(&config.database())?;
    let groups = reader.largest_groups(held, LIST_MAX)?;
    if json {
        let shown: Vec<_> = groups.into_iter().map(View::from).collect();
        say(&serde_json::to_string(&shown)?)?;
    } else {
        for group in &groups {
            say(&format!("{}: {}", group.domain, in_words(group)))?;
        }
    }
    Ok(OK)
}

fn show(config: &Config, domain: &str, json: bool) -> anyhow::Result<u8> {
    let domain = match registered(&config.names()?, domain) {
        Ok(domain) => domain,
        Err(why) => return Ok(complain(&why, FAILED)),
    };
    let reader = store::open_read_only(&config.database())?;
    let now = SystemClock.now();
    let members = reader.members(&domain, MEMBERS_MAX, now, config.calendar)?;
    let group = reader.group(&domain)?;
    if json {
        let shown = group.map(|group| Shown {
            facts: facts(&group, &members, now),
            view: View::from(group),
        });
        say(&serde_json::to_string(&shown)?)?;
        return Ok(OK);
    }
    match &group {
        Some(group) => {
            say(&format!("{domain}: {}", in_words(group)))?;
            say(&in_lines(&facts(group, &members, now)))?;
        }
        None => say(&format!("{domain}: no hosts, and no decision in force"))?,
    }
    for decided in reader.group_decisions(&domain)? {
        say(&format!(
            "  {} {}: {} ({})",
            rfc3339(decided.at),
            decision_words(decided.decision),
            decided.reason,
            decided.who
        ))?;
    }
    Ok(OK)
}

fn in_lines(facts: &GroupFacts) -> String {
    let suggestion = facts.suggestion.iter();
    let suggestion = suggestion.map(|(verb, why)| ("suggestion".into(), format!("{verb}: {why}")));
    let names = [("names".into(), facts.names.join(", "))];
    let lines = facts.lines.iter().cloned().chain(names);
    let lines = lines.chain(facts.effects.iter().cloned()).chain(suggestion);
    let lines = lines.map(|(label, text): Labelled| format!("  {label:<11} {text}"));
    lines.collect::<Vec<_>>().join("\n")
}

impl From<StoredGroup> for View {
    fn from(stored: StoredGroup) -> Self {
        use census::group::Decision;
        Self {
            hosts: stored.group.hosts,
            held: stored.group.is_held(),
            held_back: stored.held_back,
            decision: stored.group.decision.as_str(),
            a_day: match stored.group.decision {
                Decision::Limit { a_day } => Some(a_day),
                Decision::None | Decision::Allow | Decision::Deny => None,
            },
            reason: stored.reason,
            decided_at: stored.decided_at.map(rfc3339),
            domain: stored.domain,
        }
    }
}
