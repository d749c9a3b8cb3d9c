//! The wire between console and daemon: what is read is written and read again as the same.

use console::wire::{Answer, Request, parse};

pub fn check(data: &[u8]) {
    if let Ok(request) = parse::<Request>(data) {
        crate::input::survives_the_way(&request);
    }
    if let Ok(answer) = parse::<Answer>(data) {
        crate::input::survives_the_way(&answer);
    }
}
