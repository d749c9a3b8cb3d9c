//! Input of the moderators' console from browsers, and the protocol between console and daemon.

pub mod console_form;
pub mod console_wire;
