//! Any bytes as BSON: refused, or read to the end and written back byte for byte.
#![no_main]
use libfuzzer_sys::fuzz_target;
use nestor_model::{RawDoc, RawWriter};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(doc) = RawDoc::validate(bytes) {
        let mut copy = RawWriter::new();
        for (name, value) in doc {
            copy.append(name, value.to_value().as_ref());
        }
        assert_eq!(copy.finish(), bytes);
    }
});
