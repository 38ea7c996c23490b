//! Any bytes as one wire message: an answer or an error, never a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut scratch = Vec::new();
    if let Ok(message) = nestor_wire::parse(bytes, &mut scratch) {
        // Reading what was accepted must not panic either.
        let _ = format!("{message:?}");
    }
});
