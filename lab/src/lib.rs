//! The lab: a Fediverse in a box (design §10).
//!
//! One TLS port plays any number of instances told apart by SNI: every kind of software, every odd or hostile behaviour that one server can
//! play, and a crowd of ordinary ones. In: a table of personas. Out: the server, the gateway's names file, a CA, and the table of what a
//! census should find, against which a finding is compared. Nothing here is part of the product; nothing here dials out.
//!
//! Its bounds protect the machine that it runs on, not the census: whoever is checked by it is meant to be hurt.

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
pub use server::{Lab, LabError, Settings};
