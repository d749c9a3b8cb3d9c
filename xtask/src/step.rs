//! Steps of a chore: each is announced, timed and ends in an [`Outcome`]; the first failure ends the chore.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// How a step ended that did not fail.
pub(crate) enum Outcome {
    /// All of it passed.
    Passed,
    /// It passed, but for a part that could not be looked at here: which, and why.
    Partly(String),
}

/// What the steps so far came to.
#[derive(Default)]
pub(crate) struct Summary(Vec<(&'static str, Duration, String)>);

impl Summary {
    /// Runs a step and prints how long it took.
    ///
    /// # Errors
    /// What the step failed with, under its name.
    pub(crate) fn step(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> anyhow::Result<Outcome>,
    ) -> anyhow::Result<()> {
        say(&format!("==> {name}"))?;
        let begin = Instant::now();
        let outcome = work();
        let took = begin.elapsed();
        let word = match &outcome {
            Ok(Outcome::Passed) => "ok".to_owned(),
            Ok(Outcome::Partly(missing)) => format!("ok, BUT {missing}"),
            Err(_) => "FAILED".to_owned(),
        };
        say(&format!("<== {name}: {word} ({:.1} s)", took.as_secs_f64()))?;
        self.0.push((name, took, word));
        outcome.map(|_| ()).context(name)
    }

    /// Prints all steps, one a line.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        say("")?;
        for (name, took, word) in &self.0 {
            say(&format!("{:>8.1} s  {name}: {word}", took.as_secs_f64()))?;
        }
        Ok(())
    }
}

/// A line on stderr, in order with what the steps' programs write there.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stderr(), "{line}")?)
}

/// Runs a program to its end, its output shown as it comes.
///
/// # Errors
/// When it can't be started or ends otherwise than with 0; names the program and its arguments.
pub(crate) fn passes(command: &mut Command) -> anyhow::Result<()> {
    let line = line(command);
    let status = command
        .status()
        .with_context(|| format!("`{line}` can't be started"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs a program to its end and gives its stdout.
///
/// # Errors
/// As [`passes`], with what it wrote to stderr.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let line = line(command);
    let output = command
        .output()
        .with_context(|| format!("`{line}` can't be started"))?;
    if !output.status.success() {
        bail!(
            "`{line}` ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Where cargo builds, and tests write their tables.
pub(crate) fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |own| root.join(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_named_with_its_arguments() {
        let error = passes(Command::new("false").arg("--really")).unwrap_err();
        assert!(
            error.to_string().starts_with("`false --really` ended with"),
            "{error}"
        );
        let error = output(Command::new("/nonexistent/program").arg("x")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`/nonexistent/program x` can't be started"
        );
    }

    #[test]
    fn a_failed_step_is_in_the_summary_and_fails_the_chore() {
        let mut summary = Summary::default();
        assert!(summary.step("good", || Ok(Outcome::Passed)).is_ok());
        assert!(summary.step("bad", || bail!("because")).is_err());
        let words: Vec<_> = summary
            .0
            .iter()
            .map(|(name, _, word)| (*name, word.as_str()))
            .collect();
        assert_eq!(words, [("good", "ok"), ("bad", "FAILED")]);
    }
}
