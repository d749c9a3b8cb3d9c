//! Runs `fuzz_targets::admission::suffix_list` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::admission::suffix_list::check(data));
