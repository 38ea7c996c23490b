//! `$out` to a file of the server: `{$out: {path: "events.parquet", format: "parquet"}}`.
//!
//! A format may also be written as MongoDB's Data Federation does (manual of Atlas, "$out"): `{name: "parquet"}`.

use super::args::Options;
use super::{ParseContext, Stage};
use nestor_model::{DocRef, Error, ErrorCode, Result, Str, ValueRef};
use std::sync::Arc;

/// A parsed `$out` to a file.
#[derive(Debug)]
pub struct OutFile {
    /// The file, below the directory whose files the server may write.
    pub path: Str,
    /// The name of its format; without one that of the file tells it.
    pub format: Option<Str>,
}

/// Errors: 2 for an empty path, 14, 40413 to 40415.
pub(super) fn parse(
    stage: &'static str,
    doc: DocRef<'_>,
    _: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let options = Options::read(stage, doc, &["path", "format"])?;
    let path = options.string("path")?.ok_or_else(|| options.missing("path"))?;
    if path.is_empty() {
        return Err(Error::new(ErrorCode::BadValue, "$out path must not be empty"));
    }
    let format = match options.given("format") {
        Some(ValueRef::Document(format)) => {
            let options = Options::read("$out.format", format, &["name"])?;
            Some(options.string("name")?.ok_or_else(|| options.missing("name"))?)
        }
        _ => options.string("format")?,
    };
    out.push(Stage::OutFile(Arc::new(OutFile {
        path: path.into(),
        format: format.map(Str::from),
    })));
    Ok(())
}
