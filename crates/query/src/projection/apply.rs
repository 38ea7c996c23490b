//! Applying any projection, computed fields included. What is done for documents that are no bytes here is done for bytes in [`super::written`].

use super::{Child, Compute, Mode, Node, Projection, find_only};
use crate::env::{Env, OpContext};
use crate::matcher::{MatchDetails, Predicate};
use nestor_model::statement::{charge, mark, work};
use nestor_model::{Array, DocRef, Document, RawWriter, Result, Str, Value, ValueRef};

impl Projection {
    /// Projects `env.root`. `details` says where the filter matched, for the positional `$`.
    ///
    /// # Errors
    /// 51246 and 51247 of the positional `$`; those of expressions.
    pub fn apply<'a>(&'a self, env: &mut Env<'a>, details: Option<&MatchDetails>) -> Result<Document> {
        let root = env.root;
        let mut doc = match root {
            DocRef::Raw(raw) if self.root.has_computed => {
                let mut out = RawWriter::with_capacity(raw.len() + raw.len() / 4);
                self.write(raw, env, &mut out)?;
                out.into_doc().into()
            }
            DocRef::Raw(raw) if self.root.has_plain => self.apply_raw_to_buf(raw).into(),
            _ => self.of_fields(env)?,
        };
        for (path, slice) in &self.slices {
            doc = slice.apply(doc.as_ref(), path.parts());
        }
        if let Some(path) = &self.positional {
            doc = find_only::positional(doc.as_ref(), path.parts(), details)?;
        }
        Ok(doc)
    }

    /// Of a document that is no bytes: what is kept shares the memory of its values.
    fn of_fields<'a>(&'a self, env: &mut Env<'a>) -> Result<Document> {
        let mut doc = project_document(&self.root, self.mode, env.root);
        if self.root.has_computed {
            let mark = mark();
            compute_fields(&self.root, self.mode, env, &mut doc)?;
            mark.settle(doc.weight())?;
        }
        Ok(doc)
    }
}

fn project_document(node: &Node, mode: Mode, doc: DocRef<'_>) -> Document {
    if !node.has_plain && mode == Mode::Exclusion {
        return doc.to_document();
    }
    let mut out: Vec<(Str, Value)> = Vec::new();
    for (name, value) in doc {
        let value = match node.child(name) {
            None if mode == Mode::Exclusion => value.to_value(),
            Some(Child::Listed) if mode == Mode::Inclusion => value.to_value(),
            Some(Child::Kept) => value.to_value(),
            // In an exclusion the old value holds the place for the computed one.
            Some(Child::Computed(_)) if mode == Mode::Exclusion => value.to_value(),
            Some(Child::Nested(inner)) => match project_value(inner, mode, value) {
                Some(value) => value,
                None => continue,
            },
            _ => continue,
        };
        out.push((name.into(), value));
    }
    out.into_iter().collect()
}

fn project_value(node: &Node, mode: Mode, value: ValueRef<'_>) -> Option<Value> {
    match value {
        ValueRef::Document(doc) => Some(project_document(node, mode, doc).into()),
        ValueRef::Array(items) => {
            let items = items.iter().filter_map(|item| project_value(node, mode, item));
            Some(items.collect::<Array>().into())
        }
        // A value that will be replaced by a document of computed fields holds its place.
        other if mode == Mode::Exclusion || node.has_computed => Some(other.to_value()),
        _ => None,
    }
}

/// Sets the computed fields of `node` in `doc`, in the order of the specification.
fn compute_fields<'a>(node: &'a Node, mode: Mode, env: &mut Env<'a>, doc: &mut Document) -> Result<()> {
    for (name, child) in &node.children {
        // The name is looked for.
        work(1 + node.children.len() / 16)?;
        match child {
            Child::Computed(Compute::Expr(expr)) => {
                let value = expr.eval(env)?;
                charge(value.weight())?;
                doc.set(name, value);
            }
            Child::Computed(Compute::ElemMatch { field, predicate }) => {
                let found = first_match(env.root, field, predicate, env.op)?;
                // An exclusion leaves fields where they stood; in an inclusion this one comes after those that are kept.
                if mode == Mode::Inclusion || found.is_missing() {
                    doc.remove(name);
                }
                doc.set(name, found);
            }
            Child::Nested(inner) if inner.has_computed => {
                let old = doc.get(name).map_or(Value::Missing, ValueRef::to_value);
                let new = compute_value(inner, mode, env, old)?;
                doc.set(name, new);
            }
            _ => {}
        }
    }
    Ok(())
}

fn compute_value<'a>(node: &'a Node, mode: Mode, env: &mut Env<'a>, old: Value) -> Result<Value> {
    match old {
        Value::Document(mut doc) => {
            compute_fields(node, mode, env, &mut doc)?;
            Ok(doc.into())
        }
        Value::Array(items) => {
            let mut out = Vec::with_capacity(items.len());
            for item in items.iter() {
                work(1)?;
                out.push(compute_value(node, mode, env, item.to_value())?);
            }
            Ok(out.into())
        }
        // Anything else gives way to a document of the computed fields.
        _ => {
            let mut doc = Document::new();
            compute_fields(node, mode, env, &mut doc)?;
            Ok(doc.into())
        }
    }
}

pub(super) fn first_match(root: DocRef<'_>, field: &str, predicate: &Predicate, op: &OpContext) -> Result<Value> {
    let Some(ValueRef::Array(items)) = root.get(field) else {
        return Ok(Value::Missing);
    };
    let mut position = None;
    if !predicate.test(ValueRef::Array(items), op, &mut position)? {
        return Ok(Value::Missing);
    }
    let found = position.and_then(|at| items.get(at)).map(ValueRef::to_value);
    Ok(found.map_or(Value::Missing, |item| vec![item].into()))
}
