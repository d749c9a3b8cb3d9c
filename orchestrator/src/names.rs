//! Which names enter the census, and when. New names from peers, lists and submissions pass one
//! gate, which applies the operator's rules. Hosts of one registered domain are grouped. Public
//! lists are read on a schedule, and public conversations are walked if the operator enables that.

pub mod gate;
pub mod groups;
pub mod lists;
pub mod policy;
pub mod reading;
pub mod walks;
