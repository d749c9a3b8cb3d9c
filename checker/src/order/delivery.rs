//! Delivery mode: sends ready-made push messages to a push service instead of checking a host.
//!
//! Posts the order's messages one after the other and prints each outcome: `hello`, a `posted` or
//! `unposted` for each message in their order, `done`. Nothing else is requested, not even
//! robots.txt, and nothing here judges the host.

use protocol::limits::{DELIVERY_FAILURES_MAX, RETRY_AFTER_SECONDS_MAX};
use protocol::{DeliveryOrder, Event, UnpostedReason};

use crate::emit::{Emitter, Fault};
use crate::fetch::{Failure, Fetcher, Posted};

/// Posts all messages and prints events, `hello` first and `done` last.
/// When stdout fails. Whatever the push service does becomes an event.
pub async fn run(
    fetcher: &mut Fetcher,
    mut emitter: Emitter,
    order: &DeliveryOrder,
) -> Result<(), Fault> {
    emitter.hello()?;
    let mut failures = 0_u32;
    let mut is_stopped = false;
    for (number, message) in (0_u32..).zip(order.messages()) {
        if is_stopped {
            emitter.emit(&unposted(number, UnpostedReason::NotSent))?;
            continue;
        }
        let event = match fetcher.post(message).await {
            Ok(posted) => {
                is_stopped = asks_for_a_pause(posted);
                Event::Posted {
                    message: number,
                    status: posted.status,
                    retry_after_s: posted
                        .retry_after_s
                        .map(|seconds| seconds.min(RETRY_AFTER_SECONDS_MAX)),
                }
            }
            Err(failure) => {
                failures = failures.saturating_add(1);
                is_stopped = failures >= DELIVERY_FAILURES_MAX || failure == Failure::Deadline;
                unposted(number, reason(&failure))
            }
        };
        emitter.emit(&event)?;
    }
    Ok(emitter.done(fetcher)?)
}

/// Whether the push service wants nothing more for now.
fn asks_for_a_pause(posted: Posted) -> bool {
    match posted.status {
        429 => true,
        503 => posted.retry_after_s.is_some(),
        _ => false,
    }
}

fn unposted(message: u32, reason: UnpostedReason) -> Event {
    Event::Unposted { message, reason }
}

fn reason(failure: &Failure) -> UnpostedReason {
    match failure {
        Failure::Tls(_) => UnpostedReason::Tls,
        Failure::Timeout | Failure::Deadline | Failure::TooSlow => UnpostedReason::Timeout,
        Failure::Http
        | Failure::BrokenOff
        | Failure::TooLarge
        | Failure::Encoding
        | Failure::Disallowed
        | Failure::Moved(_)
        | Failure::Temporary(_)
        | Failure::BadRedirect(_)
        | Failure::RedirectToSelf
        | Failure::RedirectLoop
        | Failure::Requests => UnpostedReason::Http,
    }
}
