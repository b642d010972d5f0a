#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| acp::fuzzing::connection(data));
