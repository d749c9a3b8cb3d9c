//! The daemon's decisions, as a value: [`Scheduler::on`] takes an event and the time, and returns
//! commands.
//!
//! It decides which class of hosts is taken, how fast checks start, how many run at once, whether a
//! failure is the host's or ours, when to stop and when to publish. It has no I/O, no clock and no
//! random generator: the daemon, the simulation and the tests run the same code in real or virtual
//! time.

pub mod command;
pub mod event;
mod scheduler;

pub mod blame;
pub mod demand;
pub mod publication;
pub mod slots;

pub use blame::ways::WayState;
pub use command::Command;
pub use event::Event;
pub use publication::LastList;
pub use scheduler::{Limit, Scheduler, Settings, Snapshot};
