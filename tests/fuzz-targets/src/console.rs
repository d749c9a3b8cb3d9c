//! What the moderators' console reads from browsers, and what it and the daemon read from each
//! other.

pub mod console_form;
pub mod console_wire;
