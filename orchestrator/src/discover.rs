//! Names from elsewhere than peers lists. Public lists are read on a schedule, and public
//! conversations are walked if the operator enables that.

pub mod lists;
pub mod reading;
pub mod walks;
