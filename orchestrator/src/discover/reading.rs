//! Runs a container of the checker image that reads something from one host instead of checking it,
//! from egress to its end.
//!
//! It returns an [`Ended`], never a verdict. Every fault is ours, and nothing is remembered of a
//! reading with a fault.

use std::sync::Arc;
use std::time::Duration;

use gateway::{Egress, GatewayClient, Opened};
use launcher::{Container, Frame, LauncherClient};
use protocol::container::End;
use protocol::egress::{Deferral, Wish};
use protocol::limits::STDERR_BYTES_KEPT;
use protocol::order::AskPeers;
use protocol::{CheckId, CheckOrder, DeadReason, Host, ListOrder};
use report::list::{ListReport, Outcome};
use report::{Breach, Lines, Reading, Run, Stderr};
use scheduler::slots::SLOT_WAIT_MAX;
use tokio::time::timeout;

use crate::check::OVERDUE_AFTER;
use crate::check::services::Services;
use crate::check::slot_queue::SlotQueue;
use crate::ground::fault::Fault;

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

/// A host to read from, and the container's order.
#[derive(Debug)]
pub struct Errand<'a> {
    /// The host, which the order is for.
    pub host: &'a Host,
    pub order: CheckOrder,
    /// The container's name.
    pub id: CheckId,
    /// The host's registered domain, by which look-ups are paced.
    pub group: String,
}

impl<'a> Errand<'a> {
    /// An errand with an order that only names the contact.
    pub(crate) fn to(host: &'a Host, services: &Services) -> Self {
        Self {
            host,
            order: CheckOrder::check(&*services.contact, AskPeers::Skip),
            id: services.random.check_id(),
            group: services.gate.names().registered_domain(host),
        }
    }
}

#[derive(Debug)]
pub enum Ended<T> {
    Read(T),
    /// The host could not be reached. Whether it is alive is for its own check to find.
    Unreachable {
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

/// Runs a reading. Dropping the future ends the container and the connection to the host.
pub async fn read<R: Reading>(errand: Errand<'_>, reading: R, ways: &Ways) -> Ended<R::Outcome> {
    run(errand, reading, ways)
        .await
        .unwrap_or_else(Ended::Fault)
}

/// Reads a list, or the proof, of this host.
pub(crate) async fn list(host: &Host, list: ListOrder, services: &Services) -> Ended<Outcome> {
    let reading = ListReport::new(&list);
    let mut errand = Errand::to(host, services);
    errand.order.list = Some(Box::new(list));
    read(errand, reading, &Ways::of(services)).await
}

async fn run<R: Reading>(
    errand: Errand<'_>,
    reading: R,
    ways: &Ways,
) -> Result<Ended<R::Outcome>, Fault> {
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
    let listening = listen(&id, host, Run::new(reading), &mut egress, ways);
    let (run, end, stderr) = timeout(OVERDUE_AFTER, listening)
        .await
        .map_err(|_elapsed| Fault::Overdue)??;
    // A reading does not prove that the address has a living instance.
    let account = egress.close(false).await.map_err(Fault::Gateway)?;
    let stderr = stderr.text(STDERR_BYTES_KEPT);
    if run.breach().is_some() || !stderr.is_empty() {
        let breach = run.breach().map(ToString::to_string);
        tracing::warn!(%host, check.id = %id, breach, stderr, "the checker misbehaved");
    }
    Ok(Ended::Read(run.conclude(end, &account, &stderr)?))
}

/// Reads the container's output to its end. A breach of the protocol ends the container at once,
/// because dropping it kills it.
async fn listen<R: Reading>(
    id: &CheckId,
    host: &Host,
    mut run: Run<R>,
    egress: &mut Egress,
    ways: &Ways,
) -> Result<(Run<R>, Option<End>, Stderr), Fault> {
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
            Frame::Stdout(bytes) => lines.push(&bytes, |line| run.accept(line)),
            Frame::Stderr(bytes) => stderr.push(&bytes),
            Frame::End(end) => {
                if let Err(unfinished) = lines.finish() {
                    run.broken_by(unfinished.into());
                }
                return Ok((run, Some(end), stderr));
            }
            Frame::Fault(fault) => return Err(Fault::Launch(fault)),
        };
        if let Err(breach) = heard {
            run.broken_by(breach);
            return Ok((run, None, stderr));
        }
    }
}
