//! Field paths: `$a.b` and the part after a variable's name.

use crate::env::Val;
use nestor_model::{Array, ArrayRef, DocRef, Path, PathPart, Value, ValueRef};

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
