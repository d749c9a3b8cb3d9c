//! The Unix sockets between the parts of the program: creating one, serving connections, and
//! reading and writing one line.
//!
//! The caller bounds every wait and every buffer. The crate knows no message formats: a line is
//! bytes.

mod bind;
mod connection;
pub mod guard;
pub mod http;
mod line;
mod serve;

pub use bind::{BindError, Listener, bind};
pub use connection::{AskError, Connection, ask};
pub use line::{LineError, LineLimits, gone, read_line, write_line};
pub use serve::{Accept, Limits, serve};
