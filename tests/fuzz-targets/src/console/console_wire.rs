//! The protocol between console and daemon: a message that is read, written and read again stays
//! the same.

use console::wire::{Answer, Request};
use local_socket::Ask as _;

pub fn check(data: &[u8]) {
    if let Ok(request) = Request::parse::<Request>(data) {
        crate::input::survives_the_way(&request);
    }
    if let Ok(answer) = Request::parse::<Answer>(data) {
        crate::input::survives_the_way(&answer);
    }
}
