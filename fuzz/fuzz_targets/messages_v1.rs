#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| acp_fuzz_checks::check_messages_v1(data));
