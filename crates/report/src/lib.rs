//! Reads a container's output: turns bytes into lines, lines into events, events into a report, and
//! the report into a verdict about the host or a fault of ours.
//!
//! Everything here is untrusted input. The crate has no I/O, no clock and no random numbers, so
//! that the product, the tests and the fuzz targets run the same code.

pub mod check;
pub mod delivery;
mod fault;
pub mod lines;
pub mod list;
mod run;
mod stderr;
pub mod walk;

pub use self::check::{Breach, PeersSummary, Report, conclude};
pub use self::fault::ReportFault;
pub use self::lines::{LineBreach, Lines};
pub use self::run::{Reading, Run};
pub use self::stderr::Stderr;
