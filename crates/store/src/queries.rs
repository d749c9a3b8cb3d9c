//! Questions that span several tables, answered by a connection that only reads.

pub(crate) mod asked;
pub(crate) mod reader;
