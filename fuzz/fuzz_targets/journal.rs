//! Any bytes as frames of the journal, with checksums that fit: refused or read, never a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| nestor_storage::fuzz::journal(bytes));
