//! Messages to clients that are connected and acknowledge, and to users that are not connected.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tests::world::push::{Client, ONE, Push, Sent, TWO, send};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{quantile, say};

const CHANNEL: &str = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";

/// Clients, which get messages in turn. Fewer than 100 messages wait for a channel.
const CLIENTS_MIN: usize = 400;

const EACH_MAX: usize = 80;

/// Applications that send at the same time, each one message after the other.
const SENDERS: usize = 32;

/// Bytes of a message: a short text with what its encryption adds.
const BODY_BYTES: usize = 200;

const TTL_S: u32 = 3600;

pub(crate) async fn measure(below: &Path, messages: usize) -> Result<()> {
    for nodes in [ONE, TWO] {
        say(&format!("processes: {}", nodes.len()))?;
        for (delivery, what) in [("", "direct"), ("store-first", "stored before it is sent")] {
            let folder = tempfile::tempdir_in(below)?;
            let push = Push::start(folder.path(), delivery, nodes).await?;
            connected(&push, messages, what).await?;
        }
        let folder = tempfile::tempdir_in(below)?;
        let push = Push::start(folder.path(), "", nodes).await?;
        away(&push, messages).await?;
    }
    Ok(())
}

fn clients_of(messages: usize) -> usize {
    CLIENTS_MIN.max(messages / EACH_MAX + 1)
}

/// To connected clients: the time from before the request to the client's reading.
async fn connected(push: &Push, messages: usize, what: &str) -> Result<()> {
    let mut reading = JoinSet::new();
    let mut endpoints = Vec::new();
    let clients = clients_of(messages);
    // A number of each message is in its body's place: the order of its client's messages.
    for number in 0..clients {
        let mut client = Client::connect(push.socket(), None).await?;
        endpoints.push(client.register(CHANNEL).await?);
        let expected = messages / clients + usize::from(number < messages % clients);
        reading.spawn(async move {
            let mut read = Vec::new();
            while read.len() < expected {
                let message = client.next().await?;
                let version = message.get("version").and_then(Value::as_str);
                let version = version.context("a version")?;
                read.push((version.to_owned(), Instant::now()));
                client.acknowledge(&[message]).await?;
            }
            anyhow::Ok(read)
        });
    }
    let began = Instant::now();
    let sent = send_all(push.endpoint_socket(), endpoints, messages).await?;
    let mut read = std::collections::HashMap::new();
    for client in reading.join_all().await {
        read.extend(client?);
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut delays = Vec::new();
    for (version, began, _) in &sent {
        let arrived = read.get(version).context("a message was not delivered")?;
        delays.push(arrived.duration_since(*began).as_secs_f64() * 1000.0);
    }
    report(what, messages, seconds, &mut delays)
}

/// To users that are not connected: the time until the service has stored a message and says so.
async fn away(push: &Push, messages: usize) -> Result<()> {
    let mut endpoints = Vec::new();
    for _ in 0..clients_of(messages) {
        let mut client = Client::connect(push.socket(), None).await?;
        endpoints.push(client.register(CHANNEL).await?);
    }
    let began = Instant::now();
    let sent = send_all(push.endpoint_socket(), endpoints, messages).await?;
    let seconds = began.elapsed().as_secs_f64();
    let delays = sent
        .iter()
        .map(|(_, began, ended)| ended.duration_since(*began));
    let mut delays: Vec<f64> = delays.map(|delay| delay.as_secs_f64() * 1000.0).collect();
    report(
        "stored for users that are away",
        messages,
        seconds,
        &mut delays,
    )
}

fn report(what: &str, messages: usize, seconds: f64, delays: &mut [f64]) -> Result<()> {
    say(&format!(
        "{what}: {messages} messages, {:.0} a second from {SENDERS} senders, median {:.1} ms, 99th percentile {:.1} ms",
        messages as f64 / seconds,
        quantile(delays, 0.5),
        quantile(delays, 0.99),
    ))
}

/// Sends messages to the endpoints in turn. Returns their versions, begins and ends.
async fn send_all(
    socket: &Path,
    endpoints: Vec<String>,
    messages: usize,
) -> Result<Vec<(String, Instant, Instant)>> {
    let (endpoints, next) = (Arc::new(endpoints), Arc::new(AtomicUsize::new(0)));
    let start = Arc::new(Barrier::new(SENDERS));
    let mut sending = JoinSet::new();
    for _ in 0..SENDERS {
        let (endpoints, next) = (Arc::clone(&endpoints), Arc::clone(&next));
        let (start, socket) = (Arc::clone(&start), socket.to_owned());
        sending.spawn(async move {
            start.wait().await;
            let mut sent = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= messages {
                    return anyhow::Ok(sent);
                }
                let path = endpoints.get(number % endpoints.len()).context("one")?;
                let began = Instant::now();
                let message = Sent {
                    ttl_s: TTL_S,
                    topic: None,
                    body: &[7; BODY_BYTES],
                };
                let version = send(&socket, path, message).await?;
                let version = version.context("a message was refused")?;
                sent.push((version, began, Instant::now()));
            }
        });
    }
    let mut all = Vec::new();
    for sender in sending.join_all().await {
        all.extend(sender?);
    }
    ensure!(all.len() == messages, "not all were sent");
    Ok(all)
}
