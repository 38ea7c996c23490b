//! Any document with a pipeline and documents that it runs over, as an aggregation and as an update.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(doc) = nestor_model::RawDoc::validate(bytes) {
        nestor_testkit::fuzz::pipeline(doc);
    }
});
