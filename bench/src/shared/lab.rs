//! The lab that a benchmark uses.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use ::lab::ANSWER_MS_MAX;
use ::lab::crowd::Crowd;
use anyhow::Result;
use protocol::Host;
use tokio::process::Command;

use super::role::Role;

/// The seed of the lab's crowd.
const SEED: u64 = 1;

/// How far away the lab's hosts are.
#[derive(Debug, clap::Args)]
pub struct Distances {
    /// Median round trip to a host in ms; several, with commas between them, one after the other
    #[arg(long, default_values_t = [150, 0], value_delimiter = ',', value_parser = clap::value_parser!(u16).range(..=i64::from(ANSWER_MS_MAX)))]
    pub answer_ms: Vec<u16>,
}

/// Starts the lab from `programs`, with its state in `folder/lab`, a crowd of this size, and this
/// median round trip to it.
pub fn start(programs: &Path, folder: &Path, crowd: u32, answer_ms: u16) -> Result<Role> {
    // A port that was free a moment ago, which is enough on a machine without attackers.
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
        .args(["--answer-ms", &answer_ms.to_string()]);
    Role::start("lab", &mut command, folder)
}

/// A crowd of this size of ordinary, responding hosts.
pub fn crowd(size: u32) -> Crowd {
    Crowd::new(size, SEED)
}

pub fn hosts(crowd: Crowd) -> Result<Vec<Host>> {
    crowd.names().map(|name| Ok(Host::parse(&name)?)).collect()
}
