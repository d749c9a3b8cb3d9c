//! The database file: opening it, migrating it, checking it and checkpointing its write-ahead log.
//! `error.rs` has the errors of the whole crate.

pub(crate) mod checkpoint;
pub(crate) mod connection;
pub(crate) mod error;
pub(crate) mod lock;
pub(crate) mod migrate;
pub(crate) mod open;
pub(crate) mod reader;
pub(crate) mod soundness;
pub(crate) mod statements;
pub(crate) mod tuning;
pub(crate) mod upgrade;
