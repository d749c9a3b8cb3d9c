//! Runs a container of the checker image that reads something from one host instead of checking it,
//! from egress to its end.
//!
//! Returns what the container printed, and what gateway and launcher saw of it. Every fault is
//! ours, and nothing is remembered of a reading with a fault.

use std::sync::Arc;
use std::time::Duration;

use gateway::{Egress, GatewayClient, Opened};
use launcher::{Container, Frame, LauncherClient};
use protocol::container::End;
use protocol::egress::{Account, Deferral, Wish};
use protocol::limits::STDERR_BYTES_KEPT;
use protocol::{CheckId, CheckOrder, DeadReason, Host};
use report::{Breach, Lines, RunReport, Stderr};
use scheduler::slots::SLOT_WAIT_MAX;
use tokio::time::timeout;

use crate::check::OVERDUE_AFTER;
use crate::check::fault::Fault;
use crate::check::slot_queue::SlotQueue;
use crate::services::Services;

/// What a reading uses: the two ways out of the orchestrator, and slots among the containers, which
/// it shares with the checks. It has no access to the database.
#[derive(Debug, Clone)]
pub struct Ways {
    /// The only way to the network.
    pub gateway: GatewayClient,
    /// The only way to a container.
    pub launcher: LauncherClient,
    pub slots: SlotQueue,
    /// The contact of the census's operator.
    pub contact: Arc<str>,
}

impl Ways {
    /// Takes the parts from the services.
    pub fn of(services: &Services) -> Self {
        Self {
            gateway: services.gateway.clone(),
            launcher: services.launcher.clone(),
            slots: services.slots.clone(),
            contact: services.contact.clone(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Errand<'a> {
    pub(crate) host: &'a Host,
    pub(crate) order: CheckOrder,
    pub(crate) id: CheckId,
    /// The host's registered domain, by which look-ups are paced.
    pub(crate) group: String,
}

#[derive(Debug)]
pub(crate) enum Went<R> {
    /// The container ran, with this result.
    Ran(Ran<R>),
    /// The host could not be reached. Whether it is alive is for its own check to find.
    Unreachable {
        reason: DeadReason,
        detail: String,
    },
    /// The host can't be asked now.
    Deferred {
        why: Deferral,
        retry_after: Duration,
    },
    Offline,
}

/// The result of a container.
#[derive(Debug)]
pub(crate) struct Ran<R> {
    pub(crate) report: R,
    /// `None` if we ended it because it broke the protocol.
    pub(crate) end: Option<End>,
    pub(crate) stderr: String,
    pub(crate) account: Account,
}

/// Runs a reading. Dropping the future ends the container and the connection to the host.
pub(crate) async fn read<R: RunReport>(
    errand: Errand<'_>,
    report: R,
    ways: &Ways,
) -> Result<Went<R>, Fault> {
    let Errand {
        host,
        order,
        id,
        group,
    } = errand;
    let opened = ways
        .gateway
        .open(id.clone(), host.clone(), group, order, Wish::default());
    let mut egress = match opened.await.map_err(Fault::Gateway)? {
        Opened::Ready(egress) => egress,
        Opened::Unreachable { reason, detail, .. } => {
            return Ok(Went::Unreachable { reason, detail });
        }
        Opened::Deferred { why, retry_after } => return Ok(Went::Deferred { why, retry_after }),
        Opened::Offline => return Ok(Went::Offline),
    };
    let Some(_slot) = ways.slots.lease().await else {
        return Ok(Went::Deferred {
            why: Deferral::Full,
            retry_after: SLOT_WAIT_MAX,
        });
    };
    let listening = listen(&id, host, report, &mut egress, ways);
    let (report, end, stderr) = timeout(OVERDUE_AFTER, listening)
        .await
        .map_err(|_elapsed| Fault::Overdue)??;
    // A reading does not prove that the address has a living instance.
    let account = egress.close(false).await.map_err(Fault::Gateway)?;
    let stderr = stderr.text(STDERR_BYTES_KEPT);
    if report.breach().is_some() || !stderr.is_empty() {
        let breach = report.breach().map(ToString::to_string);
        tracing::warn!(%host, check.id = %id, breach, stderr, "the checker misbehaved");
    }
    Ok(Went::Ran(Ran {
        report,
        end,
        stderr,
        account,
    }))
}

/// Reads the container's output to its end. A breach of the protocol ends the container at once,
/// because dropping it kills it.
async fn listen<R: RunReport>(
    id: &CheckId,
    host: &Host,
    mut report: R,
    egress: &mut Egress,
    ways: &Ways,
) -> Result<(R, Option<End>, Stderr), Fault> {
    let launched = ways.launcher.launch(id, host).await;
    let mut container: Container = launched.map_err(Fault::Launcher)?;
    let mut lines = Lines::default();
    let mut stderr = Stderr::default();
    loop {
        let frame = tokio::select! {
            frame = container.next() => frame.map_err(Fault::Launcher)?,
            () = egress.lost() => return Err(Fault::GatewayLost),
        };
        let heard: Result<(), Breach> = match frame {
            Frame::Stdout(bytes) => lines.push(&bytes, |line| report.accept(line)),
            Frame::Stderr(bytes) => stderr.push(&bytes),
            Frame::End(end) => {
                if let Err(unfinished) = lines.finish() {
                    report.broken_by(unfinished.into());
                }
                return Ok((report, Some(end), stderr));
            }
            Frame::Fault(fault) => return Err(Fault::Launch(fault)),
        };
        if let Err(breach) = heard {
            report.broken_by(breach);
            return Ok((report, None, stderr));
        }
    }
}
