//! Submissions and opt-outs from HTTP to the row.

mod bounds;
mod owners;
mod stage;
mod submissions;
