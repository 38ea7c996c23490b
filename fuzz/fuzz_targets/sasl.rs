//! Any bytes as what a client says that logs in: nobody gets in, never a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| nestor_database::fuzz::sasl(bytes));
