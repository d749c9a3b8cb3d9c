//! Runs `fuzz_targets::launcher::probe_report` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::launcher::probe_report::check(data));
