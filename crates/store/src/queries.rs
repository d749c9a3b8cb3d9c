//! Questions that span several tables, answered by a connection that only reads.

pub(crate) mod host_answers;
pub(crate) mod reader;
