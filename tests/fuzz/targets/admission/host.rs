//! Runs `fuzz_targets::admission::host` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::admission::host::check(data));
