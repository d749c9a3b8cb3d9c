//! Runs `fuzz_targets::console::console_wire` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::console::console_wire::check(data));
