//! How new names are admitted: rules, groups, public suffixes and public lists.

mod admission;
mod groups;
mod parked;
mod sources;
mod walks;
