//! Text for an operator who asks about the census or one host.

pub mod compare;
pub mod explain;
pub mod status;
