//! The document that an upsert inserts: the equalities of the query, then the update applied to them.

use super::operand::{close, depth_of, open, push_element};
use super::{Kind, Update, validate};
use crate::env::OpContext;
use nestor_model::raw::{DOCUMENT_BYTES_MAX, STORED_DEPTH_MAX};
use nestor_model::{DocRef, RawDoc, RawDocBuf, RawWriter, Result, Str, Value, ValueRef, bail, values_equal};

/// `path: value` that every matching document has.
struct Equality {
    path: Str,
    value: Value,
}

impl Update {
    /// Makes the document to insert when no document matches `filter` (which must have been parsed as a
    /// match expression before, so that it is well-formed). `_id` stands first; it is made up when
    /// neither the filter nor the update gives one.
    ///
    /// Errors: 54 (NotSingleValueField) when the filter's equalities contradict one another; 66
    /// (ImmutableField) when the update changes the filter's `_id`; 17420 for size; those of
    /// [`Update::apply`].
    pub fn upsert_document(&self, filter: DocRef<'_>, op: &OpContext) -> Result<RawDocBuf> {
        let mut equalities = Vec::new();
        let only_id = matches!(self.kind, Kind::Replacement(_));
        collect(filter, only_id, &mut equalities);
        equalities.sort_by(|a, b| a.path.split('.').cmp(b.path.split('.')));
        check(&equalities)?;
        let base = document(&equalities)?;
        let made = match &self.kind {
            Kind::Modifiers(modifiers) => match modifiers.walk(base.as_raw(), None, op, true)? {
                None => base.clone(),
                Some(walked) => {
                    let made = walked.patch.build(base.as_raw(), walked.delta).map_err(resize)?;
                    if let Some(id) = base.as_raw().get("_id") {
                        match made.as_raw().get("_id") {
                            Some(now) if values_equal(id, now) => {}
                            _ => return Err(validate::immutable_id()),
                        }
                    }
                    made
                }
            },
            Kind::Replacement(replacement) => replacement.apply(base.as_raw(), op.timestamp(), true)?,
            Kind::Pipeline(pipeline) => pipeline.apply(base.as_raw(), op)?,
        };
        let made = with_id_first(made.as_raw(), op)?;
        if made.as_bytes().len() > DOCUMENT_BYTES_MAX {
            bail!(17420, "Document to upsert is larger than {DOCUMENT_BYTES_MAX}");
        }
        Ok(made)
    }
}

/// Collects what `filter` demands to be equal: fields, `$and`, `$or` of one branch.
fn collect(filter: DocRef<'_>, only_id: bool, out: &mut Vec<Equality>) {
    for (name, value) in filter {
        match (name, value) {
            ("$and", ValueRef::Array(branches)) => {
                for branch in branches.iter().filter_map(ValueRef::as_document) {
                    collect(branch, only_id, out);
                }
            }
            ("$or", ValueRef::Array(branches)) if branches.len() == 1 => {
                for branch in branches.iter().filter_map(ValueRef::as_document) {
                    collect(branch, only_id, out);
                }
            }
            (name, _) if name.starts_with('$') => {}
            (name, value) => {
                if !only_id || name == "_id" || name.starts_with("_id.") {
                    field(name, value, out);
                }
            }
        }
    }
}

fn field(path: &str, value: ValueRef<'_>, out: &mut Vec<Equality>) {
    match value {
        ValueRef::Document(doc) if is_operators(doc) => {
            for (operator, operand) in doc {
                match (operator, operand) {
                    ("$eq", operand) => add(path, operand, out),
                    ("$in", ValueRef::Array(items)) if items.len() == 1 => {
                        for item in items.iter().filter(|v| is_exact(*v)) {
                            add(path, item, out);
                        }
                    }
                    ("$all", ValueRef::Array(items)) => {
                        for item in items.iter().filter(|v| is_exact(*v)) {
                            add(path, item, out);
                        }
                    }
                    _ => {}
                }
            }
        }
        ValueRef::Regex { .. } => {}
        value => add(path, value, out),
    }
}

/// Neither a regular expression nor an operator document.
fn is_exact(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Regex { .. } => false,
        ValueRef::Document(doc) => !is_operators(doc),
        _ => true,
    }
}

fn is_operators(doc: DocRef<'_>) -> bool {
    doc.iter()
        .next()
        .is_some_and(|(name, _)| name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db"))
}

fn add(path: &str, value: ValueRef<'_>, out: &mut Vec<Equality>) {
    out.push(Equality {
        path: path.into(),
        value: value.to_value(),
    });
}

/// No path twice and none below another. In the order of components a path is followed by one below it,
/// if there is any.
fn check(equalities: &[Equality]) -> Result<()> {
    for pair in equalities.windows(2) {
        let (a, b) = (&pair[0].path, &pair[1].path);
        if a == b {
            bail!(
                NotSingleValueField,
                "cannot infer query fields to set, path '{a}' is matched twice"
            );
        }
        if is_ancestor(a, b) {
            bail!(
                NotSingleValueField,
                "cannot infer query fields to set, both paths '{a}' and '{b}' are matched"
            );
        }
    }
    Ok(())
}

fn is_ancestor(a: &str, b: &str) -> bool {
    b.len() > a.len() && b.starts_with(a) && b.as_bytes()[a.len()] == b'.'
}

/// A document of the equalities, which are sorted by path and do not overlap.
fn document(equalities: &[Equality]) -> Result<RawDocBuf> {
    let mut bytes = Vec::new();
    let start = open(&mut bytes);
    let all: Vec<(&str, &Value)> = equalities.iter().map(|e| (e.path.as_str(), &e.value)).collect();
    level(&mut bytes, &all, 1)?;
    close(&mut bytes, start);
    let mut writer = RawWriter::with_capacity(bytes.len());
    writer.append_element_bytes(&bytes[4..bytes.len() - 1]);
    Ok(writer.into_doc())
}

fn level(out: &mut Vec<u8>, fields: &[(&str, &Value)], depth: usize) -> Result<()> {
    let head = |path: &str| path.split('.').next().map_or(0, str::len);
    for group in fields.chunk_by(|(a, _), (b, _)| a[..head(a)] == b[..head(b)]) {
        let (path, value) = group[0];
        let name = &path[..head(path)];
        if depth - 1 + depth_of(value.as_ref()) > STORED_DEPTH_MAX {
            return Err(super::too_deep());
        }
        if name.len() == path.len() {
            let encoded = super::operand::Encoded::new(value);
            push_element(out, encoded.kind, name, encoded.bytes.as_slice());
            continue;
        }
        let below: Vec<(&str, &Value)> = group.iter().map(|(path, v)| (&path[name.len() + 1..], *v)).collect();
        push_element(out, 0x03, name, &[]);
        let start = open(out);
        level(out, &below, depth + 1)?;
        close(out, start);
    }
    Ok(())
}

/// Moves `_id` to the front, or makes one up.
fn with_id_first(doc: RawDoc<'_>, op: &OpContext) -> Result<RawDocBuf> {
    let id = doc.get("_id");
    let mut writer = RawWriter::with_capacity(doc.len() + 32);
    match id {
        Some(id) => {
            validate::check_id(id)?;
            writer.append("_id", id);
        }
        None => writer.append("_id", op.object_id()),
    }
    for element in doc.elements().filter(|e| e.name() != "_id") {
        writer.append_element_bytes(element.as_bytes());
    }
    Ok(writer.into_doc())
}

fn resize(error: nestor_model::Error) -> nestor_model::Error {
    if error.code().number() == 17419 {
        return nestor_model::Error::location(17420, format!("Document to upsert is larger than {DOCUMENT_BYTES_MAX}"));
    }
    error
}
