//! The push service as a process, with clients and applications at the socket of the web server in
//! front.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::program;
use crate::PATIENCE;

pub const ORIGIN: &str = "https://push.test";

/// Size of a client's read buffer: some tests have thousands of clients.
const READ_BUFFER_BYTES: usize = 1024;

/// Interval between two looks whether it listens.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A process of the service: its command, and the folder of its socket for the web server in front.
pub type Node = (&'static str, &'static str);

pub const ONE: &[Node] = &[("push", "push-http")];

/// The first holds clients' connections, the second takes messages.
pub const TWO: &[Node] = &[
    ("push connect", "push-http"),
    ("push endpoint", "push-endpoint-http"),
];

/// The service, in a folder that outlives it. Dropping it kills the processes.
#[derive(Debug)]
pub struct Push {
    folder: PathBuf,
    delivery: &'static str,
    nodes: &'static [Node],
    children: Vec<Child>,
    socket: PathBuf,
    endpoint_socket: PathBuf,
}

impl Push {
    /// Starts the service with the data in `folder`, and waits until it listens.
    pub async fn start(
        folder: &Path,
        delivery: &'static str,
        nodes: &'static [Node],
    ) -> anyhow::Result<Self> {
        for name in [
            "data",
            "run/push-nodes",
            "run/push-http",
            "run/push-endpoint-http",
        ] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        let socket = |(_, name): &Node| folder.join("run").join(name).join("http.sock");
        let mut push = Self {
            folder: folder.to_owned(),
            delivery,
            nodes,
            children: Vec::new(),
            socket: nodes.first().map(socket).unwrap_or_default(),
            endpoint_socket: nodes.last().map(socket).unwrap_or_default(),
        };
        for node in nodes {
            let child = push.begin(*node).await?;
            push.children.push(child);
        }
        Ok(push)
    }

    async fn begin(&self, (command, name): Node) -> anyhow::Result<Child> {
        let folder = &self.folder;
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(folder.join("push.log"))?;
        let mut child = Command::new(program("fedicensus")?)
            .args(command.split(' '))
            .env_clear()
            .env("FEDICENSUS_DATA_DIR", folder.join("data"))
            .env("FEDICENSUS_RUN_DIR", folder.join("run"))
            .env("FEDICENSUS_PUBLIC_DIR", folder.join("public"))
            .env("FEDICENSUS_CONTACT", "https://push.test/")
            .env("FEDICENSUS_PUSH_ADDRESS", ORIGIN)
            .env("FEDICENSUS_PUSH_DELIVERY", self.delivery)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("the push service can't be started")?;
        let socket = folder.join("run").join(name).join("http.sock");
        while UnixStream::connect(&socket).await.is_err() {
            if let Some(status) = child.try_wait()? {
                let log = std::fs::read_to_string(folder.join("push.log"))?;
                bail!("{command} has ended, {status}:\n{log}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(child)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn endpoint_socket(&self) -> &Path {
        &self.endpoint_socket
    }

    /// The process that holds the clients' connections.
    pub fn id(&self) -> u32 {
        self.children.first().map_or(0, Child::id)
    }

    /// Kills a process as a power cut would.
    pub fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        let child = self.children.get_mut(number).context("no such node")?;
        ensure!(child.try_wait()?.is_none(), "it has ended by itself");
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Starts a killed process again.
    pub async fn restart(&mut self, number: usize) -> anyhow::Result<()> {
        let node = self.nodes.get(number).context("no such node")?;
        let child = self.begin(*node).await?;
        if let Some(killed) = self.children.get_mut(number) {
            *killed = child;
        }
        Ok(())
    }

    /// Stops a process with SIGSTOP, or continues it.
    pub fn signal(&self, number: usize, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_child(self.children.get(number).context("no such node")?);
        Ok(kill_process(pid, signal)?)
    }
}

impl Drop for Push {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

#[derive(Debug)]
pub struct Client {
    socket: WebSocketStream<UnixStream>,
    uaid: String,
}

impl Client {
    /// Connects and says hello. With a `uaid`, it is a returning client.
    pub async fn connect(socket: &Path, uaid: Option<&str>) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).await?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0);
        let address = "ws://push.test/";
        let (socket, _) = client_async_with_config(address, stream, Some(config)).await?;
        let mut client = Self {
            socket,
            uaid: String::new(),
        };
        let hello = json!({"messageType": "hello", "uaid": uaid, "use_webpush": true});
        client.say(&hello).await?;
        let answer = client.next().await?;
        let uaid = answer.get("uaid").and_then(Value::as_str);
        uaid.context("no hello")?.clone_into(&mut client.uaid);
        Ok(client)
    }

    /// The id that the service gave the client.
    pub fn uaid(&self) -> &str {
        &self.uaid
    }

    /// Registers a channel. Returns the path of its endpoint.
    pub async fn register(&mut self, channel: &str) -> anyhow::Result<String> {
        self.say(&json!({"messageType": "register", "channelID": channel}))
            .await?;
        let answer = self.next().await?;
        let endpoint = answer.get("pushEndpoint").and_then(Value::as_str);
        let path = endpoint.and_then(|endpoint| endpoint.strip_prefix(ORIGIN));
        Ok(path.with_context(|| answer.to_string())?.to_owned())
    }

    /// Acknowledges messages: channels and versions.
    pub async fn acknowledge(&mut self, messages: &[Value]) -> anyhow::Result<()> {
        let update = |message: &Value| json!({"channelID": message.get("channelID"), "version": message.get("version")});
        let updates: Vec<_> = messages.iter().map(update).collect();
        self.say(&json!({"messageType": "ack", "updates": updates}))
            .await
    }

    /// Requests an answer that arrives after the results of everything so far: a message of type
    /// `broadcast`.
    pub async fn ask_for_mark(&mut self) -> anyhow::Result<()> {
        self.say(&json!({"messageType": "broadcast_subscribe", "broadcasts": {"none": ""}}))
            .await
    }

    pub async fn next(&mut self) -> anyhow::Result<Value> {
        loop {
            match self.socket.next().await.context("the connection ended")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Close(frame) => bail!("closed: {frame:?}"),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    async fn say(&mut self, message: &Value) -> anyhow::Result<()> {
        Ok(self.socket.send(Message::text(message.to_string())).await?)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Sent<'s> {
    /// Longest time in storage, in seconds.
    pub ttl_s: u32,
    pub topic: Option<&'s str>,
    /// The body; empty if there is none.
    pub body: &'s [u8],
}

/// Sends a message to the endpoint at `path` over a separate connection, as the web server in front
/// does. Returns its version; `None` if it is refused.
pub async fn send(socket: &Path, path: &str, sent: Sent<'_>) -> anyhow::Result<Option<String>> {
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: push\r\nconnection: close\r\nttl: {}\r\ncontent-length: {}\r\n",
        sent.ttl_s,
        sent.body.len()
    );
    if let Some(topic) = sent.topic {
        head.push_str(&format!("topic: {topic}\r\n"));
    }
    if !sent.body.is_empty() {
        head.push_str("content-encoding: aes128gcm\r\n");
    }
    head.push_str("\r\n");
    let answer = ask(socket, &[head.as_bytes(), sent.body].concat()).await?;
    if !answer.starts_with("HTTP/1.1 201 ") {
        return Ok(None);
    }
    let prefix = format!("location: {ORIGIN}/m/");
    let version = answer.lines().find_map(|line| line.strip_prefix(&*prefix));
    Ok(Some(
        version.context("a 201 without its version")?.to_owned(),
    ))
}

/// Gets a page of the service, with its head.
pub async fn get(socket: &Path, path: &str) -> anyhow::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: push\r\nconnection: close\r\n\r\n");
    ask(socket, request.as_bytes()).await
}

async fn ask(socket: &Path, request: &[u8]) -> anyhow::Result<String> {
    let answer = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(request).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(String::from_utf8(answer)?)
    };
    let answer = tokio::time::timeout(PATIENCE, answer).await??;
    ensure!(answer.starts_with("HTTP/1.1 "), "no answer");
    Ok(answer)
}
