//! Asks the gateway to open a host: ready, unreachable, deferred or offline.
//!
//! In: a check. Out: an egress whose socket lies in the check's directory, or the end of the check: nothing answered, nothing to parse.
//! Refused: nothing; what the gateway itself does not answer is a fault.

use census::state::Verdict;
use census::time::Timestamp;
use gateway::{Egress, Opened};
use scheduler::blame::doubt::{Dns, Doubt, Witness};
use scheduler::event::CheckOutcome;

use crate::check::Check;
use crate::check::fault::Fault;
use crate::services::Services;

/// What came of asking.
#[derive(Debug)]
pub enum Way {
    /// The host has accepted a connection.
    Open {
        /// To be closed when the check is over.
        egress: Egress,
        /// What an `alive` over it would show.
        witness: Witness,
    },
    /// The check ends here.
    Closed(CheckOutcome),
}

/// Asks for a way to the check's host.
///
/// # Errors
/// A fault, when the gateway itself does not answer.
pub async fn open(check: &Check, services: &Services) -> Result<Way, Fault> {
    let group = services.gate.names().registered_domain(&check.host);
    let opened = services
        .gateway
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
            let witness = witness(&egress, check.began);
            Way::Open { egress, witness }
        }
        Opened::Unreachable {
            reason,
            detail,
            families,
            fresh,
        } => {
            count_look_up(fresh, services);
            check.step(|| format!("gateway: unreachable, {}: {detail}", reason.as_str()));
            let verdict = Verdict::Dead {
                reason,
                status: None,
                to: None,
            };
            Way::Closed(CheckOutcome::Verdict {
                verdict,
                witness: None,
                doubt: Doubt {
                    families,
                    dns: if fresh {
                        Dns::Fresh(None)
                    } else {
                        Dns::Remembered(None)
                    },
                },
            })
        }
        Opened::Deferred { why, retry_after } => {
            check.step(|| {
                format!(
                    "gateway: out of turn, because {why} ({} ms)",
                    retry_after.as_millis()
                )
            });
            Way::Closed(CheckOutcome::Deferred { why, retry_after })
        }
        Opened::Offline => {
            check.step(|| "gateway: we have no network".to_owned());
            Way::Closed(CheckOutcome::Offline)
        }
    })
}

fn count_look_up(fresh: bool, services: &Services) {
    if fresh {
        services.meters.looked_up();
    }
}

fn witness(egress: &Egress, began: Timestamp) -> Witness {
    Witness {
        began,
        // Corrected by whoever hears it say so.
        lived: began,
        address: egress.address,
        fresh: egress.fresh,
    }
}
