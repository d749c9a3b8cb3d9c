//! One reading of one source, or of one host's proof, from egress to what came of it: a container of the checker image in list mode.
//!
//! In: a host and what to read there. Out: an [`Ended`], never a verdict. Refused: nothing; a fault is ours, and nothing is remembered of the reading then.

use std::sync::Arc;
use std::time::Duration;

use gateway::{Egress, GatewayClient, Opened};
use launcher::{Container, Frame, LauncherClient};
use protocol::container::End;
use protocol::egress::{Deferral, Wish};
use protocol::limits::STDERR_BYTES_KEPT;
use protocol::order::AskPeers;
use protocol::{CheckId, CheckOrder, DeadReason, Host, ListOrder};
use report::list::{ListReport, Outcome, conclude};
use report::{Breach, Lines, Stderr};
use scheduler::slots::SLOT_WAIT_MAX;
use tokio::time::timeout;

use crate::check::OVERDUE_AFTER;
use crate::check::fault::Fault;
use crate::check::slot_queue::SlotQueue;
use crate::services::Services;

/// What a reading works with: the two ways out of the orchestrator, and places among the containers, which it shares with the checks. It has no way
/// to the database.
#[derive(Debug, Clone)]
pub struct Ways {
    /// The only way out.
    pub gateway: GatewayClient,
    /// The only way to a container.
    pub launcher: LauncherClient,
    /// Slots among the containers.
    pub slots: SlotQueue,
    /// Who runs this census.
    pub contact: Arc<str>,
}

impl Ways {
    /// The services of these.
    pub fn of(services: &Services) -> Self {
        Self {
            gateway: services.gateway.clone(),
            launcher: services.launcher.clone(),
            slots: services.slots.clone(),
            contact: services.contact.clone(),
        }
    }
}

/// How a reading ended.
#[derive(Debug)]
pub enum Ended {
    /// The host was asked.
    Read(Outcome),
    /// The host could not be reached. It is no more than that: whether it lives, its own check finds.
    Unreachable {
        /// One of the gateway's reasons.
        reason: DeadReason,
        /// What exactly went wrong, for people; escaped.
        detail: String,
    },
    /// Out of turn.
    Deferred {
        /// Why.
        why: Deferral,
        /// How long to wait at least.
        retry_after: Duration,
    },
    /// We have no network.
    Offline,
    /// Ours.
    Fault(Fault),
}

/// Reads a list of this host. `id` names the container, `group` is the host's registered domain, by which look-ups are paced. Whoever drops it ends
/// the container and the way to the host.
pub async fn read(host: &Host, list: &ListOrder, id: CheckId, group: String, ways: &Ways) -> Ended {
    let read = path(host, list, &id, group, ways).await;
    read.unwrap_or_else(Ended::Fault)
}

async fn path(
    host: &Host,
    list: &ListOrder,
    id: &CheckId,
    group: String,
    ways: &Ways,
) -> Result<Ended, Fault> {
    let order = CheckOrder {
        contact: ways.contact.to_string(),
        peers: AskPeers::Skip,
        list: Some(Box::new(list.clone())),
        walk: None,
    };
    let opened = ways
        .gateway
        .open(id.clone(), host.clone(), group, order, Wish::default());
    let mut egress = match opened.await.map_err(Fault::Gateway)? {
        Opened::Ready(egress) => egress,
        Opened::Unreachable { reason, detail, .. } => {
            return Ok(Ended::Unreachable { reason, detail });
        }
        Opened::Deferred { why, retry_after } => return Ok(Ended::Deferred { why, retry_after }),
        Opened::Offline => return Ok(Ended::Offline),
    };
    let Some(_slot) = ways.slots.lease().await else {
        return Ok(Ended::Deferred {
            why: Deferral::Full,
            retry_after: SLOT_WAIT_MAX,
        });
    };
    let told = timeout(OVERDUE_AFTER, listen(id, host, list, &mut egress, ways))
        .await
        .map_err(|_elapsed| Fault::Overdue)??;
    // A list proves no living instance at the address.
    let account = egress.close(false).await.map_err(Fault::Gateway)?;
    let stderr = told.stderr.text(STDERR_BYTES_KEPT);
    if told.report.breach().is_some() || !stderr.is_empty() {
        let breach = told.report.breach().map(ToString::to_string);
        tracing::warn!(%host, path = %list.path, check.id = %id, breach, stderr, "the checker misbehaved");
    }
    Ok(Ended::Read(conclude(
        told.report,
        told.end,
        &account,
        &stderr,
    )?))
}

/// What a container told us.
struct Told {
    report: ListReport,
    /// Nothing when we ended it for a breach.
    end: Option<End>,
    stderr: Stderr,
}

/// Runs the container to its end; a breach ends it at once, because dropping it kills it.
async fn listen(
    id: &CheckId,
    host: &Host,
    list: &ListOrder,
    egress: &mut Egress,
    ways: &Ways,
) -> Result<Told, Fault> {
    let launched = ways.launcher.launch(id, host).await;
    let mut container: Container = launched.map_err(Fault::Launcher)?;
    let mut lines = Lines::default();
    let mut told = Told {
        report: ListReport::new(list),
        end: None,
        stderr: Stderr::default(),
    };
    loop {
        let frame = tokio::select! {
            frame = container.next() => frame.map_err(Fault::Launcher)?,
            () = egress.lost() => return Err(Fault::GatewayLost),
        };
        let heard: Result<(), Breach> = match frame {
            Frame::Stdout(bytes) => lines.push(&bytes, |line| told.report.accept(line)),
            Frame::Stderr(bytes) => told.stderr.push(&bytes),
            Frame::End(end) => {
                if let Err(unfinished) = lines.finish() {
                    told.report.broken_by(unfinished.into());
                }
                told.end = Some(end);
                return Ok(told);
            }
            Frame::Fault(fault) => return Err(Fault::Launch(fault)),
        };
        if let Err(breach) = heard {
            told.report.broken_by(breach);
            return Ok(told);
        }
    }
}
