//! Keys of wildcard indexes.

use super::paths::Wildcard;
use crate::catalog::EmitKey;
use nestor_model::index_spec::IndexSpec;
use nestor_model::statement::{charge, work};
use nestor_model::{ArrayRef, DocRef, Path, Result, ValueRef, bail};
use nestor_query::keys::{KeyPaths, MultikeyPaths};

/// Makes the keys of one wildcard index.
#[derive(Debug)]
pub(super) struct WildcardKeys {
    /// The parts that are ordinary fields.
    others: KeyPaths,
    parts: usize,
}

/// Where a walk through a document reports scalars: path and value.
type Found<'f, 'd> = dyn FnMut(&str, ValueRef<'d>) -> Result<()> + 'f;

impl WildcardKeys {
    /// For an index with this specification.
    pub(super) fn new(spec: &IndexSpec) -> Self {
        let fields = spec.key.iter().filter(|part| !part.is_wildcard());
        Self {
            others: KeyPaths::new(fields.map(|part| Path::new(&part.path))),
            parts: spec.key.len(),
        }
    }

    /// Calls `emit` with each key of a document, duplicates included.
    pub(super) fn for_each_key(
        &self,
        wildcard: &Wildcard,
        doc: DocRef<'_>,
        emit: &mut EmitKey<'_>,
    ) -> Result<MultikeyPaths> {
        let mut found: Vec<(String, ValueRef<'_>)> = Vec::new();
        let mut arrays = false;
        let mut path = String::new();
        visit(doc, &mut path, &mut arrays, &mut |path, value| {
            work(1)?;
            if wildcard.covers(path) {
                charge(size_of::<(String, ValueRef<'_>)>() + path.len())?;
                found.push((path.to_owned(), value));
            }
            Ok(())
        })?;
        let at = wildcard.at;
        let mut emit_with = |others: &[ValueRef<'_>], path: ValueRef<'_>, value: ValueRef<'_>| {
            let (before, behind) = others.split_at(at.min(others.len()));
            let mut key: Vec<ValueRef<'_>> = Vec::with_capacity(others.len() + 2);
            key.extend_from_slice(before);
            key.push(path);
            key.push(value);
            key.extend_from_slice(behind);
            emit(&key)
        };
        let mut multikey = MultikeyPaths {
            components: vec![0; self.parts],
        };
        if arrays {
            multikey.components[at] = 1;
        }
        if self.parts == 1 {
            for (path, value) in &found {
                emit_with(&[], ValueRef::String(path), *value)?;
            }
            return Ok(multikey);
        }
        let others = self.others.for_each_key(doc, &mut |others: &[ValueRef<'_>]| {
            for (path, value) in &found {
                emit_with(others, ValueRef::String(path), *value)?;
            }
            if found.is_empty() {
                // The other fields alone can find it.
                emit_with(others, ValueRef::MinKey, ValueRef::MinKey)?;
            }
            Ok(())
        })?;
        // One array per document can be expanded, and that is what the wildcard is for.
        if others.components.iter().any(|bits| *bits != 0) {
            bail!(
                7246301,
                "the fields of a compound wildcard index beside the wildcard must not be arrays"
            );
        }
        for (other, bits) in others.components.iter().enumerate() {
            multikey.components[other + usize::from(other >= at)] = *bits;
        }
        Ok(multikey)
    }
}

/// Reports the scalars of a document with their paths. Arrays are expanded once; an array in an array is a value, as
/// are an empty object and, as undefined, an empty array.
fn visit<'d>(doc: DocRef<'d>, path: &mut String, arrays: &mut bool, found: &mut Found<'_, 'd>) -> Result<()> {
    for (name, value) in doc.iter() {
        let before = path.len();
        if before > 0 {
            path.push('.');
        }
        path.push_str(name);
        match value {
            ValueRef::Array(items) => {
                *arrays = true;
                visit_items(items, path, arrays, found)?;
            }
            other => visit_value(other, path, arrays, found)?,
        }
        path.truncate(before);
    }
    Ok(())
}

fn visit_items<'d>(items: ArrayRef<'d>, path: &mut String, arrays: &mut bool, found: &mut Found<'_, 'd>) -> Result<()> {
    if items.is_empty() {
        found(path, ValueRef::Undefined)?;
    }
    for item in items.iter() {
        visit_value(item, path, arrays, found)?;
    }
    Ok(())
}

fn visit_value<'d>(value: ValueRef<'d>, path: &mut String, arrays: &mut bool, found: &mut Found<'_, 'd>) -> Result<()> {
    match value {
        ValueRef::Document(inner) if !inner.is_empty() => visit(inner, path, arrays, found),
        other => found(path, other),
    }
}
