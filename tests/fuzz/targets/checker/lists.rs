//! Runs `fuzz_targets::checker::lists` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::checker::lists::check(data));
