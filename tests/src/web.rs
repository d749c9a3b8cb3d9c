//! nginx with the product's configuration over a public folder, for tests that read like a visitor.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::Signal;
use tokio::time::Instant;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Paths of the sockets in the configuration to which nginx forwards requests.
const INTAKE_SOCKET: &str = "/run/intake-http/http.sock";
const CONSOLE_SOCKET: &str = "/run/console-http/http.sock";
const PUSH_SOCKET: &str = "/run/push-http/http.sock";

/// A server at a local port. Dropping it stops it.
#[derive(Debug)]
pub struct Web {
    nginx: Child,
    address: String,
    console_address: String,
    push_address: String,
    log: PathBuf,
}

/// Sockets to which nginx forwards requests.
#[derive(Default)]
struct Behind<'p> {
    intake: Option<&'p Path>,
    console: Option<&'p Path>,
    push: Option<&'p Path>,
}

impl Web {
    /// Serves the files of `public`. nginx writes its own files to `folder`, which may contain a
    /// `clients.conf`.
    pub async fn start(folder: &Path, public: &Path) -> anyhow::Result<Self> {
        Self::start_with(folder, public, Behind::default()).await
    }

    /// Forwards submissions and opt-outs to the intake at this socket.
    pub async fn start_with_intake(
        folder: &Path,
        public: &Path,
        intake: &Path,
    ) -> anyhow::Result<Self> {
        let behind = Behind {
            intake: Some(intake),
            ..Behind::default()
        };
        Self::start_with(folder, public, behind).await
    }

    /// Also serves the console at this socket, at a separate port.
    pub async fn start_with_console(
        folder: &Path,
        public: &Path,
        console: &Path,
    ) -> anyhow::Result<Self> {
        let behind = Behind {
            console: Some(console),
            ..Behind::default()
        };
        Self::start_with(folder, public, behind).await
    }

    /// Forwards subscriptions to the push service at this socket, and serves its clients and
    /// applications at a separate port.
    pub async fn start_with_push(
        folder: &Path,
        public: &Path,
        push: &Path,
    ) -> anyhow::Result<Self> {
        let behind = Behind {
            push: Some(push),
            ..Behind::default()
        };
        Self::start_with(folder, public, behind).await
    }

    async fn start_with(folder: &Path, public: &Path, behind: Behind<'_>) -> anyhow::Result<Self> {
        let port = free_port()?;
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/nginx");
        let place = folder.display();
        let text = std::fs::read_to_string(own.join("nginx.conf"))?
            .replace(" /tmp/", &format!(" {place}/"))
            .replace("/etc/fedicensus/", &format!("{place}/"))
            .replace("root /public;", &format!("root {};", public.display()))
            .replace("listen 8080", &format!("listen 127.0.0.1:{port}"));
        let sockets = [(INTAKE_SOCKET, behind.intake), (PUSH_SOCKET, behind.push)];
        let text = sockets
            .iter()
            .fold(text, |text, (ours, socket)| match socket {
                Some(socket) => text.replace(ours, &socket.display().to_string()),
                None => text,
            });
        std::fs::write(folder.join("nginx.conf"), text)?;
        std::fs::copy(own.join("headers.conf"), folder.join("headers.conf"))?;
        // The metrics have a separate port, which these tests don't need.
        std::fs::write(folder.join("metrics.conf"), "")?;
        let (console_port, push_port) = (free_port()?, free_port()?);
        let servers = [
            (
                "console.conf",
                CONSOLE_SOCKET,
                behind.console,
                "listen 8081",
                console_port,
            ),
            (
                "push.conf",
                PUSH_SOCKET,
                behind.push,
                "listen 8082",
                push_port,
            ),
        ];
        for (name, ours, socket, listen, port) in servers {
            let Some(socket) = socket else { continue };
            let text = std::fs::read_to_string(own.join(name))?
                .replace("/tmp/", &format!("{place}/"))
                .replace(ours, &socket.display().to_string())
                .replace(listen, &format!("listen 127.0.0.1:{port}"));
            std::fs::write(folder.join(name), text)?;
        }
        let start = std::fs::read_to_string(own.join("start"))?
            .replace("=/tmp/", &format!("={place}/"))
            .replace("/etc/fedicensus/", &format!("{place}/"));
        std::fs::write(folder.join("start"), start)?;
        let log = folder.join("requests.log");
        let nginx = Command::new("bash")
            .arg(folder.join("start"))
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .spawn()?;
        let web = Self {
            nginx,
            address: format!("http://127.0.0.1:{port}"),
            console_address: format!("http://localhost:{console_port}"),
            push_address: format!("http://127.0.0.1:{push_port}"),
            log,
        };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            anyhow::ensure!(begun.elapsed() < crate::PATIENCE, "nginx does not listen");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(web)
    }

    /// `http://127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// `http://localhost:PORT` of the console. With this name, browsers accept cookies that
    /// otherwise need TLS.
    pub fn console_address(&self) -> &str {
        &self.console_address
    }

    /// `http://127.0.0.1:PORT` of the push service.
    pub fn push_address(&self) -> &str {
        &self.push_address
    }

    /// The sum of the peak resident memory of its processes, in KiB.
    pub fn peak_memory_kib(&self) -> anyhow::Result<u64> {
        let master = self.nginx.id();
        let workers = std::fs::read_to_string(format!("/proc/{master}/task/{master}/children"))?;
        let mut sum = 0;
        for process in workers.split_whitespace().chain([&*master.to_string()]) {
            let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
            let peak = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))
                .and_then(|rest| rest.trim().strip_suffix(" kB"))
                .context("no VmHWM")?;
            sum += peak.parse::<u64>()?;
        }
        Ok(sum)
    }

    /// Stops it as an engine does, and returns its log.
    pub fn logged(mut self) -> anyhow::Result<String> {
        self.end(Signal::QUIT);
        Ok(std::fs::read_to_string(&self.log)?)
    }

    fn end(&mut self, signal: Signal) {
        // Its workers end with it on SIGTERM, but not on SIGKILL.
        if let Ok(None) = self.nginx.try_wait() {
            let process = rustix::process::Pid::from_child(&self.nginx);
            rustix::process::kill_process(process, signal).ok();
            self.nginx.wait().ok();
        }
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Drop for Web {
    fn drop(&mut self) {
        self.end(Signal::TERM);
    }
}
