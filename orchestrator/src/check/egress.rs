//! Asks the gateway to open a host. The answer is ready, unreachable, deferred or offline.
//!
//! The check of a host that can't be opened ends here: nothing answered, so there is nothing to
//! parse. A failure of the gateway itself is a fault.

use census::state::Verdict;
use gateway::{Egress, Opened};
use scheduler::event::CheckOutcome;

use crate::check::input::Check;
use crate::check::outcome::{self, Evidence};
use crate::check::services::Services;
use crate::ground::fault::Fault;

#[derive(Debug)]
pub enum Opening {
    /// The host has accepted a connection. The caller closes it when the check is over.
    Open(Egress),
    Closed(CheckOutcome),
}

/// Asks the gateway to open the check's host.
pub async fn open(check: &Check, services: &Services) -> Result<Opening, Fault> {
    let group = services.gate.names().registered_domain(&check.host);
    let opened = services
        .gateway_of(check.wish.way)
        .open(
            check.id.clone(),
            check.host.clone(),
            group,
            check.order.clone(),
            check.wish,
        )
        .await
        .map_err(Fault::Gateway)?;
    Ok(match opened {
        Opened::Ready(egress) => {
            count_look_up(egress.fresh, services);
            Opening::Open(egress)
        }
        Opened::Unreachable {
            reason,
            detail,
            families,
            fresh,
        } => {
            count_look_up(fresh, services);
            check.step(|| {
                format!(
                    "{}: unreachable, {}: {detail}",
                    check.gateway(),
                    reason.as_str()
                )
            });
            let verdict = Verdict::Dead {
                reason,
                status: None,
                to: None,
            };
            let evidence = Evidence {
                began: check.began,
                lived: None,
                families,
                address: None,
                fresh,
            };
            Opening::Closed(outcome::judged(verdict, evidence))
        }
        Opened::Deferred { why, retry_after } => {
            check.step(|| {
                format!(
                    "{}: not now, because {why} ({} ms)",
                    check.gateway(),
                    retry_after.as_millis()
                )
            });
            Opening::Closed(CheckOutcome::Deferred { why, retry_after })
        }
        Opened::Offline => {
            check.step(|| format!("{}: this machine has no network", check.gateway()));
            Opening::Closed(CheckOutcome::Offline)
        }
    })
}

fn count_look_up(fresh: bool, services: &Services) {
    if fresh {
        services.meters.looked_up();
    }
}
