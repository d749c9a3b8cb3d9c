//! Clients that are connected, have one channel, and do nothing.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bench::shared::memory::most_mb;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tests::world::push::{Client, ONE, Push};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::say;

const CHANNEL: &str = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";

/// Clients that connect at the same time, as after a restart.
const AT_ONCE: usize = 64;

/// Open files of either side besides its connections.
const OTHER_FILES: u64 = 100;

pub(crate) async fn measure(below: &Path, clients: usize) -> Result<()> {
    let files = open_files()?;
    let most = usize::try_from(files.saturating_sub(OTHER_FILES))?;
    if clients > most {
        say(&format!(
            "idle clients: {most} instead of {clients}, since a process may have {files} open files here"
        ))?;
    }
    let clients = clients.min(most);
    let folder = tempfile::tempdir_in(below)?;
    let push = Push::start(folder.path(), "", ONE).await?;
    let process = push.id().to_string();
    let before = most_mb(&process)?;
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut connecting = JoinSet::new();
    for _ in 0..clients {
        let permit = Arc::clone(&room).acquire_owned().await?;
        let socket = push.socket().to_owned();
        connecting.spawn(async move {
            let mut client = Client::connect(&socket, None).await?;
            client.register(CHANNEL).await?;
            drop(permit);
            anyhow::Ok(client)
        });
    }
    let connected: Vec<Client> = connecting
        .join_all()
        .await
        .into_iter()
        .collect::<Result<_>>()?;
    let after = most_mb(&process)?;
    let each = (after.saturating_sub(before) * 1000)
        .checked_div(u64::try_from(connected.len())?)
        .context("no clients")?;
    say(&format!(
        "idle clients: {} hold {after} MB at most in the service, {before} MB before them, {each} kB each",
        connected.len()
    ))
}

/// Raises this process's limit, which the service inherits, to the highest.
fn open_files() -> Result<u64> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    Ok(maximum.unwrap_or(u64::MAX))
}
