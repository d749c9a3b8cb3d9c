//! Runs `fuzz_targets::token::token_records` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::token::token_records::check(data));
