//! Reads a configured list now and shows its names; nothing is learned from it or remembered of it.
//!
//! Only addresses of the operator's sources are read, so that no one can make the census fetch
//! anything else.

use std::collections::BTreeSet;

use protocol::{Host, ListFormat, ListOutcome};
use report::list::{NamesRead, Outcome};

use super::Source;
use super::keep::refusal;
use crate::check::services::Services;
use crate::discover::reading::{self, Ended};

/// The names of the source at this address.
///
/// # Errors
/// No source has the address, its host must not be asked, or the list could not be read completely.
pub async fn names(
    url: &str,
    sources: &[Source],
    services: &Services,
) -> Result<BTreeSet<Host>, String> {
    let source = sources
        .iter()
        .find(|source| source.url() == url && source.format != ListFormat::Suffixes)
        .ok_or("no source of names has this URL; `fedicensus sources list` shows all sources")?;
    let refused = refusal(&source.host, services).await;
    if let Some(why) = refused.map_err(|error| error.to_string())? {
        return Err(why);
    }
    match reading::list(&source.host, source.list(), services).await {
            Ended::Read(Outcome::Names(NamesRead {
                outcome: ListOutcome::Complete,
                names,
                ..
            })) => Ok(names),
            Ended::Read(Outcome::Names(_)) => Err("the list was not read to its end, so its missing names are unknown; its `limit` may be too low".to_owned()),
            Ended::Read(Outcome::Unread(unread)) => Err(unread.to_string()),
            Ended::Read(other) => Err(format!("not a list of names: {other:?}")),
            Ended::Unreachable { reason, detail } => {
                Err(format!("its host can't be reached, {}: {detail}", reason.as_str()))
            }
            Ended::Deferred { why, retry_after } => {
                let seconds = retry_after.as_secs().saturating_add(1);
                Err(format!("not now ({why:?}): try again in {seconds} s"))
            }
            Ended::Offline => Err("there is no network".to_owned()),
            Ended::Fault(fault) => Err(fault.to_string()),
        }
}
