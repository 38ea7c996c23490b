//! The oplog's form of an update: what changed, not the whole document (`$v: 2`).
//!
//! ```text
//! {$v: 2, diff: {d: {gone: false, ...}, u: {changed: value, ...}, i: {added: value, ...}, sname: {...}}}
//! ```
//!
//! `d`, `u`, `i` name fields removed, replaced where they stand, and added at the end; `s` and a field
//! name holds the diff of a nested document. The diff of an array is `{a: true, l: length, u0: value,
//! s1: {...}}`: its new length when it shrinks, elements replaced, elements changed inside.
//! Source: observation of `local.oplog.rs` of MongoDB 5.0 and later.

use super::operand::{close, index_name, open, push_element};
use super::walk::Change;
use nestor_model::raw::RawElement;
use nestor_model::{Error, ErrorCode, RawDoc, RawDocBuf, RawWriter, Result, ValueRef, bail};
use std::collections::{HashMap, HashSet};

/// Diff of one document, being collected.
#[derive(Default)]
pub(crate) struct DocDiff {
    deleted: Vec<u8>,
    updated: Vec<u8>,
    inserted: Vec<u8>,
    nested: Vec<u8>,
}

impl DocDiff {
    pub fn change(&mut self, name: &str, change: Change<'_, '_>) {
        match change {
            Change::Update(value) => push_element(&mut self.updated, value.kind, name, value.bytes.as_slice()),
            Change::Delete => push_element(&mut self.deleted, 0x08, name, &[0]),
            Change::Sub(diff) => push_sub(&mut self.nested, name, &diff),
        }
    }

    /// A field added at the end, as whole element bytes.
    pub fn insert(&mut self, element: &[u8]) {
        self.inserted.extend_from_slice(element);
    }

    /// The diff's bytes; `None` when nothing changed.
    pub fn finish(self) -> Option<Vec<u8>> {
        let DocDiff {
            deleted,
            updated,
            inserted,
            nested,
        } = self;
        if deleted.is_empty() && updated.is_empty() && inserted.is_empty() && nested.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(deleted.len() + updated.len() + inserted.len() + nested.len() + 32);
        let start = open(&mut out);
        for (name, fields) in [("d", deleted), ("u", updated), ("i", inserted)] {
            if !fields.is_empty() {
                push_element(&mut out, 0x03, name, &[]);
                let section = open(&mut out);
                out.extend_from_slice(&fields);
                close(&mut out, section);
            }
        }
        out.extend_from_slice(&nested);
        close(&mut out, start);
        Some(out)
    }
}

/// Diff of one array, being collected.
#[derive(Default)]
pub(crate) struct ArrayDiff {
    length: Option<usize>,
    entries: Vec<u8>,
}

impl ArrayDiff {
    pub fn change(&mut self, index: usize, change: Change<'_, '_>) {
        match change {
            Change::Update(value) => self.update(index, value.kind, value.bytes.as_slice()),
            Change::Delete => self.update(index, 0x0A, &[]),
            Change::Sub(diff) => push_sub(&mut self.entries, &index_name(index), &diff),
        }
    }

    fn update(&mut self, index: usize, kind: u8, value: &[u8]) {
        self.entries.push(kind);
        self.entries.push(b'u');
        self.entries.extend_from_slice(index_name(index).as_bytes());
        self.entries.push(0);
        self.entries.extend_from_slice(value);
    }

    /// The diff's bytes; `None` when nothing changed.
    pub fn finish(self) -> Option<Vec<u8>> {
        if self.length.is_none() && self.entries.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(self.entries.len() + 24);
        let start = open(&mut out);
        push_element(&mut out, 0x08, "a", &[1]);
        if let Some(length) = self.length {
            push_element(&mut out, 0x10, "l", &(length as i32).to_le_bytes());
        }
        out.extend_from_slice(&self.entries);
        close(&mut out, start);
        Some(out)
    }
}

fn push_sub(out: &mut Vec<u8>, name: &str, diff: &[u8]) {
    out.push(0x03);
    out.push(b's');
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.extend_from_slice(diff);
}

/// `{$v: 2, diff: ...}` around a diff's bytes.
pub(crate) fn oplog_entry(diff: &[u8]) -> RawDocBuf {
    let mut writer = RawWriter::with_capacity(diff.len() + 24);
    writer.append("$v", 2);
    let mut element = Vec::with_capacity(diff.len() + 8);
    push_element(&mut element, 0x03, "diff", diff);
    writer.append_element_bytes(&element);
    writer.into_doc()
}

/// The diff that leads from one document to another, for updates that are computed as a whole
/// (pipelines, replacements). `None` when they are the same bytes.
pub fn compute(old: RawDoc<'_>, new: RawDoc<'_>) -> Option<RawDocBuf> {
    document_diff(old, new).map(|diff| oplog_entry(&diff))
}

fn document_diff(old: RawDoc<'_>, new: RawDoc<'_>) -> Option<Vec<u8>> {
    let before: Vec<RawElement<'_>> = old.elements().collect();
    let after: Vec<RawElement<'_>> = new.elements().collect();
    let mut diff = DocDiff::default();
    // Fields keep their order and new ones go to the end. So the longest prefix of the new fields that
    // stands in the same order in the old ones is kept; the rest is added again.
    let mut kept = vec![false; before.len()];
    let mut from = 0;
    let mut done = 0;
    for element in &after {
        let Some(found) = before[from..].iter().position(|b| b.name() == element.name()) else {
            break;
        };
        let old = &before[from + found];
        kept[from + found] = true;
        from += found + 1;
        done += 1;
        element_diff(old, element, |change| match change {
            ElementChange::Update(e) => push_element(&mut diff.updated, e.kind(), e.name(), e.value_bytes()),
            ElementChange::Sub(sub) => push_sub(&mut diff.nested, element.name(), &sub),
        });
    }
    for element in &after[done..] {
        diff.insert(element.as_bytes());
    }
    let again: HashSet<&str> = after[done..].iter().map(RawElement::name).collect();
    for (element, kept) in before.iter().zip(kept) {
        if !kept && !again.contains(element.name()) {
            push_element(&mut diff.deleted, 0x08, element.name(), &[0]);
        }
    }
    diff.finish()
}

fn array_diff(old: RawDoc<'_>, new: RawDoc<'_>) -> Option<Vec<u8>> {
    let mut diff = ArrayDiff::default();
    let (mut before, mut after) = (old.elements(), new.elements());
    let mut index = 0;
    loop {
        match (before.next(), after.next()) {
            (Some(old), Some(new)) => element_diff(&old, &new, |change| match change {
                ElementChange::Update(e) => diff.update(index, e.kind(), e.value_bytes()),
                ElementChange::Sub(sub) => push_sub(&mut diff.entries, &index_name(index), &sub),
            }),
            (None, Some(new)) => diff.update(index, new.kind(), new.value_bytes()),
            (Some(_), None) => {
                diff.length = Some(index);
                break;
            }
            (None, None) => break,
        }
        index += 1;
    }
    diff.finish()
}

enum ElementChange<'e, 'a> {
    Update(&'e RawElement<'a>),
    Sub(Vec<u8>),
}

fn element_diff<'e, 'a>(old: &RawElement<'_>, new: &'e RawElement<'a>, mut report: impl FnMut(ElementChange<'e, 'a>)) {
    if old.kind() == new.kind() && old.value_bytes() == new.value_bytes() {
        return;
    }
    let sub = match (raw_container(old), raw_container(new)) {
        (Some(a), Some(b)) if old.kind() == new.kind() => {
            if old.kind() == 0x03 {
                document_diff(a, b)
            } else {
                array_diff(a, b)
            }
        }
        _ => None,
    };
    match sub {
        // A diff that is not smaller than the value is no help.
        Some(sub) if sub.len() < new.value_bytes().len() => report(ElementChange::Sub(sub)),
        _ => report(ElementChange::Update(new)),
    }
}

pub(super) fn raw_container<'a>(element: &RawElement<'a>) -> Option<RawDoc<'a>> {
    match element.value() {
        ValueRef::Document(nestor_model::DocRef::Raw(raw)) | ValueRef::Array(nestor_model::ArrayRef::Raw(raw)) => {
            Some(raw)
        }
        _ => None,
    }
}

/// Applies an oplog entry's `{$v: 2, diff}` to the document it was made for.
///
/// Errors: 9 (FailedToParse) when it is not of that form.
pub fn apply(doc: RawDoc<'_>, entry: RawDoc<'_>) -> Result<RawDocBuf> {
    let version = entry.get("$v");
    let Some(diff) = entry
        .get("diff")
        .filter(|_| matches!(version, Some(ValueRef::Int32(2))))
        .and_then(raw_doc)
    else {
        bail!(FailedToParse, "update entry is not of the form {{$v: 2, diff: ...}}");
    };
    let mut out = Vec::with_capacity(doc.len() + diff.len());
    apply_document(&mut out, doc, diff)?;
    let mut writer = RawWriter::with_capacity(out.len());
    writer.append_element_bytes(&out[4..out.len() - 1]);
    Ok(writer.into_doc())
}

pub(super) fn raw_doc(value: ValueRef<'_>) -> Option<RawDoc<'_>> {
    match value {
        ValueRef::Document(nestor_model::DocRef::Raw(raw)) => Some(raw),
        _ => None,
    }
}

pub(super) fn malformed(what: &str) -> Error {
    Error::new(ErrorCode::FailedToParse, format!("malformed update diff: {what}"))
}

fn apply_document(out: &mut Vec<u8>, doc: RawDoc<'_>, diff: RawDoc<'_>) -> Result<()> {
    let section = |name| diff.get(name).map_or(Some(nestor_model::raw::EMPTY), raw_doc);
    let (Some(deleted), Some(updated), Some(inserted)) = (section("d"), section("u"), section("i")) else {
        return Err(malformed("a section is not a document"));
    };
    let gone: HashSet<&str> = deleted.iter().chain(inserted).map(|(name, _)| name).collect();
    let mut updates: HashMap<&str, RawElement<'_>> = updated.elements().map(|e| (e.name(), e)).collect();
    let nested: HashMap<&str, RawElement<'_>> = diff
        .elements()
        .filter(|e| e.kind() == 0x03)
        .filter_map(|e| e.name().strip_prefix('s').map(|name| (name, e)))
        .collect();
    let start = open(out);
    for element in doc.elements() {
        let name = element.name();
        if gone.contains(name) {
            continue;
        }
        if let Some(new) = updates.remove(name) {
            out.extend_from_slice(new.as_bytes());
            continue;
        }
        match nested.get(name).and_then(raw_container) {
            Some(nested) => apply_nested(out, name, &element, nested)?,
            None => out.extend_from_slice(element.as_bytes()),
        }
    }
    for element in updated.elements().filter(|e| updates.contains_key(e.name())) {
        out.extend_from_slice(element.as_bytes());
    }
    for element in inserted.elements() {
        out.extend_from_slice(element.as_bytes());
    }
    close(out, start);
    Ok(())
}

fn apply_nested(out: &mut Vec<u8>, name: &str, element: &RawElement<'_>, diff: RawDoc<'_>) -> Result<()> {
    let old = raw_container(element).ok_or_else(|| malformed("nested diff of a scalar"))?;
    push_element(out, element.kind(), name, &[]);
    match (element.kind(), diff.get("a")) {
        (0x04, Some(ValueRef::Bool(true))) => apply_array(out, old, diff),
        (0x03, _) => apply_document(out, old, diff),
        _ => Err(malformed("document diff of an array")),
    }
}

fn apply_array(out: &mut Vec<u8>, old: RawDoc<'_>, diff: RawDoc<'_>) -> Result<()> {
    let mut entries: Vec<(usize, RawElement<'_>)> = Vec::new();
    let mut length = None;
    for element in diff.elements() {
        match (element.name(), element.value()) {
            ("a", _) => {}
            ("l", ValueRef::Int32(l)) => length = usize::try_from(l).ok(),
            (name, _) => {
                let index = name.get(1..).and_then(|digits| digits.parse().ok());
                entries.push((index.ok_or_else(|| malformed("array entry"))?, element));
            }
        }
    }
    let start = open(out);
    let mut items = old.elements();
    let mut entries = entries.into_iter().peekable();
    let mut index = 0;
    loop {
        let item = items.next();
        if item.is_none() && entries.peek().is_none() || length.is_some_and(|l| index >= l) {
            break;
        }
        let name = index_name(index);
        match (entries.next_if(|(i, _)| *i == index), item) {
            (Some((_, entry)), _) if entry.name().starts_with('u') => {
                push_element(out, entry.kind(), &name, entry.value_bytes());
            }
            (Some((_, entry)), Some(item)) => {
                let nested = raw_container(&entry).ok_or_else(|| malformed("array entry"))?;
                apply_nested(out, &name, &item, nested)?;
            }
            (Some(_), None) => return Err(malformed("nested diff of an element that is not there")),
            (None, Some(item)) => push_element(out, item.kind(), &name, item.value_bytes()),
            (None, None) => push_element(out, 0x0A, &name, &[]),
        }
        index += 1;
    }
    close(out, start);
    Ok(())
}
