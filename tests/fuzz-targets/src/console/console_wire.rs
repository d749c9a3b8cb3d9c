//! The protocol between console and daemon: a message that is read, written and read again stays
//! the same.

use console::wire::{Answer, Request, parse};

pub fn check(data: &[u8]) {
    if let Ok(request) = parse::<Request>(data) {
        crate::input::survives_the_way(&request);
    }
    if let Ok(answer) = parse::<Answer>(data) {
        crate::input::survives_the_way(&answer);
    }
}
