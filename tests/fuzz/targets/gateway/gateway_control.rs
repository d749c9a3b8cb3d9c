//! Runs `fuzz_targets::gateway::gateway_control` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::gateway::gateway_control::check(data));
