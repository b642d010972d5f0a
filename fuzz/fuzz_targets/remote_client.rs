#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| acp_fuzz_checks::check_remote_client(data));
