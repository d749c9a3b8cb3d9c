//! Runs `fuzz_targets::checker::robots` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::checker::robots::check(data));
