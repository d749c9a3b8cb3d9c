//! The Unix sockets over which the parts talk to each other: binding one, serving connections, and
//! reading and writing one line.
//!
//! Every wait and every buffer has a bound that the caller names. The crate knows no message: a
//! line is bytes.

mod bind;
mod connection;
pub mod http;
mod line;
mod serve;

pub use bind::{BindError, Listener, bind};
pub use connection::{AskError, Connection, ask};
pub use line::{LineError, LineLimits, gone, read_line, write_line};
pub use serve::{Accept, Limits, serve};
