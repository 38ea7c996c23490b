//! Any bytes as an extent of the base: refused or read, never a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| nestor_storage::fuzz::page(bytes));
