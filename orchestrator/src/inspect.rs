//! Text for an operator who asks how the census or one host is doing.

pub mod compare;
pub mod explain;
pub mod status;
