//! Any bytes as an index key and its type bits: refused, or read, and what is written of it is stable.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| nestor_storage::fuzz::key(bytes));
