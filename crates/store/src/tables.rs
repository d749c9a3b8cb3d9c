//! SQL statements and row types: one file per table, or per group of tables that change together.

pub(crate) mod admitted;
pub(crate) mod day_versions;
pub(crate) mod days;
pub(crate) mod dumps;
pub(crate) mod groups;
pub(crate) mod history;
pub(crate) mod host_decisions;
pub(crate) mod hosts;
pub(crate) mod one_way;
pub(crate) mod row;
pub(crate) mod sources;
pub(crate) mod walks;
