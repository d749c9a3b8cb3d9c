//! Looks up the TXT records that owners publish for the census.
//!
//! It takes a [`TextName`] and its registered domain. It returns the DNS answer, bounded in number
//! and bytes and cached as long as DNS allows, without interpreting the records. Look-ups before
//! their turn are deferred.

use local_socket::Ask as _;

use crate::net::resolve::text::TextSource;
use crate::service::open::{OWN_FAILURE_RETRY, deferred, late};
use crate::state::Shared;
use crate::wire::control::{Answer, Deferral, Request};
use crate::wire::text_name::TextName;

/// Answers a request for TXT records: from the cache, or in its turn from DNS.
pub(crate) async fn look_up(shared: &Shared, name: &TextName, group: &str) -> Answer {
    if !group.contains('.') || !name.domain().is_within(group) {
        return Request::failed("the name is not in the group".to_owned());
    }
    if let Some(texts) = shared.resolver.remembered_texts(name) {
        return Answer::Txt(texts);
    }
    let now = tokio::time::Instant::now().into_std();
    let own = shared.paces.own();
    match own.map(|mut pace| pace.charge_text(name.label().as_str(), group, now)) {
        Some(Ok(wait)) => tokio::time::sleep(wait).await,
        Some(Err(lateness)) => return late(lateness),
        None => return Request::failed("only the first gateway looks up TXT records".to_owned()),
    }
    match shared.resolver.ask_texts(name).await {
        TextSource::Answered(texts) => Answer::Txt(texts),
        TextSource::Offline => Answer::Offline {},
        TextSource::OwnFailure => deferred(Deferral::Dns, OWN_FAILURE_RETRY),
    }
}
