//! `fedicensus`: arguments → role → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    orchestrator::cli::main()
}
