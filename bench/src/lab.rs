//! The lab that a benchmark asks.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::{Context as _, Result};
use protocol::Host;
use tokio::process::Command;

use crate::role::Role;

/// How the names of the lab's crowd are told from its personas': the crowd lives, and has nothing up its sleeve.
const CROWD: &str = ".crowd-";

/// Starts the lab that lies in `programs`, with its state in `folder/lab` and a crowd of so many.
pub(crate) fn start(
    programs: &Path,
    folder: &Path,
    crowd: usize,
    further: &[&str],
) -> Result<Role> {
    // Free a moment ago: good enough for a machine that nobody attacks.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let mut command = Command::new(programs.join("fedicensus-lab"));
    command
        .arg("serve")
        .arg("--state")
        .arg(folder.join("lab"))
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .args(["--address", "127.0.0.1"])
        .args(["--crowd", &crowd.to_string()])
        .args(further);
    Role::start("lab", &mut command, folder)
}

/// The crowd's names in the gateway's names file.
pub(crate) fn crowd(names_file: &Path) -> Result<Vec<Host>> {
    std::fs::read_to_string(names_file)?
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| name.contains(CROWD) && !name.starts_with('*'))
        .map(|name| Host::parse(name).with_context(|| name.to_owned()))
        .collect()
}
