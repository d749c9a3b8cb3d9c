//! Runs `fuzz_targets::admission::admission_rules` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::admission::admission_rules::check(data));
