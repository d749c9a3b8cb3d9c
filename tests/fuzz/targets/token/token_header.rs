//! Runs `fuzz_targets::token::token_header` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::token::token_header::check(data));
