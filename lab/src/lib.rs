//! The lab: a Fediverse in a box.
//!
//! One TLS port serves any number of instances, distinguished by SNI: every kind of software, every
//! odd or hostile behaviour of a single server, and a crowd of ordinary instances. From a table of
//! personas the lab builds the server, the gateway's names file, a CA, and the table of expected
//! findings for comparison. It is not part of the product, and makes no outgoing connections.
//!
//! Its limits protect the machine on which it runs, not the census: it is meant to strain whatever
//! checks it.

pub mod expectation;
pub mod play;

pub mod crowd;
pub mod farm;
pub mod personas;

pub mod client;
pub mod server;
pub mod state_dir;

pub mod report;

pub use expectation::{Expectation, ExpectedVerdict};
pub use personas::{Persona, personas};
pub use server::request_log;
pub use server::{ANSWER_MS_MAX, Lab, LabError, Settings};
