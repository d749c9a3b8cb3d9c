//! Firefox without a screen, driven over Marionette, which it has built in: JSON over TCP, each
//! message after its length and a colon.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tests::{PATIENCE, patient};
use tokio::time::Instant;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Of a message of Firefox's; those of these stories take some hundred.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

const LENGTH_DIGITS_MAX: usize = 7;

/// Where Firefox writes the port at which it listens, in its profile.
const PORT_FILE: &str = "MarionetteActivePort";

/// The member that has an element's id in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Preferences that are the same for each push service.
const PREFERENCES: [(&str, &str); 7] = [
    // Any that is free.
    ("marionette.port", "0"),
    // Without TLS.
    ("dom.push.testing.allowInsecureServerURL", "true"),
    ("dom.push.connection.enabled", "true"),
    // Allowed without a question, which nobody could answer.
    ("permissions.default.desktop-notification", "1"),
    // Without a desktop there is nothing that shows them.
    ("alerts.useSystemBackend", "false"),
    ("datareporting.policy.dataSubmissionEnabled", "false"),
    ("app.normandy.enabled", "false"),
];

/// A running Firefox. Killed when dropped.
#[derive(Debug)]
pub(super) struct Firefox {
    process: Child,
    stream: TcpStream,
    last_id: u64,
}

impl Firefox {
    /// Starts it with a profile, whose push service is at this `ws://` address.
    pub(super) async fn start(profile: &Path, push_service: &str) -> anyhow::Result<Self> {
        let ours = ("dom.push.serverURL", &*format!("\"{push_service}\""));
        let preferences: String = PREFERENCES
            .iter()
            .chain([&ours])
            .map(|(name, value)| format!("user_pref(\"{name}\", {value});\n"))
            .collect();
        std::fs::write(profile.join("user.js"), preferences)?;
        let port_file = profile.join(PORT_FILE);
        // The last one's.
        std::fs::remove_file(&port_file).ok();
        let process = Command::new("firefox-esr")
            .args(["--headless", "--marionette", "--no-remote", "--profile"])
            .arg(profile)
            .arg("about:blank")
            .env("HOME", profile)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut starting = Starting(Some(process));
        let port = port(&port_file).await?;
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(patient(PATIENCE)))?;
        let mut firefox = Self {
            process: starting.0.take().context("it was started")?,
            stream,
            last_id: 0,
        };
        let hello = firefox.read()?;
        ensure!(hello["marionetteProtocol"] == 3, "{hello}");
        firefox.command("WebDriver:NewSession", &json!({}))?;
        Ok(firefox)
    }

    /// Opens a page, also one that differs from the open one only behind the `#`.
    pub(super) fn open(&mut self, url: &str) -> anyhow::Result<()> {
        for url in ["about:blank", url] {
            self.command("WebDriver:Navigate", &json!({ "url": url }))?;
        }
        Ok(())
    }

    /// What the body of an asynchronous function returns on the open page.
    pub(super) fn look(&mut self, body: &str) -> anyhow::Result<Value> {
        let script = format!("return (async () => {{ {body} }})()");
        let answer = self.command(
            "WebDriver:ExecuteScript",
            &json!({"script": script, "args": []}),
        )?;
        Ok(answer["value"].clone())
    }

    /// Clicks on an element. Keys go astray now and then in a browser without a screen.
    pub(super) fn press(&mut self, selector: &str) -> anyhow::Result<()> {
        let found = json!({"using": "css selector", "value": selector});
        let found = self.command("WebDriver:FindElement", &found)?;
        let id = &found["value"][ELEMENT];
        self.command("WebDriver:ElementClick", &json!({ "id": id }))?;
        Ok(())
    }

    /// Ends it as a reader does who closes the window.
    pub(super) async fn close(mut self) -> anyhow::Result<()> {
        self.command("Marionette:Quit", &json!({"flags": ["eAttemptQuit"]}))?;
        let end = Instant::now() + patient(PATIENCE);
        while self.process.try_wait()?.is_none() {
            ensure!(Instant::now() < end, "Firefox does not end");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    fn command(&mut self, name: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let text = json!([0, self.last_id, name, parameters]).to_string();
        write!(self.stream, "{}:{text}", text.len())?;
        let answer = self.read()?;
        ensure!(answer[1] == self.last_id, "{name}: {answer}");
        match &answer[2] {
            Value::Null => Ok(answer[3].clone()),
            error => bail!("{name}: {error}"),
        }
    }

    fn read(&mut self) -> anyhow::Result<Value> {
        let mut digits = String::new();
        loop {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            if byte == *b":" {
                break;
            }
            digits.push(char::from(byte[0]));
            ensure!(digits.len() <= LENGTH_DIGITS_MAX, "no length: {digits}");
        }
        let length: usize = digits.parse()?;
        ensure!(length <= MESSAGE_BYTES_MAX, "{length} bytes");
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// One that does not listen yet.
struct Starting(Option<Child>);

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            end(process);
        }
    }
}

fn end(process: &mut Child) {
    process.kill().ok();
    process.wait().ok();
}

async fn port(file: &Path) -> anyhow::Result<u16> {
    let end = Instant::now() + patient(PATIENCE);
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Ok(port) = text.trim().parse() {
            return Ok(port);
        }
        ensure!(Instant::now() < end, "Firefox does not listen");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
