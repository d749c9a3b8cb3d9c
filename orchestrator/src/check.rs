//! One check, steps 2 to 4 of 7: from egress to verdict. Steps 5 and 6 follow in `commit_verdict`,
//! once the verdict is confirmed.

pub mod commit_verdict;
pub mod egress;
mod input;
mod outcome;
pub mod services;
pub mod slot_queue;

use std::time::Duration;

use census::state::Verdict;
use census::time::Timestamp;
use gateway::Egress;
use launcher::{Container, Frame};
use protocol::container::End;
use protocol::egress::Deferral;
use protocol::limits::{CHECK_SECONDS_MAX, STDERR_BYTES_KEPT, TEXT_BYTES_MAX};
use protocol::order::AskPeers;
use protocol::{PeersOutcome, escaped};
use report::{Breach, Lines, Report, Stderr, conclude};
use scheduler::event::CheckOutcome;
use scheduler::slots::SLOT_WAIT_MAX;
use tokio::time::{Instant, timeout};

use crate::check::egress::{Opening, open};
pub use crate::check::input::Check;
use crate::check::outcome::Evidence;
use crate::check::services::Services;
use crate::ground::fault::Fault;
use crate::ground::meters::labels::Phase;

/// After this, the launcher is taken to hang: it ends a container at the check's deadline. The 150
/// s cover the engine's time to create, start, kill and remove the container.
pub(crate) const OVERDUE_AFTER: Duration = Duration::from_secs(CHECK_SECONDS_MAX + 150);

/// Runs the check to its end.
pub async fn run(check: &Check, services: &Services) -> Result<CheckOutcome, Fault> {
    let asked = Instant::now();
    let way = open(check, services).await?;
    services.meters.phase(Phase::Opening, asked.elapsed());
    let mut egress = match way {
        Opening::Open(egress) => egress,
        Opening::Closed(outcome) => {
            if outcome::is_about_host(&outcome) {
                services.slots.needs_none(check.number).await;
            }
            return Ok(outcome);
        }
    };
    let opened = Instant::now();
    check.step(|| {
        format!(
            "{}: {} answers at {}",
            check.gateway(),
            check.host,
            egress.address
        )
    });
    if !services.slots.wait(check.number).await {
        return Ok(CheckOutcome::Deferred {
            why: Deferral::Full,
            retry_after: SLOT_WAIT_MAX,
        });
    }
    services.meters.phase(Phase::Waiting, opened.elapsed());
    let started = Instant::now();
    let told = run_container(check, &mut egress, services).await?;
    if let Some(end) = &told.end {
        services.meters.container(end, started.elapsed());
    }
    let evidence = Evidence::opened(check.began, told.lived, &egress);
    let account = egress
        .close(told.report.is_alive())
        .await
        .map_err(Fault::Gateway)?;
    services.meters.account(&account);
    check.step(|| {
        format!(
            "{}: {} connections, {} bytes up, {} down",
            check.gateway(),
            account.connections,
            account.bytes_up,
            account.bytes_down
        )
    });
    let verdict = conclude(
        &told.report,
        told.end,
        &account,
        &told.stderr.text(STDERR_BYTES_KEPT),
    )?;
    log_oddities(check, &told);
    if matches!(verdict, Verdict::Alive(_)) && check.order.peers == AskPeers::Ask {
        keep_peers_outcome(check, told.report.peers().outcome, services).await;
    }
    Ok(outcome::judged(verdict, evidence))
}

/// Stores how the peers list ended: hosts without a list are walked first. A failure to store it is
/// harmless: the next list sets it again.
async fn keep_peers_outcome(check: &Check, outcome: PeersOutcome, services: &Services) {
    services.meters.peers_list(outcome);
    if let Err(error) = services.writer.remember_peers(&check.host, outcome).await {
        tracing::debug!(host = %check.host, %error, "how its peers list ended could not be written");
    }
}

struct ContainerReport {
    report: Report,
    lived: Option<Timestamp>,
    /// `None` if we ended it because it broke the protocol.
    end: Option<End>,
    stderr: Stderr,
}

async fn run_container(
    check: &Check,
    egress: &mut Egress,
    services: &Services,
) -> Result<ContainerReport, Fault> {
    let launched = services.launcher.launch(&check.id, &check.host).await;
    let container = launched.map_err(Fault::Launcher)?;
    check.step(|| format!("launcher: container for check {}", check.id));
    timeout(
        OVERDUE_AFTER,
        read_output(check, container, egress, services),
    )
    .await
    .map_err(|_elapsed| Fault::Overdue)?
}

/// Reads the container's output to its end. A breach of the protocol ends the container at once,
/// because dropping it kills it.
async fn read_output(
    check: &Check,
    mut container: Container,
    egress: &mut Egress,
    services: &Services,
) -> Result<ContainerReport, Fault> {
    let mut is_silent = true;
    let mut report = Report::new(check.host.clone());
    let mut lines = Lines::default();
    let mut stderr = Stderr::default();
    let mut lived = None;
    let end = loop {
        let frame = tokio::select! {
            frame = container.next() => frame.map_err(Fault::Launcher)?,
            () = egress.lost() => return Err(Fault::GatewayLost),
        };
        // This is its `hello`, printed before the checker touches the network: the time until here
        // is the engine's alone.
        if matches!(frame, Frame::Stdout(_)) && std::mem::take(&mut is_silent) {
            services.slots.first_output(check.number).await;
        }
        let breach = match frame {
            Frame::Stdout(bytes) => {
                accept_lines(check, &bytes, &mut lines, &mut report, services).await?
            }
            Frame::Stderr(bytes) => stderr.push(&bytes).err(),
            Frame::End(end) => {
                if let Err(unfinished) = lines.finish() {
                    report.broken_by(unfinished.into());
                }
                break Some(end);
            }
            Frame::Fault(fault) => return Err(Fault::Launch(fault)),
        };
        if lived.is_none() && report.is_alive() {
            lived = Some(services.now());
        }
        if let Some(breach) = breach {
            report.broken_by(breach);
            break None;
        }
    };
    check.step(|| {
        format!(
            "launcher: {}",
            end.map_or_else(
                || "stopped by us, because it broke the protocol".to_owned(),
                describe
            )
        )
    });
    Ok(ContainerReport {
        report,
        lived,
        end,
        stderr,
    })
}

/// Accepts a chunk of stdout. Names are passed on line by line, so memory doesn't grow with the
/// list.
async fn accept_lines(
    check: &Check,
    bytes: &[u8],
    lines: &mut Lines,
    report: &mut Report,
    services: &Services,
) -> Result<Option<Breach>, Fault> {
    let mut learned = Vec::new();
    let outcome = lines.push(bytes, |line| {
        check.step(|| format!("checker: {}", escaped(line, TEXT_BYTES_MAX)));
        learned.extend(report.accept(line)?);
        Ok::<(), Breach>(())
    });
    if !learned.is_empty() {
        services
            .learn(learned, &check.host)
            .await
            .map_err(Fault::Store)?;
    }
    Ok(outcome.err())
}

fn describe(end: End) -> String {
    let how = match (end.killed, end.out_of_memory) {
        (Some(_), _) => ", killed at its deadline",
        (None, true) => ", out of memory",
        (None, false) => "",
    };
    format!("exit code {}{how}, {} ms", end.exit_code, end.millis)
}

/// Logs a broken protocol and output on stderr: each is a bug of ours or an attack, which the
/// operator should see.
fn log_oddities(check: &Check, told: &ContainerReport) {
    let stderr = told.stderr.text(TEXT_BYTES_MAX);
    if told.report.breach().is_none() && stderr.is_empty() {
        return;
    }
    let breach = told
        .report
        .breach()
        .map(ToString::to_string)
        .unwrap_or_default();
    tracing::warn!(host = %check.host, check.id = %check.id, breach, stderr, "the checker misbehaved");
}

#[cfg(test)]
mod tests;
