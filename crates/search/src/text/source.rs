//! What is stored of a document beside the index of it.

use crate::operand::{Operand, refuse};
use nestor_model::{Array, DocRef, Document, Result, Value, ValueRef};
use std::collections::HashMap;

/// What is stored of a document.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Nothing,
    All,
    /// These fields and, of whole documents, `_id`.
    Include(Tree),
    /// All fields but these.
    Exclude(Tree),
}

/// Paths as a tree of names.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    inner: HashMap<String, Tree>,
    /// A path ends here.
    is_end: bool,
}

impl Source {
    pub(super) fn read(spec: &Operand<'_>, field: &str) -> Result<Self> {
        let Some(value) = spec.get(field) else {
            return Ok(Self::Nothing);
        };
        let name = spec.name_of(field);
        if let ValueRef::Bool(all) = value {
            return Ok(if all { Self::All } else { Self::Nothing });
        }
        let ValueRef::Document(doc) = value else {
            refuse!("\"{name}\" must be a boolean or a document");
        };
        let written = Operand::new(name, doc);
        written.only(&["include", "exclude"])?;
        match (paths(&written, "include")?, paths(&written, "exclude")?) {
            (Some(include), None) => Ok(Self::Include(include)),
            (None, Some(exclude)) => Ok(Self::Exclude(exclude)),
            _ => refuse!("\"{}\" must have include or exclude", written.name()),
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// What of a document is stored.
    pub(super) fn of(&self, doc: DocRef<'_>, is_whole: bool) -> Option<Document> {
        match self {
            Self::Nothing => None,
            Self::All => Some(doc.to_document()),
            Self::Include(tree) => Some(included(tree, doc, is_whole)),
            Self::Exclude(tree) => Some(excluded(tree, doc)),
        }
    }
}

fn paths(spec: &Operand<'_>, field: &str) -> Result<Option<Tree>> {
    let Some(items) = spec.array(field)? else {
        return Ok(None);
    };
    let mut tree = Tree::default();
    for item in items {
        let ValueRef::String(path) = item else {
            refuse!("\"{}\" must be an array of strings", spec.name_of(field));
        };
        let mut at = &mut tree;
        for name in path.split('.') {
            at = at.inner.entry(name.to_owned()).or_default();
        }
        at.is_end = true;
    }
    Ok(Some(tree))
}

fn included(tree: &Tree, doc: DocRef<'_>, is_whole: bool) -> Document {
    let mut out = Document::new();
    for (name, value) in doc {
        match tree.inner.get(name) {
            _ if is_whole && name == "_id" => out.push(name, value.to_value()),
            Some(inner) if inner.is_end => out.push(name, value.to_value()),
            Some(inner) => {
                if let Some(value) = included_value(inner, value) {
                    out.push(name, value);
                }
            }
            None => {}
        }
    }
    out
}

fn included_value(tree: &Tree, value: ValueRef<'_>) -> Option<Value> {
    match value {
        ValueRef::Document(doc) => Some(Value::Document(included(tree, doc, false))),
        ValueRef::Array(items) => {
            let items: Vec<Value> = items.iter().filter_map(|item| included_value(tree, item)).collect();
            Some(Value::Array(Array::new(items)))
        }
        _ => None,
    }
}

fn excluded(tree: &Tree, doc: DocRef<'_>) -> Document {
    let mut out = Document::new();
    for (name, value) in doc {
        match tree.inner.get(name) {
            None => out.push(name, value.to_value()),
            Some(inner) if inner.is_end => {}
            Some(inner) => out.push(name, excluded_value(inner, value)),
        }
    }
    out
}

fn excluded_value(tree: &Tree, value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(doc) => Value::Document(excluded(tree, doc)),
        ValueRef::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| excluded_value(tree, item)).collect();
            Value::Array(Array::new(items))
        }
        value => value.to_value(),
    }
}
