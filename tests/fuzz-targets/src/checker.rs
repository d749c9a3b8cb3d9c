//! Input that the checker parses: documents, lists and robots.txt of other servers.

pub mod flags;
pub mod json;
pub mod lists;
pub mod nodeinfo;
pub mod nodeinfo_pointer;
pub mod peers;
pub mod robots;
pub mod walks;
