//! The Unix sockets between the parts of the program: creating one, serving connections, and
//! sending requests and answers as lines of JSON.
//!
//! The caller bounds every wait and every buffer. The crate knows no messages: a wire's requests
//! say what they are and how long ([`Ask`]).

mod bind;
mod connection;
pub mod guard;
pub mod http;
mod line;
mod serve;

pub use bind::{BindError, Listener, bind};
pub use connection::{Ask, Client, Connection, answer_one};
pub use line::{LineLimits, WireError, gone, read_line, write_line};
pub use serve::{Accept, Limits, serve};
