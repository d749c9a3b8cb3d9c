//! Runs `fuzz_targets::gateway::names_file` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::gateway::names_file::check(data));
