//! Any document with an expression and a document that it is evaluated on.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(doc) = nestor_model::RawDoc::validate(bytes) {
        nestor_testkit::fuzz::expression(doc);
    }
});
