//! Running programs, and how a step of a chore ends.

#[cfg(not(test))]
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// How a step ended that did not fail.
pub(crate) enum Outcome {
    Passed,
    /// It passed, except for a part that could not be checked here: which, and why.
    Partly(String),
}

/// Prints a line on stderr, in order with the output of the steps' programs.
#[cfg(not(test))]
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stderr(), "{line}")?)
}

/// Prints a line of a test, which is shown only if the test fails. Steps that tests invent must not
/// look like steps of CI in its log.
#[cfg(test)]
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    eprintln!("{line}");
    Ok(())
}

/// Runs a program to its end, and shows its output as it comes.
///
/// # Errors
/// It can't be started or ends with another code than 0; names the program and its arguments.
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

/// Runs a program to its end and returns its stdout.
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

/// Where cargo builds, and where tests write their tables.
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
