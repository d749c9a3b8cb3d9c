//! Which names enter the census, and when. New names from peers, lists and submissions pass one
//! gate, by the operator's rules; hosts of one registered domain are grouped. Public lists are read
//! on a schedule, and public conversations are walked through where the operator wants that.

pub mod gate;
pub mod groups;
pub mod lists;
pub mod policy;
pub(crate) mod reading;
pub mod walks;
