//! Sends one line of JSON and reads one line back, over a Unix socket: the control wires of the
//! gateway and of the launcher.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use gateway::control::{self, CONTROL_LINE_BYTES_MAX};
use launcher::wire;
use protocol::order::AskPeers;
use protocol::{CheckId, CheckOrder, Host};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

/// Longest wait for an answer: the gateway dials for up to 10 s.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(20);

/// An open way to one host through the gateway. Dropping it closes it.
#[derive(Debug)]
pub struct Ready {
    pub check: CheckId,
    pub host: Host,
    /// The gateway removes the socket when this connection closes.
    _control: UnixStream,
}

/// Requests a way to `host` from the gateway, with the orchestrator's order.
pub async fn open(gateway_socket: &Path, host: Host, peers: AskPeers) -> Result<Ready> {
    let check = CheckId::from_random(rand::random());
    let request = control::Request::Open {
        check: check.clone(),
        group: host.to_string(),
        host: host.clone(),
        order: CheckOrder {
            contact: super::stage::CONTACT.to_owned(),
            peers,
            list: None,
            walk: None,
            delivery: None,
        },
        wish: protocol::egress::Wish::default(),
    };
    let (answer, control) = ask(gateway_socket, &request).await?;
    match answer {
        control::Answer::Ready { .. } => Ok(Ready {
            check,
            host,
            _control: control,
        }),
        other => bail!("{host}: the gateway answered {other:?} where it should be ready"),
    }
}

pub async fn launcher_status(socket: &Path) -> Result<wire::Status> {
    match ask(socket, &wire::Request::Status {}).await?.0 {
        wire::Answer::Status(status) => Ok(status),
        other => bail!("the launcher answered {other:?} to a request for its status"),
    }
}

async fn ask<A: DeserializeOwned>(
    socket: &Path,
    request: &impl Serialize,
) -> Result<(A, UnixStream)> {
    let mut stream = UnixStream::connect(socket)
        .await
        .with_context(|| socket.display().to_string())?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = Vec::new();
    let bytes_max = u64::try_from(CONTROL_LINE_BYTES_MAX)?;
    let mut bounded = BufReader::new((&mut stream).take(bytes_max));
    tokio::time::timeout(ANSWER_WAIT_MAX, bounded.read_until(b'\n', &mut answer))
        .await
        .with_context(|| format!("{}: no answer", socket.display()))??;
    let answer = serde_json::from_slice(&answer)
        .with_context(|| format!("{}: not an answer", socket.display()))?;
    Ok((answer, stream))
}
