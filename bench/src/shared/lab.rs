//! The lab that a benchmark asks.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use ::lab::crowd::Crowd;
use anyhow::Result;
use protocol::Host;
use tokio::process::Command;

use super::role::Role;

/// From which the lab makes its crowd.
const SEED: u64 = 1;

/// Starts the lab that lies in `programs`, with its state in `folder/lab` and a crowd of so many.
pub fn start(programs: &Path, folder: &Path, crowd: u32, further: &[&str]) -> Result<Role> {
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
        .args(["--seed", &SEED.to_string()])
        .args(further);
    Role::start("lab", &mut command, folder)
}

/// The crowd of so many: it lives, and has nothing up its sleeve.
pub fn crowd(size: u32) -> Crowd {
    Crowd::new(size, SEED)
}

/// The crowd's names.
pub fn hosts(crowd: Crowd) -> Result<Vec<Host>> {
    crowd.names().map(|name| Ok(Host::parse(&name)?)).collect()
}
