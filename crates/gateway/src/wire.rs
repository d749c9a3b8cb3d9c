//! The control wire: its messages, and the bounds on its lines.

pub mod control;

pub mod text_name;
