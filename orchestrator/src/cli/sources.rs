//! Commands about public lists: the operator's configuration, the results of reading, and the end
//! of a pause.

use clap::Subcommand;
use serde::Serialize;

use super::{OK, Output, ask, say};
use crate::config::Config;
use crate::inspect::status::SourceShown;
use crate::serve::control::Request;

#[derive(Debug, Subcommand)]
pub(super) enum Sources {
    /// Show the public lists of the setting `sources`, and what came of reading them
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Read a list again that is paused for having grown tenfold, and take it whatever it holds
    Resume {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Serialize)]
struct View {
    url: String,
    format: &'static str,
    interval_hours: u64,
    #[serde(flatten)]
    remembered: SourceShown,
}

pub(super) async fn obey(command: Sources, config: &Config) -> anyhow::Result<u8> {
    match command {
        Sources::List { output } => list(config, output.json),
        Sources::Resume { name } => ask::either(config, Request::ResumeSource { name }).await,
    }
}

fn list(config: &Config, json: bool) -> anyhow::Result<u8> {
    let sources = config.sources()?;
    let memories = store::open_read_only(&config.database())?.sources()?;
    let shown: Vec<_> = sources
        .iter()
        .map(|source| {
            let name = source.name.as_str();
            let memory = memories.get(name).cloned().unwrap_or_default();
            View {
                url: source.url(),
                format: source.format.as_str(),
                interval_hours: source.interval.as_secs() / 3600,
                remembered: SourceShown::new(name, &memory),
            }
        })
        .collect();
    if json {
        say(&serde_json::to_string(&shown)?)?;
        return Ok(OK);
    }
    for source in &shown {
        let remembered = &source.remembered;
        say(&format!(
            "{}: {} ({}, every {} h): {}",
            remembered.name,
            source.url,
            source.format,
            source.interval_hours,
            remembered.text()
        ))?;
    }
    if shown.is_empty() {
        say("no sources: the setting `sources` names no file, or an empty one")?;
    }
    Ok(OK)
}
