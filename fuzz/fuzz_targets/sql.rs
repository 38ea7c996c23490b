//! Any bytes as messages, statements, literals and patterns of SQL: read or refused.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| nestor_sql::fuzz::any(bytes));
