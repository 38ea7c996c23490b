//! Any document, as Extended JSON, as a filter of the audit log: refused, or it judges a record.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(doc) = nestor_model::extjson::parse_document(text) {
        nestor_database::fuzz::audit_filter(doc.to_raw().as_raw());
    }
});
