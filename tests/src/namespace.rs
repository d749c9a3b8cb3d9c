//! A network namespace with a lab in it, whose network can be removed without harm to others.
//!
//! A process keeps it until its input ends, so nothing is left when the test ends, however it ends.
//! Needs root.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use crate::world::program;

/// Port of the lab inside, at the loopback addresses of both families.
const LAB_PORT: u16 = 8443;

/// A namespace with only a loopback.
#[derive(Debug)]
pub struct Namespace {
    holder: Child,
    lab: Option<Child>,
}

impl Namespace {
    /// Creates a namespace.
    ///
    /// # Errors
    /// There is no permission to create one, or a tool is missing: `unshare`, `nsenter`, `ip`.
    pub fn new() -> anyhow::Result<Self> {
        let mut holder = Command::new("unshare")
            .args([
                "--net",
                "sh",
                "-c",
                "ip link set lo up && echo up && exec cat",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("unshare")?;
        let mut said = String::new();
        let stdout = holder.stdout.as_mut().context("no stdout")?;
        BufReader::new(stdout).read_line(&mut said)?;
        if said != "up\n" {
            holder.kill().ok();
            holder.wait().ok();
            bail!("no network namespace could be made");
        }
        Ok(Self { holder, lab: None })
    }

    /// The prefix of a command that is to run inside.
    pub fn entrance(&self) -> Vec<String> {
        let namespace = format!("--net=/proc/{}/ns/net", self.holder.id());
        vec!["/usr/bin/nsenter".to_owned(), namespace, "--".to_owned()]
    }

    pub fn run(&self, script: &str) -> anyhow::Result<()> {
        let output = self.command("sh")?.args(["-ec", script]).output()?;
        if !output.status.success() {
            bail!("{script}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// Starts a lab inside, with a crowd of this size; its files are written to `state`.
    pub fn start_lab(&mut self, state: &Path, crowd: u32) -> anyhow::Result<()> {
        std::fs::create_dir(state)?;
        let listen = SocketAddr::from(([0_u16; 8], LAB_PORT)).to_string();
        let lab = self
            .command(program("fedicensus-lab")?)?
            .args(["serve", "--listen", &listen, "--address", "127.0.0.1"])
            .args(["--crowd", &crowd.to_string(), "--state"])
            .arg(state)
            .stderr(std::fs::File::create(state.join("lab.log"))?)
            .spawn()?;
        self.lab = Some(lab);
        Ok(())
    }

    /// The lab's addresses inside, IPv4 and IPv6, in the format of a names file.
    pub fn lab_places() -> [String; 2] {
        [format!("127.0.0.1 {LAB_PORT}"), format!("::1 {LAB_PORT}")]
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> anyhow::Result<Command> {
        let entrance = self.entrance();
        let (first, rest) = entrance.split_first().context("an entrance")?;
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        Ok(command)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for child in self.lab.iter_mut().chain([&mut self.holder]) {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
