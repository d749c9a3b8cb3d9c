//! Small disks for a world, which can be filled or made read-only: each is a tmpfs in a mount
//! namespace that ends with the test.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Set for a test that runs in a separate mount namespace.
const INSIDE: &str = "FEDICENSUS_TEST_MOUNTS";

/// Where a test that needs mounts runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Inside,
    Passed,
    /// This machine forbids mounts, so nothing was run.
    Impossible,
}

/// Runs the calling test, of this full name, once more in a separate mount namespace.
pub fn inside(test: &str) -> anyhow::Result<Place> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(Place::Inside);
    }
    let own = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]);
        command.arg(program);
        command
    };
    let possible = own(Path::new("true")).output();
    if !possible.is_ok_and(|tried| tried.status.success()) {
        return Ok(Place::Impossible);
    }
    let ran = own(&std::env::current_exe()?)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()?;
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    // A name that matches no test would pass as well.
    if !ran.status.success() || !out.contains(" 1 passed") {
        bail!("{test} failed in a mount namespace of its own:\n{out}\n{err}");
    }
    Ok(Place::Passed)
}

/// A tmpfs over a directory.
#[derive(Debug)]
pub struct Disk {
    directory: PathBuf,
}

impl Disk {
    /// Mounts a disk of `kib` KiB. Only a test that is [`Place::Inside`] may.
    pub fn mount(directory: &Path, kib: u32) -> anyhow::Result<Self> {
        if std::env::var_os(INSIDE).is_none() {
            bail!("disks are mounted in a namespace of the test's own only");
        }
        mount(
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={kib}k,mode=0755"),
                "tmpfs",
            ],
            directory,
        )?;
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// Mounts it again, as `ro` or `rw`.
    pub fn remount(&self, way: &str) -> anyhow::Result<()> {
        mount(&["-o", &format!("remount,{way}")], &self.directory)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

fn mount(arguments: &[&str], directory: &Path) -> anyhow::Result<()> {
    let mounted = Command::new("mount")
        .args(arguments)
        .arg(directory)
        .output()
        .context("mount is missing")?;
    if !mounted.status.success() {
        bail!("{}", String::from_utf8_lossy(&mounted.stderr));
    }
    Ok(())
}

impl Drop for Disk {
    fn drop(&mut self) {
        // So that the world's directory can be removed.
        Command::new("umount")
            .arg("--lazy")
            .arg(&self.directory)
            .output()
            .ok();
    }
}
