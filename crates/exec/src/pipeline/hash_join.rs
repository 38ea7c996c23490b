//! The table of a hash join: the documents of a collection by the values of one field.

use crate::row::RowDoc;
use nestor_model::{ArrayRef, DocRef, Path, PathPart, Value, ValueRef};
use nestor_query::collation::{Collator, Key};
use std::collections::HashMap;

/// Documents by each value that equality on `path` would find them by.
pub(super) struct JoinTable {
    path: Path,
    collator: Option<Collator>,
    docs: Vec<RowDoc>,
    by_value: HashMap<Key, Vec<u32>>,
    held: usize,
}

impl JoinTable {
    pub(super) fn new(path: Path, collator: Option<&Collator>) -> Self {
        Self {
            path,
            collator: collator.cloned(),
            docs: Vec::new(),
            by_value: HashMap::new(),
            held: 0,
        }
    }

    /// The field by whose values documents are found.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a document; returns the bytes held so far.
    pub(super) fn add(&mut self, doc: RowDoc) -> usize {
        let at = self.docs.len() as u32;
        let mut values = Vec::new();
        collect(doc.as_doc(), self.path.parts(), &mut |value| {
            values.push(value.to_value())
        });
        self.held += doc.size() + 64;
        for value in values {
            self.held += 64;
            let entry = self
                .by_value
                .entry(Key::new(value, self.collator.as_ref()))
                .or_default();
            if entry.last() != Some(&at) {
                entry.push(at);
            }
        }
        self.docs.push(doc);
        self.held
    }

    /// The documents that hold any of the values, in the order they were added.
    pub(super) fn find(&self, values: &[Value]) -> Vec<&RowDoc> {
        let mut found: Vec<u32> = Vec::new();
        for value in values {
            if let Some(positions) = self.by_value.get(&Key::new(value.clone(), self.collator.as_ref())) {
                found.extend(positions);
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|at| &self.docs[at as usize]).collect()
    }

    /// All documents, in the order they were added.
    pub(super) fn docs(&self) -> &[RowDoc] {
        &self.docs
    }
}

/// Calls `found` with each value that an equality on the path compares: through arrays on the way, and at
/// the end both the array and its elements. Absent values are not reported.
pub(super) fn collect<'d>(doc: DocRef<'d>, parts: &[PathPart], found: &mut dyn FnMut(ValueRef<'d>)) {
    let Some(value) = doc.get(&parts[0].name) else {
        return;
    };
    descend(value, &parts[1..], found);
}

fn descend<'d>(value: ValueRef<'d>, rest: &[PathPart], found: &mut dyn FnMut(ValueRef<'d>)) {
    if rest.is_empty() {
        found(value);
        if let ValueRef::Array(items) = value {
            items.iter().for_each(found);
        }
        return;
    }
    match value {
        ValueRef::Document(inner) => collect(inner, rest, found),
        ValueRef::Array(items) => through_array(items, rest, found),
        _ => {}
    }
}

fn through_array<'d>(items: ArrayRef<'d>, rest: &[PathPart], found: &mut dyn FnMut(ValueRef<'d>)) {
    if let Some(index) = rest[0].index {
        if let Some(item) = items.get(index as usize) {
            descend(item, &rest[1..], found);
        }
    }
    for item in items {
        if let ValueRef::Document(inner) = item {
            collect(inner, rest, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson;

    #[test]
    fn values_are_those_that_equality_compares() {
        for (path, doc, expected) in [
            ("a", r#"{"a":[1,2]}"#, "[1, 2] 1 2"),
            ("a.b", r#"{"a":[{"b":1},{"b":[2]},3]}"#, "1 [2] 2"),
            ("a.0", r#"{"a":[7,{"0":8}]}"#, "7 8"),
            ("a.b", r#"{"a":1}"#, ""),
        ] {
            let doc = extjson::parse_document(doc).expect("valid JSON");
            let mut out = Vec::new();
            collect(doc.as_ref(), Path::new(path).parts(), &mut |v| {
                out.push(format!("{v:?}"))
            });
            assert_eq!(out.join(" "), expected, "{path}");
        }
    }
}
