//! Notifications about the newest list: hosts that appeared, changed or left it.
//!
//! They are made from the published files only. A subscription gets at most one message per list,
//! and a message names a host only where the published files do.

pub mod seal;
pub mod section;
pub mod subscription;
pub mod text;

pub use section::{Change, Section};
pub use subscription::{Filter, Subscription};
