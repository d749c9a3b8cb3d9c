//! List mode: reads one public list of one host, or the host's proof of its wishes, instead of a
//! check.
//!
//! Takes a fetcher and the order for a list. Prints `hello`, names as `peers` lines or the lines of
//! a suffix list or proof, then `listed` or `unlisted`, and `done`. Rejects what robots.txt
//! forbids, HTML pages, and everything over the bounds. Redirects to another host are reported and
//! not followed. Elements that are no name are counted. Nothing here judges the host.

mod csv;
mod format;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod not_a_list;
mod text;
mod verbatim;

use protocol::{Event, ListFormat, ListOrder, ListOutcome, UnlistedReason, limits};

use crate::check::{NoRules, Refusal, robots};
use crate::emit::{Emitter, Fault};
use crate::fetch::{Accept, Body, Failure, Fetcher};
use crate::peers::feed::{Streamed, stream};
use crate::peers::sink::{Closed, Sink};
use format::read_names;
use not_a_list::NotAList;
use verbatim::{TextSink, read_text};

/// Reads one list and prints its events, `hello` first and `done` last.
pub async fn run(
    fetcher: &mut Fetcher,
    mut emitter: Emitter,
    order: &ListOrder,
) -> Result<(), Fault> {
    emitter.hello()?;
    let (mut emitter, end) = match open(fetcher, order).await {
        Ok(body) => read(body, emitter, fetcher, order).await?,
        Err(unlisted) => (emitter, unlisted),
    };
    emitter.emit(&end)?;
    Ok(emitter.done(fetcher)?)
}

/// The list's body, or why there is none.
async fn open(fetcher: &mut Fetcher, order: &ListOrder) -> Result<Body, Event> {
    let rules = robots(fetcher).await.map_err(|no_rules| match no_rules {
        NoRules::Refused(Refusal { status, .. }) => {
            unlisted(UnlistedReason::RobotsUnavailable, Some(status), None)
        }
        NoRules::Unavailable(status) => unlisted(UnlistedReason::RobotsUnavailable, status, None),
        NoRules::Failed(failure) => of_failure(failure),
    })?;
    fetcher.obey(rules);

    let ask = fetcher.ask_for(order.path.as_str());
    let mut ask = ask.map_err(|_no_url| unlisted(UnlistedReason::NotAList, None, None))?;
    ask.accept = match order.format {
        ListFormat::Json | ListFormat::Ndjson => Accept::Json,
        ListFormat::Lines | ListFormat::Csv | ListFormat::Suffixes | ListFormat::Proof => {
            Accept::Text
        }
    };
    let answer = fetcher.get(ask).await.map_err(of_failure)?;
    if answer.status != 200 || answer.wall.is_some() {
        let status = Some(answer.status);
        return Err(unlisted(UnlistedReason::Status, status, None));
    }
    if answer.is_html {
        return Err(unlisted(UnlistedReason::NotAList, None, None));
    }
    let bytes_max = body_bytes_max(order.format, fetcher.limits().list_bytes);
    answer.body(bytes_max).map_err(of_failure)
}

/// Most decoded bytes of a body that are read. For a proof, no more than a valid one can have.
fn body_bytes_max(format: ListFormat, list_bytes: u64) -> u64 {
    match format {
        ListFormat::Proof => {
            list_bytes.min(u64::try_from(limits::PROOF_TEXT_BYTES_MAX).unwrap_or(u64::MAX))
        }
        ListFormat::Lines
        | ListFormat::Json
        | ListFormat::Ndjson
        | ListFormat::Csv
        | ListFormat::Suffixes => list_bytes,
    }
}

/// Most bytes of text that are printed, line ends included; `None` if the format holds names.
fn text_bytes_max(format: ListFormat) -> Option<usize> {
    match format {
        ListFormat::Suffixes => Some(limits::SUFFIX_TEXT_BYTES_MAX),
        ListFormat::Proof => Some(limits::PROOF_TEXT_BYTES_MAX),
        ListFormat::Lines | ListFormat::Json | ListFormat::Ndjson | ListFormat::Csv => None,
    }
}

/// Reads the body to its end or to a bound. Returns the emitter and the event that ends the list.
async fn read(
    body: Body,
    emitter: Emitter,
    fetcher: &Fetcher,
    order: &ListOrder,
) -> Result<(Emitter, Event), Fault> {
    let format = order.format;
    let (closed, fed, read) = if let Some(bytes_max) = text_bytes_max(format) {
        let sink = TextSink::new(emitter, bytes_max);
        let streamed = stream(body, sink, read_text).await;
        let Streamed { sink, fed, read } = streamed.ok_or(Fault::ReaderLost)?;
        (sink.close()?, fed, read)
    } else {
        let names_max = u64::from(order.names_max).min(fetcher.limits().peers);
        let sink = Sink::new(emitter, None, names_max);
        let streamed = stream(body, sink, move |queue, sink| {
            read_names(format, queue, sink)
        });
        let streamed = streamed.await;
        let Streamed { sink, fed, read } = streamed.ok_or(Fault::ReaderLost)?;
        (sink.close()?, fed, read)
    };
    let Closed {
        emitter,
        dropped,
        full,
    } = closed;
    Ok((emitter, ended(fed, read, dropped, full)))
}

/// The last event of a list whose body was read.
fn ended(fed: Result<(), Failure>, read: Result<(), NotAList>, dropped: u64, full: bool) -> Event {
    let listed = |outcome| Event::Listed { outcome, dropped };
    match (fed, read) {
        _ if full => listed(ListOutcome::Truncated),
        (Err(Failure::TooLarge | Failure::TooSlow | Failure::Deadline), _) => {
            listed(ListOutcome::Truncated)
        }
        (Err(failure), _) => of_failure(failure),
        (Ok(()), Err(NotAList)) => unlisted(UnlistedReason::NotAList, None, None),
        (Ok(()), Ok(())) => listed(ListOutcome::Complete),
    }
}

/// The reason for `unlisted` when there is no answer.
fn of_failure(failure: Failure) -> Event {
    let plain = |reason| unlisted(reason, None, None);
    match failure {
        Failure::Disallowed => plain(UnlistedReason::Disallowed),
        Failure::Moved(to) | Failure::Temporary(to) => {
            unlisted(UnlistedReason::Elsewhere, None, Some(to.to_string()))
        }
        Failure::BadRedirect(to) => unlisted(UnlistedReason::BadRedirect, None, to),
        // A run without requests left was sent from page to page.
        Failure::RedirectToSelf | Failure::RedirectLoop | Failure::Requests => {
            plain(UnlistedReason::RedirectLoop)
        }
        Failure::Tls(_) => plain(UnlistedReason::Tls),
        // No bound of a body can be passed before it is read.
        Failure::Http | Failure::BrokenOff | Failure::TooLarge => plain(UnlistedReason::Http),
        Failure::Timeout | Failure::TooSlow | Failure::Deadline => plain(UnlistedReason::Timeout),
        Failure::Encoding => plain(UnlistedReason::Encoding),
    }
}

fn unlisted(reason: UnlistedReason, status: Option<u16>, to: Option<String>) -> Event {
    Event::Unlisted { reason, status, to }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::ListPath;
    use url::Url;

    proptest! {
        /// The invariant of [`ListPath`], tested with the parser that makes the addresses.
        #[test]
        fn no_path_of_an_order_leads_off_its_host(text in "/[/\\\\@:#?.a \t\n%5c\u{e9}-]{0,12}") {
            if let Ok(path) = ListPath::parse(&text) {
                let origin = Url::parse("https://a.example/").unwrap();
                let url = origin.join(path.as_str()).unwrap();
                prop_assert_eq!(url.origin(), origin.origin());
                prop_assert_eq!(url.username(), "");
                prop_assert_eq!(url.fragment(), None);
            }
        }
    }
}
