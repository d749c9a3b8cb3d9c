//! Looks up the TXT records by which owners speak to the census.
//!
//! Takes a [`TextName`] and the registered domain that it lies in. Answers with what DNS says,
//! bounded in number and bytes, remembered for as long as DNS allows; nothing in the records is
//! looked at here. Look-ups that are out of turn are deferred.

use std::sync::PoisonError;

use crate::net::resolve::text::TextSource;
use crate::service::open::{OWN_FAILURE_RETRY, deferred, late};
use crate::service::state::Shared;
use crate::wire::control::{Answer, Deferral};
use crate::wire::text_name::TextName;

/// Answers a request for texts: from memory, or in its turn from DNS.
pub(crate) async fn look_up(shared: &Shared, name: &TextName, group: &str) -> Answer {
    if !group.contains('.') || !name.domain().is_within(group) {
        return Answer::Refused {
            message: "the name does not lie in the group".to_owned(),
        };
    }
    if let Some(texts) = shared.resolver.remembered_texts(name) {
        return Answer::Txt(texts);
    }
    let now = tokio::time::Instant::now().into_std();
    let charged = shared
        .pace
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .charge_text(name.label().as_str(), group, now);
    match charged {
        Ok(wait) => tokio::time::sleep(wait).await,
        Err(lateness) => return late(lateness),
    }
    match shared.resolver.ask_texts(name).await {
        TextSource::Answered(texts) => Answer::Txt(texts),
        TextSource::Offline => Answer::Offline {},
        TextSource::OwnFailure => deferred(Deferral::Dns, OWN_FAILURE_RETRY),
    }
}
