//! Any bytes as the certificate of a client: whose it is, or refused, never a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| nestor::fuzz::certificate(bytes));
