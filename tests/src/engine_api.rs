//! A container engine as tests use it next to the launcher: its description of a container, and the
//! tests' own containers and images.
//!
//! It speaks HTTP/1.0 over the engine's socket and needs no client program. The command lines of
//! Docker and Podman print the same things in different forms, but both support this API. The
//! remaining differences are handled in this module only.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use launcher::engine::EngineKind;
use serde_json::{Value, json};

/// Longest wait for an answer: a slow engine takes some seconds to build an image of two layers.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

#[derive(Debug, Clone)]
pub struct EngineApi {
    socket: PathBuf,
    kind: EngineKind,
    /// What stands before each path: the version of its API.
    api: String,
    title: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    All,
    Running,
}

impl EngineApi {
    /// Connects to the engine behind `socket` and asks for its version.
    pub fn connect(socket: &Path) -> anyhow::Result<Self> {
        let version: Value = serde_json::from_slice(&ask(socket, "GET", "/version", None)?)?;
        let kind = match text(&version, "/Components/0/Name") {
            "Podman Engine" => EngineKind::Podman,
            _ => EngineKind::Docker,
        };
        Ok(Self {
            socket: socket.to_owned(),
            kind,
            api: format!("/v{}", text(&version, "/ApiVersion")),
            title: format!(
                "{kind} {} on Linux {}",
                text(&version, "/Version"),
                text(&version, "/KernelVersion")
            ),
        })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Name and version of the engine, and its machine's kernel, for display.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its name in file names and in tables of expectations.
    pub fn word(&self) -> &'static str {
        match self.kind {
            EngineKind::Docker => "docker",
            EngineKind::Podman => "podman",
        }
    }

    /// Ids of the containers that have all these labels.
    pub fn containers(&self, labels: &[&str], which: Listed) -> anyhow::Result<Vec<String>> {
        let filters = json!({ "label": labels }).to_string();
        let path = format!(
            "/containers/json?all={}&filters={}",
            which == Listed::All,
            encoded(&filters)
        );
        let listed: Value = serde_json::from_slice(&self.get(&path)?)?;
        let ids = listed.as_array().context("a list")?.iter();
        Ok(ids.map(|found| text(found, "/Id").to_owned()).collect())
    }

    /// The engine's description of a container.
    pub fn inspect(&self, id: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(
            &self.get(&format!("/containers/{id}/json"))?,
        )?)
    }

    /// Runs an ordinary container, unlike a check's, on the engine's default bridge, with readable
    /// logs. Returns its id.
    pub fn run(&self, image: &str, label: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let (key, value) = label.split_once('=').unwrap_or((label, ""));
        let body = json!({
            "Image": image,
            "Cmd": arguments,
            "Labels": { key: value },
            // Otherwise Podman keeps logs in the journal, which not every user may read.
            "HostConfig": { "NetworkMode": "bridge", "LogConfig": { "Type": "json-file" } },
        });
        let made = self.post("/containers/create", "application/json", body.to_string())?;
        let made: Value = serde_json::from_slice(&made)?;
        let id = text(&made, "/Id").to_owned();
        self.post(
            &format!("/containers/{id}/start"),
            "application/json",
            Vec::new(),
        )?;
        Ok(id)
    }

    /// Waits for a container to end, and returns its exit code.
    pub fn wait(&self, id: &str) -> anyhow::Result<i64> {
        let path = format!("/containers/{id}/wait?condition=not-running");
        let answer: Value =
            serde_json::from_slice(&self.post(&path, "application/json", Vec::new())?)?;
        let code = answer.pointer("/StatusCode").and_then(Value::as_i64);
        code.context("an exit code")
    }

    pub fn logs(&self, id: &str) -> anyhow::Result<String> {
        let framed = self.get(&format!("/containers/{id}/logs?stdout=true"))?;
        let (mut text, mut rest) = (Vec::new(), &framed[..]);
        // Frames: a stream's number, three zero bytes and a length.
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let [_, _, _, _, a, b, c, d] = *head;
            let length = usize::try_from(u32::from_be_bytes([a, b, c, d]))?;
            text.extend_from_slice(after.get(..length).context("half a frame")?);
            rest = after.get(length..).unwrap_or_default();
        }
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// Removes a container, running or not.
    pub fn remove(&self, id: &str) -> anyhow::Result<()> {
        let path = format!("{}/containers/{id}?force=true", self.api);
        ask(&self.socket, "DELETE", &path, None).map(drop)
    }

    /// Builds an image from an archive that contains a `Containerfile`.
    pub fn build(&self, name: &str, archive: Vec<u8>) -> anyhow::Result<()> {
        let path = format!(
            "/build?dockerfile=Containerfile&rm=true&t={}",
            encoded(name)
        );
        let said = String::from_utf8(self.post(&path, "application/x-tar", archive)?)?;
        // Later errors are reported after the status.
        match said.lines().find(|line| line.contains("\"error\"")) {
            Some(error) => bail!("{name} does not build: {error}"),
            None => self.get(&format!("/images/{name}/json")).map(drop),
        }
    }

    pub fn tag(&self, image: &str, name: &str) -> anyhow::Result<()> {
        let (repository, tag) = name.rsplit_once(':').context("a name with a tag")?;
        let path = format!(
            "/images/{image}/tag?repo={}&tag={}",
            encoded(repository),
            encoded(tag)
        );
        self.post(&path, "application/json", Vec::new()).map(drop)
    }

    /// Removes a name of an image, and with its last name the image.
    pub fn remove_image(&self, name: &str) -> anyhow::Result<()> {
        let path = format!("{}/images/{name}?force=true&noprune=true", self.api);
        ask(&self.socket, "DELETE", &path, None).map(drop)
    }

    fn get(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        ask(&self.socket, "GET", &format!("{}{path}", self.api), None)
    }

    fn post(&self, path: &str, kind: &str, body: impl Into<Vec<u8>>) -> anyhow::Result<Vec<u8>> {
        let path = format!("{}{path}", self.api);
        ask(&self.socket, "POST", &path, Some((kind, body.into())))
    }
}

/// One request on a separate connection, which ends with the answer.
fn ask(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<(&str, Vec<u8>)>,
) -> anyhow::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)
        .with_context(|| format!("no engine at {}", socket.display()))?;
    stream.set_read_timeout(Some(crate::patient(ANSWER_WITHIN)))?;
    let (kind, body) = body.unwrap_or(("application/json", Vec::new()));
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: engine\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // An engine that did not read the whole request, such as the padding of an archive, resets
        // the connection.
        Err(error) if error.kind() == ErrorKind::ConnectionReset && !answer.is_empty() => {}
        read => drop(read.with_context(|| format!("{method} {path}"))?),
    }
    let end = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .with_context(|| format!("{method} {path}: no answer"))?;
    let content = answer.split_off(end + 4);
    let head = String::from_utf8_lossy(&answer);
    let status = head.split(' ').nth(1).unwrap_or_default();
    if !status.starts_with('2') {
        bail!(
            "{method} {path}: {status} {}",
            String::from_utf8_lossy(&content)
        );
    }
    Ok(content)
}

/// A text in an answer; empty if there is none.
fn text<'a>(answer: &'a Value, pointer: &str) -> &'a str {
    answer
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn encoded(text: &str) -> String {
    let bytes = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_part_of_a_query_is_encoded() {
        assert_eq!(
            encoded(r#"{"a":["b=c&d"]}"#),
            "%7B%22a%22%3A%5B%22b%3Dc%26d%22%5D%7D"
        );
        assert_eq!(encoded("a-1_b.c~"), "a-1_b.c~");
    }
}
