//! The table of a hash join: the documents of a collection by the values of one field.
//!
//! Documents go to a temporary file once they are too many for memory, and the hashes of their values to another one
//! ([`entries`]). So a join reads the other collection once, however large that is.

mod entries;

use super::row_store::RowStore;
use crate::batch::Batch;
use crate::kept::Kept;
use crate::row::RowDoc;
use crate::spill::Spilled;
use entries::{Collected, Entries, Place};
use nestor_model::statement::{effort, note, work};
use nestor_model::{ArrayRef, DocRef, Path, PathPart, Result, Value, ValueRef};
use nestor_query::collation::{Collator, equal, hash};
use nestor_query::env::OpContext;
use nestor_query::matcher::MatchExpr;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A table to which documents are added.
pub(super) struct TableBuilder {
    finding: Finding,
    docs: RowStore,
    entries: Collected,
    /// The memory of the entries; documents are counted where they are.
    kept: Kept,
    /// Hashes of the document that is being added.
    hashes: Vec<u64>,
    may_spill: bool,
}

/// Documents by each value that equality on a path finds them by.
pub(super) struct JoinTable {
    finding: Finding,
    docs: RowStore,
    entries: Entries,
    /// The memory of the entries.
    kept: Kept,
}

/// The key by which a table finds documents.
struct Finding {
    path: Path,
    collator: Option<Collator>,
    /// Equality of the path with null, which finds absent values too.
    null: MatchExpr,
    hasher: RandomState,
}

impl Finding {
    fn hash(&self, value: ValueRef<'_>) -> u64 {
        // All that is like null is found by null.
        let value = if value.is_nullish() { ValueRef::Null } else { value };
        let mut hasher = self.hasher.build_hasher();
        hash(value, self.collator.as_ref(), &mut hasher);
        hasher.finish()
    }

    /// Whether equality with the value finds the document.
    fn is_equal(&self, doc: DocRef<'_>, value: &Value, op: &OpContext) -> Result<bool> {
        if value.is_nullish() {
            return self.null.matches(doc, op);
        }
        let mut is_equal = false;
        collect(doc, self.path.parts(), &mut |held| {
            note(1);
            is_equal = is_equal || equal(held, value.as_ref(), self.collator.as_ref());
        });
        Ok(is_equal)
    }
}

impl TableBuilder {
    /// `null` is equality of `path` with null. Documents and hashes may go to temporary files if `may_spill` and the batch
    /// allow it.
    pub(super) fn new(path: Path, null: MatchExpr, collator: Option<&Collator>, may_spill: bool) -> Self {
        Self {
            finding: Finding {
                path,
                collator: collator.cloned(),
                null,
                hasher: RandomState::new(),
            },
            docs: RowStore::default(),
            entries: Collected::new(),
            kept: Kept::default(),
            hashes: Vec::new(),
            may_spill,
        }
    }

    /// Adds a document; `false` when there is no room for it, which leaves the table of no use.
    pub(super) fn add(&mut self, doc: RowDoc, batch: &Batch<'_>) -> Result<bool> {
        let finding = &self.finding;
        self.hashes.clear();
        if finding.null.matches(doc.as_doc(), batch.op)? {
            self.hashes.push(finding.hash(ValueRef::Null));
        }
        let hashes = &mut self.hashes;
        collect(doc.as_doc(), finding.path.parts(), &mut |value| {
            effort::made();
            note(1);
            if !value.is_nullish() {
                hashes.push(finding.hash(value));
            }
        });
        let at = self.docs.len() as u64;
        for hash in &self.hashes {
            self.entries.push(*hash, at)?;
        }
        self.kept.set(self.entries.bytes())?;
        self.docs.keep(doc)?;
        let limit = batch.memory_bytes_max;
        if self.bytes() <= limit {
            return Ok(true);
        }
        let Some(dir) = batch.spill_dir.filter(|_| self.may_spill) else {
            return Ok(false);
        };
        self.docs.leave_memory("$lookup", batch)?;
        if self.bytes() > limit {
            self.entries.leave_memory(dir, limit)?;
            self.kept.set(self.entries.bytes())?;
        }
        Ok(true)
    }

    fn bytes(&self) -> usize {
        self.docs.bytes() + self.entries.bytes()
    }

    /// All documents are there.
    pub(super) fn seal(mut self) -> Result<JoinTable> {
        self.docs.seal()?;
        let entries = self.entries.seal()?;
        self.kept.set(entries.bytes())?;
        Ok(JoinTable {
            finding: self.finding,
            docs: self.docs,
            entries,
            kept: self.kept,
        })
    }
}

/// Documents that equality with one of several values finds, one after the other.
pub(super) struct Found {
    values: Vec<Value>,
    /// `places[v]` is among the documents of value `v`.
    places: Vec<Place>,
    /// The next document of each value that has one: its position, and the value.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// The position of the document found last.
    last: Option<u64>,
}

impl JoinTable {
    /// Begins to find the documents that equality with any of the values finds, each once, in the order they were added.
    pub(super) fn find(&self, values: Vec<Value>) -> Result<Found> {
        let mut found = Found {
            places: Vec::with_capacity(values.len()),
            heads: BinaryHeap::with_capacity(values.len()),
            values,
            last: None,
        };
        for (v, value) in found.values.iter().enumerate() {
            effort::made();
            work(1)?;
            let mut place = self.entries.place(self.finding.hash(value.as_ref()));
            if let Some(at) = self.entries.next(&mut place)? {
                found.heads.push(Reverse((at, v)));
            }
            found.places.push(place);
        }
        Ok(found)
    }

    /// The next of them.
    pub(super) fn next(&self, found: &mut Found, op: &OpContext) -> Result<Option<RowDoc>> {
        while let Some(Reverse((at, v))) = found.heads.pop() {
            work(1)?;
            if let Some(next) = self.entries.next(&mut found.places[v])? {
                found.heads.push(Reverse((next, v)));
            }
            if found.last == Some(at) {
                continue;
            }
            let doc = self.docs.get(at as usize)?;
            // Values with the same hash may differ.
            if self.finding.is_equal(doc.as_doc(), &found.values[v], op)? {
                found.last = Some(at);
                return Ok(Some(doc));
            }
        }
        Ok(None)
    }

    /// The figures of its temporary files, if it wrote any.
    pub(super) fn spilled(&self) -> Option<Spilled> {
        let bytes = self.docs.bytes_on_disk()?;
        let mut spilled = Spilled::default();
        spilled.add(self.docs.len() as u64, bytes);
        if let Some((hashes, bytes)) = self.entries.on_disk() {
            spilled.add(hashes, bytes);
        }
        Some(spilled)
    }

    /// Bytes held in memory.
    pub(super) fn memory(&self) -> usize {
        self.docs.bytes() + self.kept.bytes()
    }

    /// The operator that has it is saved.
    pub(super) fn rest(&mut self) {
        self.docs.rest();
        self.kept.rest();
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
