//! An engine for tests.

pub(crate) mod fake_engine;
