//! Runs `fuzz_targets::gateway::client_hello` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::gateway::client_hello::check(data));
