//! Runs `fuzz_targets::push::push_news` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::push::push_news::check(data));
