//! Whole database files: backups, copies, and the published `instances.sqlite`.

pub(crate) mod backup;
pub(crate) mod copy;
pub(crate) mod instances_file;
