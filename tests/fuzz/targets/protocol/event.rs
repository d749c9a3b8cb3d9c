//! Runs `fuzz_targets::protocol::event` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::protocol::event::check(data));
