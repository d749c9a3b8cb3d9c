//! Engines for tests: one that does what a script says, and one that misbehaves in any way.

pub(crate) mod fake_engine;
mod odd_engine;
