//! Running programs, and how a step of a chore ends.

#[cfg(not(test))]
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// How a step ended that did not fail.
pub(crate) enum Outcome {
    /// All of it passed.
    Passed,
    /// It passed, but for a part that could not be looked at here: which, and why.
    Partly(String),
}

/// A line on stderr, in order with what the steps' programs write there.
#[cfg(not(test))]
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stderr(), "{line}")?)
}

/// A line of a test, which is shown only when the test fails: steps that tests make up must not look
/// like steps of CI in its log.
#[cfg(test)]
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    eprintln!("{line}");
    Ok(())
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
}
