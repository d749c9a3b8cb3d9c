//! How new names come in: the rules on them, groups, public suffixes and public lists.

mod admission;
mod groups;
mod parked;
mod sources;
mod walks;
