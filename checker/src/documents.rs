//! The documents that a host publishes about itself: robots.txt, NodeInfo, and the flags by which
//! it opts out.

pub mod json;
pub mod nodeinfo;
pub mod optout;
pub mod robots;
