//! Assertions of the fuzz targets: each module has a function `check`, which panics if a property
//! does not hold for an input. `tests/fuzz` calls these functions with generated inputs; the test
//! `seeds` calls them with the committed ones.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "a panic is how a target reports a property that does not hold"
)]

pub mod admission;
pub mod checker;
pub mod console;
pub mod gateway;
pub mod launcher;
pub mod protocol;
pub mod push;
pub mod token;

mod input;
