//! One reading of one source, or of one host's proof: a container of the checker image in list
//! mode.
//!
//! It returns an [`Ended`], never a verdict. Every fault is ours, and nothing is remembered of a
//! reading with a fault.

use std::time::Duration;

use protocol::egress::Deferral;
use protocol::order::AskPeers;
use protocol::{CheckId, CheckOrder, DeadReason, Host, ListOrder};
use report::list::{ListReport, Outcome, conclude};

use crate::check::fault::Fault;
pub use crate::names::reading::Ways;
use crate::names::reading::{self, Errand, Ran, Went};

#[derive(Debug)]
pub enum Ended {
    Read(Outcome),
    /// The host could not be reached. Whether it is alive is for its own check to find.
    Unreachable {
        /// One of the gateway's reasons.
        reason: DeadReason,
        /// What exactly went wrong, for people; escaped.
        detail: String,
    },
    /// The host can't be asked now.
    Deferred {
        why: Deferral,
        retry_after: Duration,
    },
    Offline,
    Fault(Fault),
}

/// Reads a list of this host. `id` names the container. `group` is the host's registered domain, by
/// which look-ups are paced. Dropping the future ends the container and the connection to the host.
pub async fn read(host: &Host, list: &ListOrder, id: CheckId, group: String, ways: &Ways) -> Ended {
    let order = CheckOrder {
        contact: ways.contact.to_string(),
        peers: AskPeers::Skip,
        list: Some(Box::new(list.clone())),
        walk: None,
        delivery: None,
    };
    let errand = Errand {
        host,
        order,
        id,
        group,
    };
    match reading::read(errand, ListReport::new(list), ways).await {
        Ok(Went::Ran(Ran {
            report,
            end,
            stderr,
            account,
        })) => conclude(report, end, &account, &stderr)
            .map_or_else(|fault| Ended::Fault(fault.into()), Ended::Read),
        Ok(Went::Unreachable { reason, detail }) => Ended::Unreachable { reason, detail },
        Ok(Went::Deferred { why, retry_after }) => Ended::Deferred { why, retry_after },
        Ok(Went::Offline) => Ended::Offline,
        Err(fault) => Ended::Fault(fault),
    }
}
