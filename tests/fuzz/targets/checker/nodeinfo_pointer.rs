//! Runs `fuzz_targets::checker::nodeinfo_pointer` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::checker::nodeinfo_pointer::check(data));
