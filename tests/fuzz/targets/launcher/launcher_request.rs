//! Runs `fuzz_targets::launcher::launcher_request` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::launcher::launcher_request::check(data));
