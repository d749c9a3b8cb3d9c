//! One file a table, or a few tables that change together: the statements, and the types of their
//! rows.

pub(crate) mod admitted;
pub(crate) mod days;
pub(crate) mod dumps;
pub(crate) mod forgotten;
pub(crate) mod groups;
pub(crate) mod history;
pub(crate) mod host_decisions;
pub(crate) mod hosts;
pub(crate) mod known;
pub(crate) mod sources;
pub(crate) mod walks;
