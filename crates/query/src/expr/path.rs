//! Field paths: `$a.b` and the part after a variable's name.

use crate::env::Val;
use nestor_model::{Array, ArrayRef, DocRef, Error, Path, PathPart, Result, Value, ValueRef};

/// Most components a path may have.
const COMPONENTS_MAX: usize = 200;

/// A field path, split once. A component is always a field name: digits do not index arrays. An array on
/// the way gives the array of what its documents hold; items that are no documents, arrays included,
/// are passed over.
#[derive(Clone)]
pub(crate) struct FieldPath(Path);

impl FieldPath {
    pub(crate) fn new(text: &str) -> Self {
        Self(Path::new(text))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads from a document.
    pub(crate) fn read<'a>(&self, doc: DocRef<'a>) -> Val<'a> {
        read_parts(self.0.parts(), doc)
    }

    /// Reads from the value of a variable.
    pub(crate) fn read_val<'a>(&self, value: &Val<'a>) -> Val<'a> {
        match value {
            Val::Ref(value) => self.read_ref(*value),
            Val::Owned(value) => Val::Owned(self.read_ref(value.as_ref()).into_value()),
        }
    }

    fn read_ref<'a>(&self, value: ValueRef<'a>) -> Val<'a> {
        match value {
            ValueRef::Document(doc) => read_parts(self.0.parts(), doc),
            ValueRef::Array(items) => read_array(self.0.parts(), items),
            _ => Val::MISSING,
        }
    }
}

fn read_parts<'a>(parts: &[PathPart], mut doc: DocRef<'a>) -> Val<'a> {
    let mut rest = parts;
    while let Some((part, tail)) = rest.split_first() {
        let value = doc.get(&part.name).unwrap_or(ValueRef::Missing);
        if tail.is_empty() {
            return Val::Ref(value);
        }
        match value {
            ValueRef::Document(inner) => doc = inner,
            ValueRef::Array(items) => return read_array(tail, items),
            _ => break,
        }
        rest = tail;
    }
    Val::MISSING
}

fn read_array<'a>(parts: &[PathPart], items: ArrayRef<'a>) -> Val<'a> {
    let found: Vec<Value> = items
        .iter()
        .filter_map(ValueRef::as_document)
        .map(|doc| read_parts(parts, doc).into_value())
        .filter(|v| !v.is_missing())
        .collect();
    Val::Owned(Value::Array(Array::new(found)))
}

/// Checks a dotted path as expressions and stages accept it. Errors: 40352 empty, 40353 ends in a dot,
/// 15998 empty component, 16410 component starting with `$`, 16411 zero byte, 5984700 too deep.
pub(crate) fn validate_path(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(Error::location(40352, "a field path cannot be the empty string"));
    }
    if text.ends_with('.') {
        return Err(Error::location(40353, "a field path must not end with a '.'"));
    }
    let mut count = 0;
    for part in text.split('.') {
        count += 1;
        if part.is_empty() {
            return Err(Error::location(
                15998,
                "field path components must not be empty strings",
            ));
        }
        check_part(part)?;
    }
    if count > COMPONENTS_MAX {
        return Err(Error::location(5984700, "field path is nested too deep"));
    }
    Ok(())
}

fn check_part(part: &str) -> Result<()> {
    if part.starts_with('$') {
        return Err(Error::location(
            16410,
            "field path components may not start with '$'; consider $getField or $setField",
        ));
    }
    if part.contains('\0') {
        return Err(Error::location(
            16411,
            "field path components may not contain null bytes",
        ));
    }
    Ok(())
}

/// Checks the name of an output field. Errors: 16410, 16411, 16412 (dot).
pub(crate) fn check_field_name(name: &str) -> Result<()> {
    check_part(name)?;
    if name.contains('.') {
        return Err(Error::location(
            16412,
            "field names of an object expression may not contain '.'; consider $getField or $setField",
        ));
    }
    Ok(())
}
