//! Engines that tests play: one that does as it is told, and one that does anything.

pub(crate) mod fake_engine;
mod odd_engine;
