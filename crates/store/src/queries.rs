//! Read-only queries that span several tables.

pub(crate) mod counts;
pub(crate) mod due;
pub(crate) mod each;
pub(crate) mod host;
pub(crate) mod host_answers;
pub(crate) mod listed;
pub(crate) mod review;

#[cfg(test)]
mod tests;
