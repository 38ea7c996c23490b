//! Any bytes as the file of keys and as encrypted frames, with checksums that fit: refused, never a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| nestor_storage::fuzz::encryption(bytes));
