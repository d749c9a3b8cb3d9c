//! nginx with the product's configuration over a public folder, for tests that read like a visitor.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use tokio::time::Instant;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Paths of the sockets in the configuration to which nginx forwards requests.
const INTAKE_SOCKET: &str = "/run/intake-http/http.sock";
const CONSOLE_SOCKET: &str = "/run/console-http/http.sock";
/// Folders of the push service's sockets in the configuration, without their ends.
const PUSH_FOLDERS: &str = "/run/push";

/// The servers' ports in the configuration: the site, the console, the push service, the metrics.
const PORTS: [&str; 4] = ["8080", "8081", "8082", "9090"];

/// A server at a local port. Dropping it stops it.
#[derive(Debug)]
pub struct Web {
    nginx: Child,
    /// Of the site, the console and the push service: `http://HOST:PORT`.
    addresses: [String; 3],
    log: PathBuf,
    memory: Option<Cgroup>,
    push: Option<Box<Self>>,
}

impl Web {
    /// Serves what is published in `public`. nginx writes its own files to `folder`, which may
    /// contain a `clients.conf`.
    pub async fn start(folder: &Path, public: &Path) -> anyhow::Result<Self> {
        Self::run(folder, public, &[], "site").await
    }

    /// Forwards submissions and opt-outs to the intake at this socket.
    pub async fn start_with_intake(
        folder: &Path,
        public: &Path,
        intake: &Path,
    ) -> anyhow::Result<Self> {
        Self::run(folder, public, &[(INTAKE_SOCKET, intake)], "site").await
    }

    /// Also serves the console at this socket, at a separate port.
    pub async fn start_with_console(
        folder: &Path,
        public: &Path,
        console: &Path,
    ) -> anyhow::Result<Self> {
        Self::run(folder, public, &[(CONSOLE_SOCKET, console)], "site").await
    }

    /// Forwards subscriptions to the push service whose folders of sockets begin with `push`, and
    /// serves its clients and applications at a separate port.
    pub async fn start_with_push(
        folder: &Path,
        public: &Path,
        push: &Path,
    ) -> anyhow::Result<Self> {
        let behind = [(PUSH_FOLDERS, push)];
        let mut web = Self::run(folder, public, &behind, "site").await?;
        let of_push = folder.join("push");
        std::fs::create_dir(&of_push)?;
        let push = Self::run(&of_push, public, &behind, "push").await?;
        web.push = Some(Box::new(push));
        Ok(web)
    }

    /// Runs the start script with this argument. Requests are forwarded to these sockets, in place
    /// of the configuration's.
    async fn run(
        folder: &Path,
        public: &Path,
        behind: &[(&str, &Path)],
        server: &str,
    ) -> anyhow::Result<Self> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/nginx");
        let ports = [free_port()?, free_port()?, free_port()?, free_port()?];
        let here = format!("{}/", folder.display());
        for entry in std::fs::read_dir(own)? {
            let entry = entry?;
            let mut text = std::fs::read_to_string(entry.path())?
                .replace("/tmp/", &here)
                .replace("/etc/fedicensus/", &here)
                .replace("root /public/", &format!("root {}/", public.display()));
            for (ours, port) in PORTS.iter().zip(ports) {
                let listens = format!("listen 127.0.0.1:{port} ");
                text = text.replace(&format!("listen {ours} "), &listens);
            }
            for (ours, socket) in behind {
                text = text.replace(ours, &socket.display().to_string());
            }
            std::fs::write(folder.join(entry.file_name()), text)?;
        }
        let log = folder.join("requests.log");
        let [site, console, push, _metrics] = ports;
        let port = if server == "push" { push } else { site };
        let memory = Cgroup::make(port);
        let join = memory.as_ref().map_or_else(String::new, |memory| {
            format!("echo $$ >{}/cgroup.procs; ", memory.folder.display())
        });
        let nginx = Command::new("bash")
            .args(["-euc", &format!("{join}exec bash \"$@\""), "bash"])
            .arg(folder.join("start"))
            .arg(server)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .spawn()?;
        let addresses = [
            format!("http://127.0.0.1:{site}"),
            // With this name, browsers accept cookies that otherwise need TLS.
            format!("http://localhost:{console}"),
            format!("http://127.0.0.1:{push}"),
        ];
        let web = Self {
            nginx,
            addresses,
            log,
            memory,
            push: None,
        };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            anyhow::ensure!(begun.elapsed() < crate::PATIENCE, "nginx does not listen");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(web)
    }

    pub fn address(&self) -> &str {
        &self.addresses[0]
    }

    pub fn console_address(&self) -> &str {
        &self.addresses[1]
    }

    /// The push service's web server.
    pub fn push_address(&self) -> &str {
        &self.push.as_deref().unwrap_or(self).addresses[2]
    }

    /// Fails if nginx and its sockets ever took more memory than the container of the site's web
    /// server has. Skips the test if this user can't make a cgroup.
    pub fn fits_into_its_memory(&self) -> anyhow::Result<()> {
        let Some(peak) = self.memory.as_ref().and_then(Cgroup::peak_kib) else {
            crate::skip(crate::Need::Privileges, "no memory cgroup can be made here");
            return Ok(());
        };
        let compose = include_str!("../../compose.yaml");
        let limit = memory_limit_kib(compose, "web").context("compose.yaml: no limit")?;
        anyhow::ensure!(peak < limit, "{peak} of {limit} KiB");
        Ok(())
    }

    /// Kills nginx's workers until nginx ends.
    pub async fn end_by_its_worker(mut self) -> anyhow::Result<()> {
        let master = self.nginx.id();
        let begun = Instant::now();
        while self.nginx.try_wait()?.is_none() {
            anyhow::ensure!(begun.elapsed() < crate::PATIENCE, "nginx goes on");
            let children = format!("/proc/{master}/task/{master}/children");
            for id in std::fs::read_to_string(children)?.split_whitespace() {
                // One that has ended is no worker any more.
                let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
                let process = Pid::from_raw(id.parse()?);
                if let Some(process) = process.filter(|_| name == "nginx\n") {
                    rustix::process::kill_process(process, Signal::KILL).ok();
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Stops it as an engine does, and returns its log.
    pub fn logged(mut self) -> anyhow::Result<String> {
        self.end(Signal::QUIT);
        Ok(std::fs::read_to_string(&self.log)?)
    }

    fn end(&mut self, signal: Signal) {
        // Its workers end with it on SIGTERM, but not on SIGKILL.
        if let Ok(None) = self.nginx.try_wait() {
            let process = Pid::from_child(&self.nginx);
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

/// `mem_limit` of a service in a compose file, in KiB.
pub fn memory_limit_kib(compose: &str, service: &str) -> Option<u64> {
    let (_, rest) = compose.split_once(&format!("\n  {service}:\n    image:"))?;
    let (_, rest) = rest.split_once("\n    mem_limit: ")?;
    let (mib, _) = rest.split_once("m\n")?;
    mib.parse::<u64>().ok()?.checked_mul(1024)
}

/// A cgroup that measures memory, with that of sockets. Dropping it removes it, once its processes
/// have ended.
#[derive(Debug)]
struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    fn make(number: u16) -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let parent = match own.lines().find_map(|line| line.split_once(":memory:")) {
            Some(_) => PathBuf::from("/sys/fs/cgroup/memory"),
            // Version 2: a cgroup has either processes or children, so this becomes a sibling.
            None => {
                let path = own.trim().strip_prefix("0::/")?;
                Path::new("/sys/fs/cgroup").join(path).parent()?.to_owned()
            }
        };
        let folder = parent.join(format!("web-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let cgroup = Self { folder };
        // Version 1 counts sockets only under a limit of their own. Version 2 has no such file.
        let sockets = cgroup.folder.join("memory.kmem.tcp.limit_in_bytes");
        if sockets.exists() {
            std::fs::write(sockets, u32::MAX.to_string()).ok()?;
        }
        cgroup.peak_kib()?;
        Some(cgroup)
    }

    fn peak_kib(&self) -> Option<u64> {
        let bytes = |name: &str| {
            let text = std::fs::read_to_string(self.folder.join(name)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let of_version_1 = || {
            let sockets = bytes("memory.kmem.tcp.max_usage_in_bytes")?;
            bytes("memory.max_usage_in_bytes")?.checked_add(sockets)
        };
        Some(bytes("memory.peak").or_else(of_version_1)? / 1024)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let left = std::fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for pid in left
            .lines()
            .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        {
            // Readable once the process has ended, when it has left its cgroup.
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
                let mut ended = [PollFd::new(&process, PollFlags::IN)];
                let _ended = poll(
                    &mut ended,
                    Timespec::try_from(crate::PATIENCE).ok().as_ref(),
                );
            }
        }
        let _removed = std::fs::remove_dir(&self.folder);
    }
}
