//! Runs `fuzz_targets::checker::walks` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::checker::walks::check(data));
