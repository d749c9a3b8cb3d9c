//! A disk that somebody fills: clients still get their messages, and the service says that it is
//! ill until there is room.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tests::disks::{Disk, Place, inside};
use tests::world::push::{Client, ONE, Push, Sent, get, send};
use tests::{Need, skip};
use tokio::time::timeout;

use super::CHANNELS;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Room for the reserve, the log and some messages.
const DISK_KIB: u32 = 32 * 1024;

/// Messages that wait when the disk becomes full.
const WAITING: usize = 20;

const SENT: Sent<'_> = Sent {
    ttl_s: 86_400,
    topic: None,
    body: &[7; 4000],
};

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_takes_nothing_new_and_lets_clients_drain_what_waits() -> anyhow::Result<()> {
    let name = "a_full_disk_takes_nothing_new_and_lets_clients_drain_what_waits";
    let (_, module) = module_path!().split_once("::").context("a module's path")?;
    match inside(&format!("{module}::{name}"))? {
        Place::Inside => {}
        Place::Passed => return Ok(()),
        Place::Impossible => {
            skip(Need::Privileges, "no disk can be mounted here");
            return Ok(());
        }
    }
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data)?;
    let disk = Disk::mount(&data, DISK_KIB)?;
    let push = Push::start(folder.path(), "", ONE).await?;
    let socket = push.socket();
    let mut client = Client::connect(socket, None).await?;
    let [channel, _] = CHANNELS;
    let path = client.register(channel).await?;
    let uaid = client.uaid().to_owned();
    drop(client);
    let filler = disk.directory().join("filled-by-somebody");
    for number in 0..WAITING {
        let stored = send(socket, &path, SENT).await?;
        ensure!(stored.is_some(), "message {number}");
    }
    let mut file = std::fs::File::create(&filler)?;
    for piece in [64 * 1024, 1024, 1] {
        while file.write_all(&vec![0; piece]).is_ok() {}
    }
    drop(file);
    ensure!(send(socket, &path, SENT).await?.is_none(), "no room");
    until_status(socket, "the disk is full").await?;
    ensure!(local_socket::http::health(socket).await.is_err());
    let mut client = Client::connect(socket, Some(&uaid)).await?;
    ensure!(client.uaid() == uaid, "it is known");
    for number in 0..WAITING {
        let message = client
            .next()
            .await
            .with_context(|| format!("message {number}"))?;
        client.acknowledge(&[message]).await?;
    }
    client.ask_for_mark().await?;
    let last = client.next().await?;
    let kind = last.get("messageType").and_then(|kind| kind.as_str());
    ensure!(kind == Some("broadcast"), "{last}");
    std::fs::remove_file(&filler)?;
    until_status(socket, r#""status":"OK""#).await?;
    local_socket::http::health(socket).await?;
    ensure!(
        send(socket, &path, SENT).await?.is_some(),
        "there is room again"
    );
    Ok(())
}

async fn until_status(socket: &Path, says: &str) -> anyhow::Result<()> {
    let said = async {
        let mut look = tokio::time::interval(LOOK_EVERY);
        while !get(socket, "/status").await?.contains(says) {
            look.tick().await;
        }
        anyhow::Ok(())
    };
    let said = timeout(tests::patient(tests::PATIENCE), said).await;
    said.with_context(|| format!("/status never says {says}"))?
}
