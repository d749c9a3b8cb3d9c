//! An owner leaves by the secret of a TXT record and comes back by it, over real parts.

use std::io::Write as _;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tests::{PATIENCE, World};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::buttons::{WITHOUT_PROOF as HOST, census};
use super::optout::{is, named_in};
use super::proofs::requests_to;

/// Sends an act with the secret to the intake. Returns the status and the answer.
async fn send(world: &World, secret: &str, act: &str) -> anyhow::Result<(u16, Value)> {
    let mut stream = UnixStream::connect(world.path("run/intake-http/http.sock")).await?;
    let body = json!({ "host": HOST, "secret": secret, "act": act }).to_string();
    let length = body.len();
    let request = format!(
        "POST /proof HTTP/1.1\r\nhost: x\r\nx-real-ip: 192.0.2.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, serde_json::from_str(body)?))
}

/// Invariant I7.
#[tokio::test(flavor = "multi_thread")] // S57
async fn owner_leaves_by_a_record_and_comes_back_by_it() -> anyhow::Result<()> {
    let world = census().await?;
    assert!(world.nodes()?.contains(&HOST.to_owned()));
    let secret = "5".repeat(64);
    let (status, refused) = send(&world, &secret, "leave").await?;
    assert_eq!((status, &refused["code"]), (403, &"no_proof".into()));

    let hash = hex::encode(Sha256::digest(format!(
        "fedicensus/v1/proof {HOST} {secret}"
    )));
    let mut names = std::fs::File::options()
        .append(true)
        .open(world.path("lab/names"))?;
    writeln!(names, "_fedicensus.{HOST} txt fedicensus-proof={hash}")?;
    let (status, left) = send(&world, &secret, "leave").await?;
    assert_eq!((status, &left["state"]), (200, &"opted_out".into()));
    ensure!(world.command(&["dump", "--force"])?.status.success());
    assert!(!world.nodes()?.contains(&HOST.to_owned()));
    assert_eq!(named_in(&world, HOST)?, "");

    let asked = requests_to(&world, HOST)?;
    let (_, look) = send(&world, &secret, "look").await?;
    let words = look["words"].as_str().context("no words")?;
    assert!(words.contains("Its owner opted out."), "{words}");
    assert_eq!(requests_to(&world, HOST)?, asked, "it was visited");
    let (status, back) = send(&world, &secret, "join").await?;
    assert_eq!((status, &back["state"]), (200, &"waiting".into()));
    world
        .until("it responds", PATIENCE, |world| {
            Ok(is(world, HOST, "alive"))
        })
        .await?;
    ensure!(world.command(&["dump", "--force"])?.status.success());
    assert!(world.nodes()?.contains(&HOST.to_owned()));
    Ok(())
}
