//! The database file: its connections, schema, locks, copies and write-ahead log. `error.rs` has
//! the errors of the whole crate.

pub(crate) mod checkpoint;
pub(crate) mod connection;
pub(crate) mod copy;
pub(crate) mod error;
pub(crate) mod lock;
pub(crate) mod migrate;
pub(crate) mod reader;
pub(crate) mod tuning;
