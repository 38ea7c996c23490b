//! Any document as a filter, a projection or a schema: parsed and applied, or refused.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(doc) = nestor_model::RawDoc::validate(bytes) {
        nestor_testkit::fuzz::mql(doc);
    }
});
