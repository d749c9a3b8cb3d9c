//! What the shell scripts below `deploy/` find on a machine, over programs that stand in for the
//! machine's own.

mod engine;
mod packages;
