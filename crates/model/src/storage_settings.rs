//! Options for the storage engine, in the form that MongoDB has for WiredTiger: `{wiredTiger: {configString: "a=1,b=(c=2)"}}`.
//!
//! Nestor follows one setting: what `block_compressor` names decides whether the data are packed on disk. Which settings there may be is
//! checked where collections and indexes are created.

use crate::value::{DocRef, ValueRef};

/// The names that `block_compressor` may have. All but the first mean that data are packed, in the one way that Nestor has.
/// Source: manual, "storage.wiredTiger.collectionConfig.blockCompressor".
pub const COMPRESSORS: [&str; 4] = ["none", "snappy", "zlib", "zstd"];

/// Names and values of the settings of a `configString`, in order. What stands in parentheses belongs to the setting before it; a
/// setting without a value has an empty one.
pub fn settings(text: &str) -> Vec<(&str, &str)> {
    let mut depth = 0usize;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once(['=', ':']).unwrap_or((part, ""));
            (name.trim(), value.trim().trim_matches('"'))
        })
        .collect()
}

/// Whether what has the option `storageEngine` is to be packed on disk; `None` if it doesn't say.
pub fn packs(engines: DocRef<'_>) -> Option<bool> {
    let engine = engines.get("wiredTiger").and_then(ValueRef::as_document)?;
    let settings = settings(engine.get("configString").and_then(|text| text.as_str())?);
    // The last one counts; an empty one is none.
    let (_, compressor) = settings.into_iter().rfind(|(name, _)| *name == "block_compressor")?;
    Some(!matches!(compressor, "" | "none"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    #[test]
    fn the_last_compressor_that_is_named_counts() {
        for (text, packs) in [
            ("", None),
            ("log=(enabled=true,block_compressor=none)", None),
            ("block_compressor=none", Some(false)),
            (" block_compressor : \"none\" ,", Some(false)),
            ("block_compressor", Some(false)),
            ("block_compressor=zlib,log=(enabled=true)", Some(true)),
            ("block_compressor=none,block_compressor=zstd", Some(true)),
        ] {
            let options = doc! { "wiredTiger": doc! { "configString": text } };
            assert_eq!(super::packs(DocRef::from(&options)), packs, "{text}");
        }
        assert_eq!(super::packs(DocRef::from(&doc! { "wiredTiger": doc! {} })), None);
        assert_eq!(
            settings("a, b=(c=1,d=(e,f)),g:2)"),
            [("a", ""), ("b", "(c=1,d=(e,f))"), ("g", "2)")]
        );
    }
}
