//! Requirements of a test that not every machine meets: without one, the test is skipped with a
//! message, or fails if it must not be skipped.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Output};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A container engine; required by `FEDICENSUS_E2E=required`.
    Engine,
    /// Root and some programs, for namespaces, firewalls and disks; required by
    /// `FEDICENSUS_E2E=required` and `FEDICENSUS_PRIVILEGES=required`.
    Privileges,
    /// Other people's programs; required by `FEDICENSUS_E2E=required`.
    Programs,
}

/// Prints that a test is skipped, and adds a line to the file that `FEDICENSUS_SKIPPED` names. A
/// missing engine adds none: the same test runs again where there is one.
///
/// # Panics
/// The missing thing is required, or the file can't be written.
#[expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "only tests call it: this is how they report what is missing, or must not be"
)]
pub fn skip(need: Need, why: &str) {
    let required =
        |variable: &str| std::env::var_os(variable).is_some_and(|value| value == "required");
    let must_not_be = required("FEDICENSUS_E2E")
        || (need == Need::Privileges && required("FEDICENSUS_PRIVILEGES"));
    if must_not_be {
        panic!("this must not be skipped here: {why}");
    }
    eprintln!("skipped: {why}");
    if need != Need::Engine
        && let Some(path) = std::env::var_os("FEDICENSUS_SKIPPED")
    {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{need:?}: {test}: {why}"))
            .expect("the file of skipped tests can be written");
    }
}

/// Whether these programs are installed. A missing one is recorded, and skips the test.
pub fn are_there(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        // Daemons are outside an ordinary user's path.
        let find = format!("PATH=$PATH:/usr/sbin:/sbin; command -v {program}");
        let found = Command::new("sh").args(["-c", &find]).output();
        !found.is_ok_and(|output| output.status.success())
    });
    if let Some(program) = missing {
        skip(
            Need::Programs,
            &format!("no `{program}`: deploy/packages.sh has its package"),
        );
    }
    missing.is_none()
}

/// The output of another's program; `None` if it is not installed, which skips the test.
pub fn output(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            let program = command.get_program().display();
            skip(Need::Programs, &format!("{program}: {error}"));
            None
        }
    }
}
