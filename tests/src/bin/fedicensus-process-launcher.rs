//! The launcher over [`tests::ProcessEngine`], as a process that can be killed, stopped and started
//! again.
//!
//! Arguments: the launcher's socket, the egress directory, the number of checks at once, the
//! checker's program, the file that makes the engine fail.

use std::path::PathBuf;

use anyhow::Context;
use tests::ProcessEngine;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let mut next = |what: &'static str| arguments.next().context(what);
    let settings = launcher::Settings {
        socket: next("the gate's socket")?,
        egress: launcher::EgressSource::Directory(next("the egress directory")?),
        // Only labs start this launcher.
        extra_roots: true,
        checks_max: next("how many checks")?
            .to_str()
            .context("a number")?
            .parse()?,
        ..launcher::Settings::default()
    };
    let engine = ProcessEngine::new(next("the checker")?).in_trouble(next("the trouble")?);
    let shutdown = CancellationToken::new();
    let mut term = signal(SignalKind::terminate())?;
    let token = shutdown.clone();
    tokio::spawn(async move {
        term.recv().await;
        token.cancel();
    });
    Ok(launcher::serve(settings, engine, shutdown).await?)
}
