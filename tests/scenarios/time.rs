//! What takes time: the pace of one address, and states that change only after days.

pub(crate) mod passing;

mod pace;
mod seven_days;
