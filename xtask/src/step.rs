//! Steps of a chore: each is announced, timed and ends in an [`Outcome`]; the first failure ends the chore.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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

/// A program that runs beside the steps. Waited for when dropped: cut off, it would leave its work half done and its programs behind.
pub(crate) struct Beside {
    line: String,
    child: Child,
    said: PathBuf,
}

impl Beside {
    /// Starts it; what it says goes to the file `said`, and is shown once it has ended.
    ///
    /// # Errors
    /// When it can't be started; names the program and its arguments.
    pub(crate) fn start(command: &mut Command, said: PathBuf) -> anyhow::Result<Self> {
        let line = line(command);
        if let Some(folder) = said.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = File::create(&said).with_context(|| said.display().to_string())?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("`{line}` can't be started"))?;
        Ok(Self { line, child, said })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it ended otherwise than with 0.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        let said = std::fs::read(&self.said).with_context(|| self.said.display().to_string())?;
        say(String::from_utf8_lossy(&said).trim_end())?;
        if !status.success() {
            bail!("`{}` ended with {status}", self.line);
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _reaped = self.child.wait();
    }
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
    fn a_program_beside_that_fails_is_told_when_it_is_waited_for() {
        let folder = std::env::temp_dir().join(format!("beside-{}", std::process::id()));
        let start = |name: &str| Beside::start(&mut Command::new(name), folder.join(name));
        start("true").unwrap().end().unwrap();
        let error = start("false").unwrap().end().unwrap_err();
        assert!(
            error.to_string().starts_with("`false` ended with"),
            "{error}"
        );
        std::fs::remove_dir_all(folder).unwrap();
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
