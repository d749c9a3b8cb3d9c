//! Runs `fuzz_targets::launcher::launcher_frames` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::launcher::launcher_frames::check(data));
