//! Commands of `fedicensus` with a world's settings.

use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};

use anyhow::Context as _;

use super::{World, program};

impl World {
    /// Runs a command of `fedicensus` with this world's settings.
    pub fn command(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        Ok(self.program(arguments)?.stdin(Stdio::null()).output()?)
    }

    /// Starts a command that the caller may kill.
    pub fn begin_command(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        Ok(self
            .program(arguments)?
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?)
    }

    /// Runs a command with some settings changed.
    pub fn command_with(
        &self,
        settings: &[(&str, &str)],
        arguments: &[&str],
    ) -> anyhow::Result<Output> {
        Ok(self
            .program_with(settings, arguments)?
            .stdin(Stdio::null())
            .output()?)
    }

    /// Runs a command with some settings changed, which reads `input`.
    pub fn command_that_reads(
        &self,
        input: &str,
        settings: &[(&str, &str)],
        arguments: &[&str],
    ) -> anyhow::Result<Output> {
        let mut child = self
            .program_with(settings, arguments)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("a pipe")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        Ok(child.wait_with_output()?)
    }

    fn program_with(
        &self,
        settings: &[(&str, &str)],
        arguments: &[&str],
    ) -> anyhow::Result<Command> {
        let mut changed = self.settings.clone();
        for (key, value) in settings {
            changed.set(key, value);
        }
        // The file of the lab's settings is the same for all, and is replaced in one step.
        let mut command = Command::new(program("fedicensus")?);
        command
            .args(arguments)
            .env_clear()
            .envs(changed.environment(self.directory.path())?);
        Ok(command)
    }

    pub(super) fn program(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(program("fedicensus")?);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment()?);
        Ok(command)
    }
}
