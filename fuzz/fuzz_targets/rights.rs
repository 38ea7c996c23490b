//! Any document, as Extended JSON, as that of a user, a role, a privilege or restrictions: read, or refused.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(doc) = nestor_model::extjson::parse_document(text) {
        nestor_database::fuzz::rights(doc.to_raw().as_raw());
    }
});
