//! What the shell scripts below `deploy/` find on a machine, with fake programs in place of the
//! machine's own.

mod engine;
mod packages;
