//! Whole database files: backups, and the published `instances.sqlite`.

pub(crate) mod backup;
pub(crate) mod instances_file;
